import { pino } from 'pino'
import { beforeEach, describe, expect, test } from 'vitest'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ManualClock, settle } from '../../test/support/manual-clock.ts'
import { ObjectStore } from '../../standalone/object-store.ts'
import { checkLeaseTimes, LEASE_NAME, LeaderLease, NotLeadingError } from './leader.ts'
import { KubeError } from './port.ts'
import { leases, type Lease } from './resources.ts'

const times = { durationMs: 15_000, renewMs: 10_000, retryMs: 2_000 }
const ref = { namespace: 'headgate', name: LEASE_NAME }

let clock: ManualClock
let store: ObjectStore

beforeEach(() => {
  clock = new ManualClock()
  store = new ObjectStore()
})

interface Candidate {
  readonly lease: LeaderLease
  readonly port: FakeKubePort
  readonly lost: string[]
}

function candidate(identity: string): Candidate {
  const port = new FakeKubePort(store)
  const lost: string[] = []
  const logger = pino({ level: 'silent' })
  const lease = new LeaderLease({
    kube: port,
    clock,
    logger,
    random: () => 0.5,
    namespace: 'headgate',
    identity,
    times,
    onLost: (why) => lost.push(why),
  })
  return { lease, port, lost }
}

async function leading(identity: string): Promise<Candidate> {
  const one = candidate(identity)
  await one.lease.acquire()
  return one
}

async function stored(): Promise<Lease> {
  const lease = await new FakeKubePort(store).get(leases, ref)
  if (!lease) throw new Error('no Lease')
  return lease
}

const unreachable = (): never => {
  throw new KubeError('Unreachable', 0, 'no answer')
}

describe('becoming the leader', () => {
  test('the first one makes the Lease, with a fence above zero', async () => {
    const a = await leading('a')
    expect(a.lease.leading).toBe(true)
    expect(a.lease.fence).toBe(1)
    expect((await stored()).spec).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 15, leaseTransitions: 1 })
  })

  test('a second one waits as long as the first renews, whatever the times in the Lease say', async () => {
    const a = await leading('a')
    const b = candidate('b')
    void b.lease.acquire()
    await clock.advance(120_000)
    expect([a.lease.leading, b.lease.leading]).toEqual([true, false])
    expect(() => b.lease.assertLeading()).toThrow(NotLeadingError)
  })

  test('it takes over after seeing the Lease unchanged for 15 s, with a higher fence', async () => {
    const a = await leading('a')
    const b = candidate('b')
    void b.lease.acquire()
    await clock.advance(4_000)
    a.port.before = unreachable
    await clock.advance(12_000)
    expect(b.lease.leading).toBe(false)
    await clock.advance(8_000)
    expect(b.lease.leading).toBe(true)
    expect(b.lease.fence).toBe(2)
    expect(a.lost).toHaveLength(1)
  })

  test('a Lease from a clock far in the future or past counts as alive only while it changes', async () => {
    for (const renewTime of ['1999-01-01T00:00:00.000000Z', '2099-01-01T00:00:00.000000Z']) {
      store = new ObjectStore()
      await store.create(leases, {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: LEASE_NAME, namespace: 'headgate' },
        spec: { holderIdentity: 'x', leaseDurationSeconds: 15, renewTime, leaseTransitions: 7 },
      })
      const b = candidate('b')
      void b.lease.acquire()
      await clock.advance(14_000)
      expect(b.lease.leading).toBe(false)
      await clock.advance(4_000)
      expect(b.lease.fence).toBe(8)
      await b.lease.release()
    }
  })

  test('a deleted Lease keeps a standby away as long as a dead holder does: the holder may still work', async () => {
    const a = await leading('a')
    const b = candidate('b')
    void b.lease.acquire()
    await clock.advance(4_000)
    await store.remove(leases, ref)
    await clock.advance(14_000)
    expect([a.lost.length, b.lease.leading]).toEqual([1, false])
    await clock.advance(4_000)
    expect(b.lease.leading).toBe(true)
  })

  test('of two that try at once one wins', async () => {
    const a = candidate('a')
    const b = candidate('b')
    void a.lease.acquire()
    void b.lease.acquire()
    await clock.advance(10_000)
    expect([a.lease.leading, b.lease.leading].filter(Boolean)).toHaveLength(1)
  })

  test('a lost answer to the taking write does not count as a change of leader', async () => {
    const a = candidate('a')
    a.port.after = ({ verb }) => {
      if (verb !== 'create') return
      a.port.after = () => undefined
      unreachable()
    }
    void a.lease.acquire()
    await clock.advance(3_000)
    expect(a.lease.fence).toBe(1)
  })
})

