/** The plain Kubernetes objects of examples/ against a real API server. The project's own kinds have crd-server.test.ts. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { openLab } from '../support/lab.ts'
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
  Job: 'apis/batch/v1/namespaces/NAMESPACE/jobs',
  Role: 'apis/rbac.authorization.k8s.io/v1/namespaces/NAMESPACE/roles',
  RoleBinding: 'apis/rbac.authorization.k8s.io/v1/namespaces/NAMESPACE/rolebindings',
  ValidatingAdmissionPolicy: 'apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
  ValidatingAdmissionPolicyBinding: 'apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings',
}
const lab = openLab()
const namespace = `examples-${process.pid}`
const objects = filesBelow('examples')
  .filter((path) => path.endsWith('.yaml'))
  .flatMap((path) => parseAllDocuments(read(path)).map((document) => ({ path, object: document.toJS() as PlainObject })))
  .filter(({ object }) => !object.apiVersion.startsWith('headgate.dev/'))
  .map(({ path, object }) => ({ path, kind: object.kind, object }))

beforeAll(() => lab.plane.namespace(namespace))

afterAll(() => lab.plane.admin.remove(`/api/v1/namespaces/${namespace}`))

test.each(objects)('a real API server accepts the $kind of $path, with every field known', async ({ kind, object }) => {
  const collection = COLLECTIONS[kind]?.replace('NAMESPACE', namespace)
  expect(collection, `a collection for ${kind}`).toBeDefined()
  const isNamespaced = collection?.includes(namespace)
  const moved = isNamespaced ? { ...object, metadata: { ...object.metadata, namespace } } : object
  expect(await lab.plane.admin.call('POST', `/${collection}?dryRun=All&fieldValidation=Strict`, moved)).toMatchObject({ kind })
})
