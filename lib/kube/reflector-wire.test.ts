import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { FakeApiServer } from '../../test/support/fake-api-server.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import type { StoredObject } from '../../standalone/object-store.ts'
import { createLog } from '#platform/log.ts'
import { systemClock, type Clock } from '#platform/clock.ts'
import { KubeCredentials } from './kube-credentials.ts'
import { ObjectCache } from './object-cache.ts'
import { RawClient } from './raw-client.ts'
import { Reflector } from './reflector.ts'
import { secrets, type Secret } from './resources.ts'
import { Transport } from './transport.ts'

/** Real time with waits a hundred times shorter: 150 s of silence are 1.5 s, a back-off of 0.8 s is 8 ms. */
const hurriedClock: Clock = { ...systemClock, after: (delayMs, callback) => systemClock.after(delayMs / 100, callback) }

let server: FakeApiServer
let transport: Transport
let cache: ObjectCache<Secret>
let reflector: Reflector<Secret>
let heard: string[]
let wake: () => void

beforeEach(async () => {
  server = await FakeApiServer.start()
  const kubeconfig = server.writeKubeconfig(join(temporaryFolder(), 'kubeconfig'), { token: 't' })
  transport = new Transport({ credentials: new KubeCredentials(kubeconfig), clock: systemClock })
  const source = new RawClient({ transport, clock: systemClock })
  const { log: logger } = createLog('test', 'error')
  cache = new ObjectCache((error) => {
    throw error
  })
  reflector = new Reflector(secrets, { namespace: 'shop' }, cache, { source, clock: hurriedClock, logger, random: Math.random })
  heard = []
  wake = () => undefined
  cache.subscribe((before, after) => {
    const name = (after ?? before)?.metadata.name ?? ''
    heard.push(before ? (after ? `~${name}` : `-${name}`) : `+${name}`)
    wake()
  })
})

afterEach(async () => {
  reflector.stop()
  await transport.close()
  await server.stop()
})

/** Waits until the listener has received exactly these changes, in this order. */
async function toHear(...expected: string[]): Promise<void> {
  while (heard.length < expected.length) await new Promise<void>((resolve) => (wake = resolve))
  expect(heard).toEqual(expected)
}

const secret = (name: string, metadata: Partial<Secret['metadata']> = {}): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'shop', ...metadata },
})
const create = (name: string): Promise<Secret> => server.store.create(secrets, secret(name))
const remove = (name: string): Promise<unknown> => server.store.remove(secrets, { namespace: 'shop', name })
/** An object of an earlier time, with the same uid under every version. */
const stored = (name: string, version: number, labels: Record<string, string> = {}): StoredObject => ({
  resource: secrets,
  object: secret(name, { uid: name, resourceVersion: String(version), labels }),
})

test('changes between the list and the watch are not missed', async () => {
  await create('a')
  let release = (): void => undefined
  server.fail({ method: 'WATCH', failure: { kind: 'slow', until: new Promise<void>((resolve) => (release = resolve)) } })
  reflector.start()
  await reflector.synced
  await create('b')
  await remove('a')
  release()
  await toHear('+a', '+b', '-a')
})

test('a connection that breaks in the middle of a line loses no change and repeats none', async () => {
  reflector.start()
  const first = await server.watch(0)
  const a = await create('a')
  await toHear('+a')
  first.silence()
  const b = await create('b')
  first.resetMidLine('ADDED', b)
  const second = await server.watch(1)
  expect(second.asked.version).toBe(Number(a.metadata.resourceVersion))
  await toHear('+a', '+b')
})

test('a half-open connection is noticed by the missing bookmarks', async () => {
  reflector.start()
  const first = await server.watch(0)
  first.silence()
  await create('a')
  await server.watch(1)
  await first.closed
  await toHear('+a')
})

test('410 in the stream or as an answer causes a list, which shows the objects that were deleted meanwhile', async () => {
  await create('a')
  reflector.start()
  const first = await server.watch(0)
  first.silence()
  await remove('a')
  await create('b')
  server.compact()
  first.fail(410, 'Expired')
  await toHear('+a', '-a', '+b')
  const second = await server.watch(1)
  second.silence()
  await create('c')
  server.compact()
  second.end()
  await toHear('+a', '-a', '+b', '+c')
  expect(server.calls.filter((call) => call.method === 'GET')).toHaveLength(3)
})

test('an etcd that was restored from a backup, with lower versions, is listed again', async () => {
  server.restoreEtcd([stored('a', 50_000), stored('b', 50_001)])
  reflector.start()
  const first = await server.watch(0)
  server.restoreEtcd([stored('a', 200, { restored: 'yes' })])
  first.fail(410, 'Expired')
  await toHear('+a', '+b', '-b', '~a')
})

test('duplicate and late events, other namespaces and characters split between packets change nothing', async () => {
  reflector.start()
  const watch = await server.watch(0)
  const a = await create('a')
  const changed = await server.store.update(secrets, secret('a', { labels: { note: 'Schlüssel 🔑' } }))
  watch.send('MODIFIED', changed)
  watch.send('ADDED', a)
  await server.store.create(secrets, secret('foreign', { namespace: 'web' }))
  const line = Buffer.from(
    `${JSON.stringify({ type: 'ADDED', object: { metadata: { name: 'ü🔑', namespace: 'shop', resourceVersion: '900' } } })}\n`,
  )
  for (const byte of line) {
    watch.sendBytes(Buffer.of(byte))
    await new Promise((resolve) => setImmediate(resolve))
  }
  await toHear('+a', '~a', '+ü🔑')
  expect(cache.get({ namespace: 'shop', name: 'a' })?.metadata.labels).toEqual({ note: 'Schlüssel 🔑' })
})

test('the reflector continues after 500, 429, RST and an unknown ERROR in the stream', async () => {
  for (const status of [500, 429, 503]) server.fail({ method: 'GET', failure: { kind: 'status', status, retryAfterSeconds: 0 } })
  server.fail({ method: 'WATCH', failure: { kind: 'reset' } })
  server.fail({ method: 'WATCH', failure: { kind: 'status', status: 500 } })
  reflector.start()
  const watch = await server.watch(0)
  watch.fail(500, 'InternalError')
  await server.watch(1)
  await create('a')
  await toHear('+a')
})

test('the reflector continues after a server was down for a while', async () => {
  await create('a')
  reflector.start()
  const { port } = server
  await server.watch(0)
  await server.stop()
  await create('b')
  await server.listen(port)
  await toHear('+a', '+b')
})

test('stop during a slow list is silent and opens no watch', async () => {
  await create('a')
  let release = (): void => undefined
  server.fail({ method: 'GET', failure: { kind: 'slow', until: new Promise<void>((resolve) => (release = resolve)) } })
  reflector.start()
  while (server.calls.length === 0) await new Promise((resolve) => setImmediate(resolve))
  reflector.stop()
  release()
  await transport.call({ method: 'GET', path: '/api/v1/secrets' })
  expect({ heard, watches: server.watches.length }).toEqual({ heard: [], watches: 0 })
})