describe('losing it', () => {
  test('a leader that cannot renew for 10 s stops, 5 s before anybody may take over', async () => {
    const a = await leading('a')
    a.port.before = unreachable
    await clock.advance(9_999)
    expect(() => a.lease.assertLeading()).not.toThrow()
    await clock.advance(1)
    expect(() => a.lease.assertLeading()).toThrow(NotLeadingError)
    expect(a.lost).toEqual(['the Lease could not be renewed in time'])
  })

  test('after a pause of the whole process the check before a write is the first to notice', async () => {
    const a = await leading('a')
    Object.defineProperty(clock, 'monotonic', { value: () => 20_000 })
    expect(() => a.lease.assertLeading()).toThrow(NotLeadingError)
    expect(a.lost).toHaveLength(1)
  })

  test('short outages, lost answers and a foreign edit of the Lease do not depose', async () => {
    const a = await leading('a')
    a.port.before = unreachable
    await clock.advance(5_000)
    a.port.before = () => undefined
    await clock.advance(2_000)
    let lose = true
    a.port.after = ({ verb }) => {
      if (verb !== 'update' || !lose) return
      lose = false
      unreachable()
    }
    await clock.advance(10_000)
    await store.patch(leases, ref, [{ op: 'add', path: '/metadata/labels', value: { a: 'b' } }])
    await clock.advance(30_000)
    expect(a.lease.leading).toBe(true)
    expect(a.lease.fence).toBe(1)
    expect(a.lost).toEqual([])
  })

  test('a call that hangs leaves time for another', async () => {
    const a = await leading('a')
    let hang = true
    a.port.before = () => {
      if (!hang) return undefined
      hang = false
      return new Promise(() => undefined)
    }
    await clock.advance(60_000)
    expect(a.lease.leading).toBe(true)
  })

  test('a Lease that somebody else holds or that was deleted ends the leadership once', async () => {
    const a = await leading('a')
    const lease = await stored()
    await store.update(leases, { ...lease, spec: { ...lease.spec, holderIdentity: 'x' } })
    await clock.advance(6_000)
    expect(a.lost).toEqual(['another operator holds the Lease, or it was deleted'])
    await clock.advance(60_000)
    expect(a.lost).toHaveLength(1)
  })
})

describe('the fence', () => {
  test('is raised above the one in Redis when the Lease was deleted in between', async () => {
    const a = await leading('a')
    expect(await a.lease.raiseFence(41)).toBe(42)
    expect(a.lease.fence).toBe(42)
    expect((await stored()).spec).toMatchObject({ holderIdentity: 'a', leaseTransitions: 42 })
    await clock.advance(60_000)
    expect((await stored()).spec?.leaseTransitions).toBe(42)
  })

  test('stays when it is above already', async () => {
    const a = await leading('a')
    await a.lease.raiseFence(9)
    const writes = a.port.calls.length
    expect(await a.lease.raiseFence(3)).toBe(10)
    expect(a.port.calls).toHaveLength(writes)
  })

  test('cannot be raised or read by one that does not lead', async () => {
    const a = await leading('a')
    a.port.before = unreachable
    await clock.advance(11_000)
    await expect(a.lease.raiseFence(5)).rejects.toThrow(NotLeadingError)
    expect(() => a.lease.fence).toThrow(NotLeadingError)
  })

  test('survives a failed renewal', async () => {
    const a = await leading('a')
    await a.lease.raiseFence(9)
    a.port.before = unreachable
    await clock.advance(5_000)
    expect(a.lease.fence).toBe(10)
  })
})

