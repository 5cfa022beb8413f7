import { expect, it } from 'vitest'
import type { ServedModel } from '#api/served-model.ts'
import { secrets } from '#kube/resources.ts'
import { servedModel } from '../test/support/objects.ts'
import { openModelServer, STUB_PORT, withModelServer } from './model-server.ts'

it('the stub listens on another port if its own is taken', async () => {
  const first = await openModelServer(undefined)
  const second = await openModelServer(undefined)
  expect(second.url).not.toBe(first.url)
  expect((await fetch(`${second.url}/health`)).status).toBe(200)
  await Promise.all([first.close(), second.close()])
})

it('the server in use replaces the stub in manifests, and no other server', () => {
  const urls = [`http://127.0.0.1:${STUB_PORT}`, `http://localhost:${STUB_PORT}/`, 'http://10.0.0.1:8089', 'http://127.0.0.1:80899']
  const model = servedModel('m', { backends: urls.map((url, index) => ({ name: `b${index}`, url })) })
  const changed = withModelServer(model, 'http://real:1') as ServedModel
  expect(changed.spec.backends.map(({ url }) => url)).toEqual(['http://real:1', 'http://real:1', ...urls.slice(2)])
  const other = { apiVersion: 'v1', kind: secrets.kind, metadata: { name: 's' } }
  expect(withModelServer(other, 'http://real:1')).toBe(other)
})
