import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { checkBackendUrl } from '#contract/values/backend-address.ts'
import { apiKeySpec } from '#api/apikey.ts'
import { isOfKind } from '#api/kind.ts'
import { servedModelKind } from '#api/served-model-kind.ts'
import { servedModelSpec } from '#api/served-model.ts'
import { validateManifest } from '#api/validate.ts'

const root = new URL('../../examples/', import.meta.url)
const files = (await readdir(root, { recursive: true })).filter((name) => name.endsWith('.yaml'))

interface AnyObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
}

async function documentsOf(name: string): Promise<AnyObject[]> {
  const documents = parseAllDocuments(await readFile(new URL(name, root), 'utf8'))
  expect(documents.flatMap(({ errors }) => errors)).toEqual([])
  return documents.map((document) => document.toJS() as AnyObject)
}

async function objectsOf(name: string) {
  const ours = (await documentsOf(name)).filter(({ apiVersion }) => apiVersion.startsWith('headgate.dev/'))
  return ours.map((object) => validateManifest(object))
}

test('there are examples for a cluster and for `make run`', () => {
  const wanted = [
    'quickstart/apikey.yaml',
    'quickstart/model.yaml',
    'standalone/apikey.yaml',
    'standalone/model.yaml',
    'budget/apikey.yaml',
  ]
  expect(files).toEqual(expect.arrayContaining(wanted))
})

test.each(files)('examples/%s is valid', async (name) => {
  for (const validated of await objectsOf(name)) expect(validated).toMatchObject({ ok: true })
})

test('every field of limits, budgets and prices is in an example', async () => {
  const text = (await Promise.all(files.map((name) => readFile(new URL(name, root), 'utf8')))).join('\n')
  const { limits, budgets } = apiKeySpec.shape
  const parts = [limits.unwrap(), budgets.unwrap().element, servedModelSpec.shape.pricing.unwrap()]
  const named = [
    ...parts.flatMap(({ shape }) => Object.keys(shape)),
    'onStoreUnavailable',
    'contextTokens',
    'maxOutputTokens',
    'streamUsage',
  ]
  expect(named.filter((field) => !text.includes(`${field}:`))).toEqual([])
})

test('only the examples of `make run` call a loopback address', async () => {
  for (const name of files) {
    const urls = (await objectsOf(name))
      .flatMap((one) => (one.ok && isOfKind(servedModelKind, one.object) ? one.object.spec.backends : []))
      .flatMap((backend) => backend.url ?? [])
    const rules = { allowLoopback: /^(standalone|accounts)\//.test(name) }
    expect(urls.map((url) => checkBackendUrl(url, rules)).filter((checked) => !checked.ok)).toEqual([])
  }
})
