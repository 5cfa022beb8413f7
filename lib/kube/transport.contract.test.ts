import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { FakeApiServer } from '../../test/support/fake-api-server.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { systemClock } from '#platform/clock.ts'
import { Misconfigured } from '#platform/lifecycle.ts'
import { KubeCredentials } from './kube-credentials.ts'
import { Transport } from './transport.ts'

let server: FakeApiServer
let folder: string
let transport: Transport | undefined

beforeEach(async () => {
  server = await FakeApiServer.start()
  folder = temporaryFolder()
})

afterEach(async () => {
  await transport?.close()
  await server.stop()
})

function connect(user: Record<string, string>): Transport {
  const credentials = new KubeCredentials(server.writeKubeconfig(join(folder, 'kubeconfig'), user))
  transport = new Transport({ credentials, clock: systemClock })
  return transport
}

const list = { method: 'GET', path: '/api/v1/secrets' } as const

describe('credentials', () => {
  test('a token file that was replaced is read again when the old token is refused, and the call succeeds', async () => {
    const tokenFile = join(folder, 'token')
    writeFileSync(tokenFile, 'old\n')
    server.tokens = new Set(['old'])
    const kube = connect({ tokenFile: 'token' }) // relative to the kubeconfig
    expect((await kube.call(list)).status).toBe(200)
    writeFileSync(tokenFile, 'new\n')
    server.tokens = new Set(['new'])
    expect((await Promise.all([kube.call(list), kube.call(list), kube.call(list)])).map((answer) => answer.status)).toEqual([200, 200, 200])
  })

  test('a token that stays refused is answered 401, without a storm of reloads', async () => {
    server.tokens = new Set(['right'])
    const kube = connect({ token: 'wrong' })
    for (let time = 0; time < 3; time += 1) expect((await kube.call(list)).status).toBe(401)
    expect(server.calls).toHaveLength(4) // one call was sent again after the one reload
  })

  test('a kubeconfig that cannot be used is refused at once with the remedy', () => {
    expect(() => new KubeCredentials(join(folder, 'missing'))).toThrow(/ENOENT.*name a readable kubeconfig/)
    expect(() => new KubeCredentials(undefined)).toThrow(Misconfigured)
    writeFileSync(join(folder, 'empty'), 'apiVersion: v1\nkind: Config\n')
    expect(() => new KubeCredentials(join(folder, 'empty'))).toThrow(/set KUBECONFIG/)
  })
})

describe('connections', () => {
  test('calls are bounded, and a dedicated call passes them', async () => {
    let release = (): void => undefined
    const until = new Promise<void>((resolve) => (release = resolve))
    server.fail({ times: 999, failure: { kind: 'slow', until } })
    const kube = connect({ token: 't' })
    const calls = Array.from({ length: 100 }, () => kube.call(list))
    while (server.calls.length < 64) await new Promise((resolve) => setImmediate(resolve))
    const dedicated = kube.call({ ...list, isDedicated: true })
    while (server.calls.length < 65) await new Promise((resolve) => setImmediate(resolve))
    expect(server.calls).toHaveLength(65)
    release()
    expect((await Promise.all([...calls, dedicated])).every((answer) => answer.status === 200)).toBe(true)
  })

  test('answers are counted by method and code, a broken connection as <error>', async () => {
    const seen: string[] = []
    const credentials = new KubeCredentials(server.writeKubeconfig(join(folder, 'kubeconfig'), { token: 't' }))
    transport = new Transport({ credentials, clock: systemClock, onAnswer: (method, code) => seen.push(`${method} ${code}`) })
    server.fail({ failure: { kind: 'reset' } })
    await expect(transport.call(list)).rejects.toThrow()
    await transport.call(list)
    await transport.call({ method: 'GET', path: '/api/v1/namespaces/shop/secrets/none' })
    expect(seen).toEqual(['GET <error>', 'GET 200', 'GET 404'])
  })

  test('a watch ends when its signal aborts, and the server sees the connection go', async () => {
    const kube = connect({ token: 't' })
    const abort = new AbortController()
    const stream = await kube.open('/api/v1/secrets?watch=true&resourceVersion=100', abort.signal)
    const watch = await server.watch(0)
    const read = (async () => {
      for await (const chunk of stream.body) if (chunk.length > 0) abort.abort()
    })()
    watch.send('BOOKMARK', { metadata: { resourceVersion: '101' } })
    await expect(read).rejects.toThrow()
    await watch.closed
  })
})
