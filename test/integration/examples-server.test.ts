/** The plain Kubernetes objects of examples/ against a real API server. The project's own kinds have crd-server.test.ts. */
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { apiServer } from '../support/api-server.ts'
import { filesBelow, read } from '../support/documents.ts'

interface PlainObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
}

const COLLECTIONS: Readonly<Record<string, string>> = {
  Deployment: 'apis/apps/v1/namespaces/NAMESPACE/deployments',
  Service: 'api/v1/namespaces/NAMESPACE/services',
  Secret: 'api/v1/namespaces/NAMESPACE/secrets',
}
const call = apiServer(process.env['HEADGATE_TEST_KUBECONFIG'] ?? inject('kubeconfig'))
const namespace = `examples-${process.pid}`
const objects = filesBelow('examples')
  .filter((path) => path.endsWith('.yaml'))
  .flatMap((path) => parseAllDocuments(read(path)).map((document) => ({ path, object: document.toJS() as PlainObject })))
  .filter(({ object }) => !object.apiVersion.startsWith('headgate.dev/'))
  .map(({ path, object }) => ({ path, kind: object.kind, object }))

beforeAll(async () => {
  await call('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
})

afterAll(async () => {
  await call('DELETE', `/api/v1/namespaces/${namespace}`)
})

test.each(objects)('a real API server accepts the $kind of $path, with every field known', async ({ kind, object }) => {
  const collection = COLLECTIONS[kind]?.replace('NAMESPACE', namespace)
  expect(collection, `a collection for ${kind}`).toBeDefined()
  const moved = { ...object, metadata: { ...object.metadata, namespace } }
  const { status, body } = await call('POST', `/${collection}?dryRun=All&fieldValidation=Strict`, moved)
  expect([status, body], JSON.stringify(body)).toEqual([201, expect.objectContaining({ kind })])
})