describe('handing it back', () => {
  test('lets a standby take over at once, with a higher fence, and is no loss', async () => {
    const a = await leading('a')
    const b = candidate('b')
    void b.lease.acquire()
    await settle()
    await a.lease.release()
    expect(() => a.lease.assertLeading()).toThrow(NotLeadingError)
    await clock.advance(2_500)
    expect(b.lease.fence).toBe(2)
    expect(a.lost).toEqual([])
    await b.lease.release()
    await settle()
    expect(clock.pending).toBe(0)
  })

  test('a standby that ends stops trying', async () => {
    await leading('a')
    const b = candidate('b')
    const done = b.lease.acquire()
    await settle()
    await b.lease.release()
    await done
    expect(b.lease.leading).toBe(false)
  })

  test('an API server that does not answer does not keep the process from ending', async () => {
    const a = await leading('a')
    a.port.before = unreachable
    await expect(a.lease.release()).resolves.toBeUndefined()
  })
})

test('times that cannot work are refused with the rule', () => {
  expect(() => checkLeaseTimes(times)).not.toThrow()
  expect(() => checkLeaseTimes({ ...times, renewMs: 15_000 })).toThrow(/LEASE_DURATION_SECONDS > LEASE_RENEW_SECONDS > LEASE_RETRY_SECONDS/)
  expect(() => checkLeaseTimes({ ...times, retryMs: 9_000 })).toThrow(RangeError)
})

describe('annotations', () => {
  const key = 'headgate.dev/uninstall'

  async function annotateFromOutside(value: string): Promise<void> {
    const port = new FakeKubePort(store)
    const lease = await stored()
    await port.update(leases, { ...lease, metadata: { ...lease.metadata, annotations: { [key]: value } } })
  }

  test('the leader notices an annotation that somebody else sets within 4 s, and stays the leader', async () => {
    const a = await leading('a')
    const seen: unknown[] = []
    a.lease.onAnnotations((annotations) => seen.push(annotations[key]))
    expect(seen).toEqual([undefined])
    await annotateFromOutside('wanted')
    await clock.advance(4_000)
    expect(seen).toEqual([undefined, 'wanted'])
    expect(a.lease.leading).toBe(true)
    await clock.advance(60_000)
    expect((await stored()).metadata.annotations).toEqual({ [key]: 'wanted' })
    expect(seen).toHaveLength(2)
  })

  test('a leader that takes over receives what was set before', async () => {
    const a = await leading('a')
    await a.lease.annotate({ [key]: 'wanted' })
    await a.lease.release()
    const b = candidate('b')
    const seen: unknown[] = []
    b.lease.onAnnotations((annotations) => seen.push(annotations[key]))
    await b.lease.acquire()
    expect(seen).toEqual(['wanted'])
  })

  test('the leader reports back although the Lease changed meanwhile; what it does not name stays, and null removes', async () => {
    const a = await leading('a')
    await annotateFromOutside('wanted')
    await a.lease.annotate({ 'headgate.dev/released': '3' })
    expect((await stored()).metadata.annotations).toEqual({ [key]: 'wanted', 'headgate.dev/released': '3' })
    await a.lease.annotate({ [key]: null })
    expect((await stored()).metadata.annotations).toEqual({ 'headgate.dev/released': '3' })
    expect(a.lease.leading).toBe(true)
  })

  test('only the leader may annotate', async () => {
    await leading('a')
    await expect(candidate('b').lease.annotate({ [key]: 'wanted' })).rejects.toThrow()
    expect((await stored()).metadata.annotations).toBeUndefined()
  })
})

test('a process that is stopped while it takes the Lease hands it back', async () => {
  const a = candidate('a')
  let answer = (): void => undefined
  a.port.after = (call) => (call.verb === 'create' ? new Promise<void>((resolve) => (answer = resolve)) : undefined)
  const acquiring = a.lease.acquire()
  await settle()
  const released = a.lease.release()
  answer()
  await Promise.all([acquiring, released])
  expect(a.lease.leading).toBe(false)
  expect((await stored()).spec?.holderIdentity).toBe('')
})
