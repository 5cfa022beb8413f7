import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Acknowledgement } from '../../gateway/shared/revision-log.ts'
import { FaultyProjectionStore } from '../../test/support/faulty-projection-store.ts'
import { ManualClock, settle } from '../../test/support/manual-clock.ts'
import type { EndpointSlice } from '../kube/resources.ts'
import { Acknowledgements, isConfirmed } from './acknowledgements.ts'
import type { LiveProcess } from './store.ts'

const EPOCH = 'e1'

function process(pod: string, rev: number, change: Partial<Acknowledgement> = {}, name = '1'): LiveProcess {
  const ack: Acknowledgement = { epoch: EPOCH, rev, source: 'Redis', ready: true, version: 't', schemas: [1], bad: [], backends: {} }
  return { process: `${pod}/${name}`, pod, acknowledgement: { ...ack, ...change } }
}

type Endpoint = NonNullable<EndpointSlice['endpoints']>[number]

function slice(...endpoints: Array<string | Endpoint>): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'gateway', namespace: 'headgate' },
    addressType: 'IPv4',
    endpoints: endpoints.map((one) =>
      typeof one === 'string' ? { addresses: ['10.0.0.1'], conditions: { ready: true }, targetRef: { kind: 'Pod', name: one } } : one,
    ),
  }
}

