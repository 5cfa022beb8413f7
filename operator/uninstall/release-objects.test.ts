import { pino } from 'pino'
import { beforeEach, describe, expect, test } from 'vitest'
import { ObjectStore } from '../../standalone/object-store.ts'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { apiKey, SHOP } from '../../test/support/objects.ts'
import { apiKeyKind } from '#api/apikey-kind.ts'
import { FINALIZER } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import { LEASE_NAME, LeaderLease } from '#kube/leader.ts'
import { KubeError } from '#kube/port.ts'
import { leases } from '#kube/resources.ts'
import { type Released, releaseEvery } from '../kinds/release.ts'
import { Progress, STUCK_AFTER_MS } from './progress.ts'
import { releaseObjects } from './release-objects.ts'
import { serveUninstalls } from './uninstall-listener.ts'

const KEYS = 3_000
/** Time of one call, ms: with 32 calls at once, the release takes longer than any fixed bound of a minute or so. */
const CALL_MS = 1_500
const CONFIG = { namespace: 'headgate', watchNamespaces: [], formerNamespaces: [] }

let clock: ManualClock
let store: ObjectStore
let lines: string[]
let ended: string[]

beforeEach(async () => {
  clock = new ManualClock()
  store = new ObjectStore()
  lines = []
  ended = []
  for (let at = 0; at < KEYS; at += 1) await store.create(apiKeys, apiKey(`key-${at}`, {}, { finalizers: [FINALIZER] }))
})

function candidate(identity: string): LeaderLease {
  const times = { durationMs: 15_000, renewMs: 10_000, retryMs: 2_000 }
  const options = { clock, logger: pino({ level: 'silent' }), random: () => 0.5, namespace: 'headgate', identity, times }
  return new LeaderLease({ ...options, kube: new FakeKubePort(store), onLost: (why) => ended.push(why) })
}

function slowPort(): FakeKubePort {
  const port = new FakeKubePort(store)
  port.before = ({ verb }) => (verb === 'patch' ? new Promise((resolve) => clock.after(CALL_MS, () => resolve())) : undefined)
  return port
}

async function held(): Promise<number> {
  return (await store.list(apiKeys, SHOP)).filter(({ metadata }) => metadata.finalizers?.includes(FINALIZER)).length
}

/** Runs the command until it ends, in simulated time. */
async function command(): Promise<Released | Error> {
  const progress = new Progress({ clock, print: (line) => lines.push(line), noun: 'ApiKeys' })
  const lease = candidate('command')
  let result: Released | Error | undefined
  const work = async (): Promise<void> => {
    result = await releaseObjects({ kube: slowPort(), lease, clock, config: CONFIG, progress, print: (line) => lines.push(line) })
  }
  progress.bound(work()).catch((error: Error) => (result = error))
  for (let second = 0; second < 3_600 && result === undefined; second += 1) await clock.advance(1_000)
  await lease.release()
  return result ?? new Error('not finished within an hour')
}

/** A leader that serves requests as `app.ts` does. @param kube of its release */
async function leader(kube = slowPort()): Promise<LeaderLease> {
  const lease = candidate('leader')
  await lease.acquire()
  const operator = {
    release: async (onProgress: Parameters<typeof releaseEvery>[2] = () => undefined) =>
      await releaseEvery([{ kind: apiKeyKind, objects: await store.list(apiKeys, '') }], { kube }, onProgress),
  }
  serveUninstalls({ lease, operator, clock, log: pino({ level: 'silent' }), onReleased: () => undefined, end: (why) => ended.push(why) })
  return lease
}

describe('an uninstall of many ApiKeys', () => {
  test('by the leader goes on for as long as there is progress, and shows it', async () => {
    await leader()
    const startedAtMs = clock.monotonic()
    expect(await command()).toEqual({ released: KEYS, failed: 0 })
    expect(clock.monotonic() - startedAtMs).toBeGreaterThan(2 * STUCK_AFTER_MS)
    expect(lines).toContainEqual(expect.stringMatching(/^uninstall: 1,\d{3} of 3,000 ApiKeys released$/))
    expect([await held(), ended]).toEqual([0, []])
  })

  test('without a leader does the same, and hands the Lease back without the request', async () => {
    expect(await command()).toEqual({ released: KEYS, failed: 0 })
    expect(lines).toContainEqual(expect.stringMatching(/^uninstall: 1,\d{3} of 3,000 ApiKeys released$/))
    const lease = await store.get(leases, { namespace: 'headgate', name: LEASE_NAME })
    expect([await held(), lease?.spec?.holderIdentity, lease?.metadata.annotations ?? {}]).toEqual([0, '', {}])
  })

  test('without a leader holds the Lease until its caller has purged the rest', async () => {
    const [lease, operator] = [candidate('command'), candidate('operator')]
    const progress = new Progress({ clock, print: () => undefined, noun: 'ApiKeys' })
    const kube = new FakeKubePort(store)
    const released = releaseObjects({ kube, lease, clock, config: CONFIG, progress, print: () => undefined })
    await clock.advance(5_000)
    expect(await released).toEqual({ released: KEYS, failed: 0 })
    void operator.acquire()
    await clock.advance(30_000)
    expect([lease.leading, operator.leading]).toEqual([true, false])
    await lease.release()
    await clock.advance(5_000)
    expect(operator.leading).toBe(true)
  })

  test('does not wait for a leader that does nothing, though it renews the Lease', async () => {
    const lease = candidate('idle')
    await lease.acquire()
    expect(await command()).toMatchObject({ message: 'no progress for 60 s' })
    expect([lease.leading, await held()]).toEqual([true, KEYS])
  })

  test('is served by the next leader if the first one cannot', async () => {
    const broken = new FakeKubePort(store)
    const first = await leader(broken)
    const operator = { release: () => Promise.reject(new KubeError('Unreachable', 0, 'no answer')) }
    const end = (why: string): void => {
      ended.push(why)
      void first.release().then(() => leader())
    }
    serveUninstalls({ lease: first, operator, clock, log: pino({ level: 'silent' }), onReleased: () => undefined, end })
    expect(await command()).toEqual({ released: KEYS, failed: 0 })
    expect(ended).toEqual(['the uninstall was not finished; the next leader tries again'])
  })

  test('that is cancelled ends the leader, so that the next process works again', async () => {
    const lease = await leader()
    await command()
    await clock.advance(300_000)
    expect(ended).toEqual([expect.stringContaining('the uninstall was cancelled')])
    await lease.release()
    ended = []
    await leader(new FakeKubePort(store))
    await clock.advance(600_000)
    expect(ended).toEqual([]) // the served request is not served again
  })
})
