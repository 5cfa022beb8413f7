import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { FakeApiServer } from '../../test/support/fake-api-server.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { createLog } from '#platform/log.ts'
import { systemClock, type Clock } from '#platform/clock.ts'
import { KubeCredentials } from './kube-credentials.ts'
import { ObjectCache } from './object-cache.ts'
import { RawClient } from './raw-client.ts'
import { Reflector } from './reflector.ts'
import { secrets, type Secret } from './resources.ts'
import { Transport } from './transport.ts'

/** Real time with waits a hundred times shorter: a back-off of 0.8 s is 8 ms. */
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