describe('Acknowledgements', () => {
  let store: FaultyProjectionStore
  let clock: ManualClock
  let slices: EndpointSlice[]
  let polls: number
  let acknowledgements: Acknowledgements

  beforeEach(() => {
    store = new FaultyProjectionStore()
    store.live = []
    clock = new ManualClock()
    slices = []
    polls = 0
    acknowledgements = new Acknowledgements({ store, clock, epoch: () => EPOCH, gatewaySlices: () => slices, onPoll: () => (polls += 1) })
  })
  afterEach(() => acknowledgements.stop())

  async function after(live: readonly LiveProcess[], serving: readonly EndpointSlice[] = []): Promise<Acknowledgements> {
    store.live = live
    slices = [...serving]
    acknowledgements.start()
    await clock.advance(0)
    return acknowledgements
  }

  describe('who counts', () => {
    test('a pod counts when it serves or sends heartbeats; it has applied what its heartbeat says', async () => {
      const told = await after([process('a', 5), process('b', 4)], [slice('a', 'c')])
      expect(told.of(5, 'key')).toEqual({ ready: 1, total: 3, missing: ['b', 'c'], known: true })
      expect(told.of(4, 'key')).toEqual({ ready: 2, total: 3, missing: ['c'], known: true })
    })

    test('a pod with two processes has applied what both have', async () => {
      const told = await after([process('a', 5, {}, '1'), process('a', 4, {}, '2')])
      expect(told.of(5, 'key')).toMatchObject({ ready: 0, total: 1 })
      expect(told.of(4, 'key')).toMatchObject({ ready: 1, total: 1 })
    })

    test.each<[string, Partial<Acknowledgement>]>([
      ['of another data set', { epoch: 'e0', rev: 99 }],
      ['that could not read this very record', { bad: ['key'] }],
    ])('an acknowledgement %s does not count', async (_what, change) => {
      const told = await after([process('a', 5, change)])
      expect(told.of(5, 'key')).toMatchObject({ ready: 0, missing: ['a'] })
    })

    test('one that cannot read another record counts for this one', async () => {
      const told = await after([process('a', 5, { bad: ['other'] })])
      expect(isConfirmed(told.of(5, 'key'))).toBe(true)
    })

    test('a heartbeat that cannot be read acknowledges nothing, and is waited for', async () => {
      const told = await after([{ process: 'a/1', pod: 'a', acknowledgement: undefined }])
      expect(told.of(1, 'key')).toMatchObject({ ready: 0, total: 1, missing: ['a'] })
    })

    test('a pod that is still starting is not waited for: it loads everything before it serves', async () => {
      const told = await after([process('a', 5), process('new', 0, { ready: false, epoch: '' })])
      expect(told.of(5, 'key')).toMatchObject({ ready: 1, total: 1 })
    })

    test.each<[string, Endpoint['conditions'], boolean]>([
      ['ready', { ready: true }, true],
      ['of unknown readiness', {}, true],
      ['not ready', { ready: false }, false],
      ['terminating and still serving', { ready: false, serving: true, terminating: true }, true],
      ['terminating and done', { ready: false, serving: false, terminating: true }, false],
    ])('an endpoint that is %s: expected is %o → %s', async (_what, conditions, isExpected) => {
      const told = await after(
        [],
        [slice({ addresses: ['10.0.0.9'], ...(conditions ? { conditions } : {}), targetRef: { kind: 'Pod', name: 'z' } })],
      )
      expect(told.of(1, 'key').missing).toEqual(isExpected ? ['z'] : [])
    })

    test('an endpoint without a pod is named by its address', async () => {
      const told = await after([], [slice({ addresses: ['10.0.0.9'] })])
      expect(told.of(1, 'key').missing).toEqual(['10.0.0.9'])
    })

    test('nobody at all confirms nothing, and neither does a store that has not answered', async () => {
      expect(isConfirmed(acknowledgements.of(0, 'key'))).toBe(false)
      const told = await after([])
      expect(told.of(0, 'key')).toEqual({ ready: 0, total: 0, missing: [], known: true })
      expect(isConfirmed(told.of(0, 'key'))).toBe(false)
    })

    test('while the store is down nothing is known, and it is again when it answers', async () => {
      const told = await after([process('a', 5)])
      store.stop()
      await clock.advance(1_000)
      expect(told.of(5, 'key').known).toBe(false)
      expect(isConfirmed(told.of(5, 'key'))).toBe(false)
      store.resume()
      await clock.advance(1_000)
      expect(isConfirmed(told.of(5, 'key'))).toBe(true)
    })
  })

  describe('waiting', () => {
    test('ends at the first poll that shows it everywhere, within some milliseconds', async () => {
      const told = await after([process('a', 4)])
      const waiting = told.wait(5, 'key', 1_000)
      store.live = [process('a', 5)]
      await clock.advance(5)
      expect(await waiting).toMatchObject({ ready: 1, total: 1, known: true })
    })

    test('does not wait for what is known already', async () => {
      const told = await after([process('a', 5)])
      const calls = store.calls.length
      expect(await told.wait(5, 'key', 1_000)).toMatchObject({ ready: 1 })
      expect(store.calls).toHaveLength(calls)
    })

    test('ends after its time and says who is missing', async () => {
      const told = await after([process('a', 5)], [slice('frozen')])
      const started = clock.monotonic()
      const waiting = told.wait(5, 'key', 1_000)
      await clock.advance(1_000)
      expect(await waiting).toEqual({ ready: 1, total: 2, missing: ['frozen'], known: true })
      expect(clock.monotonic() - started).toBe(1_000)
    })

    test('ends at once when nobody serves', async () => {
      const told = await after([])
      const waiting = told.wait(5, 'key', 30_000)
      await clock.advance(5)
      expect(await waiting).toMatchObject({ total: 0, known: true })
    })

    test('ends when it is called off, and when the operator stops', async () => {
      const told = await after([process('a', 4)])
      const calledOff = new AbortController()
      const one = told.wait(5, 'key', 30_000, calledOff.signal)
      const other = told.wait(5, 'key', 30_000)
      calledOff.abort()
      expect(await one).toMatchObject({ ready: 0 })
      acknowledgements.stop()
      expect(await other).toMatchObject({ ready: 0 })
    })

    test('asks often while somebody waits, at most every 100 ms after a while, and once a second else', async () => {
      const told = await after([process('a', 4)])
      const waiting = told.wait(5, 'key', 10_000)
      const before = store.calls.length
      await clock.advance(100)
      expect(store.calls.length - before).toBeGreaterThan(4)
      await clock.advance(1_900)
      const slow = store.calls.length
      await clock.advance(1_000)
      expect(store.calls.length - slow).toBe(10)
      store.live = [process('a', 5)]
      await clock.advance(100)
      await waiting
      await settle()
      const idle = store.calls.length
      await clock.advance(5_000)
      expect(store.calls.length - idle).toBeLessThanOrEqual(6)
    })

    test('tells after each poll, also after one that failed, and no more after stop', async () => {
      const told = await after([])
      expect(polls).toBe(1)
      store.stop()
      await clock.advance(1_000)
      expect(polls).toBe(2)
      told.stop()
      await clock.advance(10_000)
      expect(polls).toBe(2)
    })
  })
})
