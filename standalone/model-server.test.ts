import { describe, expect, it } from 'vitest'
import type { ServedModel } from '#api/served-model.ts'
import { openModelServer, STUB_PORT, withModelServer } from './model-server.ts'
import { startStubModel } from '../examples/stub-model/stub-model.ts'

const model = (...urls: string[]): ServedModel => ({
  apiVersion: 'headgate.dev/v1alpha1',
  kind: 'ServedModel',
  metadata: { name: 'm', namespace: 'default' },
  spec: {
    allowedNamespaces: { from: 'Same' },
    backends: urls.map((url, index) => ({ name: `b${index}`, url, weight: 100, messages: 'Native', streamUsage: 'Inject' })),
    timeouts: { firstByteSeconds: 1, idleSeconds: 1, totalSeconds: 1 },
  },
})

describe('the model server of make run', () => {
  it('is the stub, on another port if its own is taken', async () => {
    const first = await openModelServer(undefined)
    const second = await openModelServer(undefined)
    expect(second.url).not.toBe(first.url)
    expect((await fetch(`${second.url}/health`)).status).toBe(200)
    await Promise.all([first.close(), second.close()])
  })

  it('is the one of MODEL_URL if it answers; otherwise the program ends with the remedy', async () => {
    const real = await startStubModel()
    expect((await openModelServer(real.url)).url).toBe(real.url)
    await real.close()
    await expect(openModelServer(real.url)).rejects.toThrow(
      /^MODEL_URL: http:\S+ does not answer \(.+\); start the model server or unset MODEL_URL$/,
    )
  })

  it('replaces the stub in manifests, and no other server', () => {
    const manifest = model(
      `http://127.0.0.1:${STUB_PORT}`,
      `http://localhost:${STUB_PORT}/`,
      'http://10.0.0.1:8089',
      'http://127.0.0.1:80899',
    )
    const urls = (withModelServer(manifest, 'http://real:1') as ServedModel).spec.backends.map(({ url }) => url)
    expect(urls).toEqual(['http://real:1', 'http://real:1', 'http://10.0.0.1:8089', 'http://127.0.0.1:80899'])
    const other = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } }
    expect(withModelServer(other, 'http://real:1')).toBe(other)
  })
})
