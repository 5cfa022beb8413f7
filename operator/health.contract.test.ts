import type { Server } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { listening } from '../test/support/listening.ts'
import { createHealthServer, type HealthDeps } from './health.ts'

describe('health and metrics of the operator', () => {
  let server: Server | undefined
  afterEach(() => server?.close())

  async function ask(path: string, change: Partial<HealthDeps> = {}): Promise<Response> {
    const metrics = () => Promise.resolve({ contentType: 'text/plain; version=0.0.4', text: 'up 1\n' })
    server = createHealthServer({ isLive: () => true, notReadyReason: () => undefined, metrics, ...change })
    return fetch(`http://127.0.0.1:${await listening(server)}${path}`, { headers: { connection: 'close' } })
  }

  test.each<[string, Partial<HealthDeps>, number]>([
    ['/livez', {}, 200],
    ['/livez', { isLive: () => false }, 503],
    ['/livez', { notReadyReason: () => 'starting' }, 200],
    ['/readyz', {}, 200],
    ['/readyz', { notReadyReason: () => 'starting' }, 503],
    ['/metrics', {}, 200],
    ['/', {}, 404],
    ['/metrics/more', {}, 404],
  ])('%s with %o answers %i', async (path, change, status) => {
    expect((await ask(path, change)).status).toBe(status)
  })

  test('metrics that cannot be rendered are a 500, not a hang', async () => {
    expect((await ask('/metrics', { metrics: () => Promise.reject(new Error('broken')) })).status).toBe(500)
  })

  test('a probe that fails says what to do', async () => {
    expect(await (await ask('/livez', { isLive: () => false })).text()).toContain('restart')
  })

  test('an operator that is not ready says why', async () => {
    const notReadyReason = (): string => 'the keyring in namespace headgate cannot be read'
    expect(await (await ask('/readyz', { notReadyReason })).text()).toBe('not ready: the keyring in namespace headgate cannot be read\n')
  })
})
