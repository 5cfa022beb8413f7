import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { FakeApiServer } from '../../test/support/fake-api-server.ts'
import type { FakeObject } from '../../test/support/fake-object-store.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { createLog } from '#platform/log.ts'
import { systemClock, type Clock } from '#platform/clock.ts'
import { KubeCredentials } from './kube-credentials.ts'
import { RawClient } from './raw-client.ts'
import { Reflector } from './reflector.ts'
import { secrets, type Secret } from './resources.ts'
import { Transport } from './transport.ts'

/** Real time with waits a hundred times shorter: 150 s of silence are 1.5 s, a back-off of 0.8 s is 8 ms. */
const hurriedClock: Clock = { ...systemClock, after: (delayMs, callback) => systemClock.after(delayMs / 100, callback) }

let server: FakeApiServer
let transport: Transport
let reflector: Reflector<Secret>
let heard: string[]
let wake: () => void

beforeEach(async () => {
  server = await FakeApiServer.start()
  const kubeconfig = server.writeKubeconfig(join(temporaryFolder(), 'kubeconfig'), { token: 't' })
  transport = new Transport({ credentials: new KubeCredentials(kubeconfig), clock: systemClock })
  const source = new RawClient({ transport, clock: systemClock })
  const { log: logger } = createLog('test', 'error')
  reflector = new Reflector(secrets, { namespace: 'shop' }, { source, clock: hurriedClock, logger, random: Math.random })
  heard = []
  wake = () => undefined
  reflector.subscribe((before, after) => {
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

const create = (name: string): FakeObject => server.store.create('secrets', 'shop', { metadata: { name } })

test('changes between the list and the watch are not missed', async () => {
  create('a')
  let release = (): void => undefined
  server.fail({ method: 'WATCH', failure: { kind: 'slow', until: new Promise<void>((resolve) => (release = resolve)) } })
  reflector.start()
  await reflector.synced
  create('b')
  server.store.remove('secrets', 'shop', 'a')
  release()
  await toHear('+a', '+b', '-a')
})

test('a connection that breaks in the middle of a line loses no change and repeats none', async () => {
  reflector.start()
  const first = await server.watch(0)
  const a = create('a')
  await toHear('+a')
  first.silence()
  const b = create('b')
  first.resetMidLine('ADDED', b)
  const second = await server.watch(1)
  expect(second.asked.version).toBe(Number(a.metadata.resourceVersion))
  await toHear('+a', '+b')
})

test('a half-open connection is noticed by the missing bookmarks', async () => {
  reflector.start()
  const first = await server.watch(0)
  first.silence()
  create('a')
  await server.watch(1)
  await first.closed
  await toHear('+a')
})

test('410 in the stream or as an answer causes a list, which shows the objects that were deleted meanwhile', async () => {
  create('a')
  reflector.start()
  const first = await server.watch(0)
  first.silence()
  server.store.remove('secrets', 'shop', 'a')
  create('b')
  server.store.compact()
  first.expire()
  await toHear('+a', '-a', '+b')
  const second = await server.watch(1)
  second.silence()
  create('c')
  server.store.compact()
  second.end()
  await toHear('+a', '-a', '+b', '+c')
  expect(server.calls.filter((call) => call.method === 'GET')).toHaveLength(3)
})

test('an etcd that was restored from a backup, with lower versions, is listed again', async () => {
  server.store.rewind(50_000)
  create('a')
  create('b')
  reflector.start()
  const first = await server.watch(0)
  first.silence()
  server.store.remove('secrets', 'shop', 'b')
  server.store.rewind(200)
  server.store.update('secrets', 'shop', 'a', { metadata: { name: 'a', labels: { restored: 'yes' } } })
  first.expire()
  await toHear('+a', '+b', '-b', '~a')
})

test('duplicate and late events, other namespaces and characters split between packets change nothing', async () => {
  reflector.start()
  const watch = await server.watch(0)
  const a = create('a')
  const changed = server.store.update('secrets', 'shop', 'a', { metadata: { name: 'a', labels: { note: 'Schlüssel 🔑' } } })
  watch.send('MODIFIED', changed)
  watch.send('ADDED', a)
  server.store.create('secrets', 'web', { metadata: { name: 'foreign' } })
  const line = Buffer.from(
    `${JSON.stringify({ type: 'ADDED', object: { metadata: { name: 'ü🔑', namespace: 'shop', resourceVersion: '900' } } })}\n`,
  )
  for (const byte of line) {
    watch.sendBytes(Buffer.of(byte))
    await new Promise((resolve) => setImmediate(resolve))
  }
  await toHear('+a', '~a', '+ü🔑')
  expect(reflector.get({ namespace: 'shop', name: 'a' })?.metadata.labels).toEqual({ note: 'Schlüssel 🔑' })
})

test('the reflector continues after 500, 429, RST and an unknown ERROR in the stream', async () => {
  for (const status of [500, 429, 503]) server.fail({ method: 'GET', failure: { kind: 'status', status, retryAfterSeconds: 0 } })
  server.fail({ method: 'WATCH', failure: { kind: 'reset' } })
  server.fail({ method: 'WATCH', failure: { kind: 'status', status: 500 } })
  reflector.start()
  const watch = await server.watch(0)
  watch.fail(500, 'InternalError')
  await server.watch(1)
  create('a')
  await toHear('+a')
})

test('the reflector continues after a server was down for a while', async () => {
  create('a')
  reflector.start()
  const { port, store } = server
  await server.watch(0)
  await server.stop()
  create('b')
  server = await FakeApiServer.start(port, store)
  await toHear('+a', '+b')
})

test('stop during a slow list is silent and opens no watch', async () => {
  create('a')
  let release = (): void => undefined
  server.fail({ method: 'GET', failure: { kind: 'slow', until: new Promise<void>((resolve) => (release = resolve)) } })
  reflector.start()
  while (server.calls.length === 0) await new Promise((resolve) => setImmediate(resolve))
  reflector.stop()
  release()
  await transport.call({ method: 'GET', path: '/api/v1/secrets' })
  expect({ heard, watches: server.watches.length }).toEqual({ heard: [], watches: 0 })
})
