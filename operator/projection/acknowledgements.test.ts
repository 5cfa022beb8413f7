import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Acknowledgement } from '#contract/records/revision-log.ts'
import { FaultyProjectionStore } from '../../test/support/faulty-projection-store.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { heartbeat as anyHeartbeat } from '../../test/support/records.ts'
import type { EndpointSlice } from '#kube/resources.ts'
import { Acknowledgements, BackendHealth, type Confirmation } from './acknowledgements.ts'
import type { LiveProcess } from './store.ts'

const EPOCH = 'e1'

const heartbeat = (pod: string, revision: number, change: Partial<Acknowledgement> = {}, name?: string): LiveProcess =>
  anyHeartbeat(pod, { epoch: EPOCH, revision, ...change }, name)

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

let store: FaultyProjectionStore
let clock: ManualClock
let slices: EndpointSlice[]
/** Every call of a callback, in order. */
let log: string[]
/** The pods of each call about pods that hold up keys. */
let lagging: string[]
let acknowledgements: Acknowledgements

beforeEach(() => {
  store = new FaultyProjectionStore()
  store.live = []
  clock = new ManualClock()
  slices = []
  log = []
  lagging = []
  acknowledgements = new Acknowledgements({
    store,
    clock,
    epoch: () => EPOCH,
    gatewaySlices: () => slices,
    onConfirmed: (key) => log.push(`confirmed ${key}`),
    onProgress: (key) => log.push(`progress ${key}`),
    onServingChanged: () => log.push('serving changed'),
    onLagging: (pods) => lagging.push(pods.join()),
    onPoll: () => undefined,
  })
})
afterEach(() => acknowledgements.stop())

async function after(live: readonly LiveProcess[], serving: readonly EndpointSlice[] = []): Promise<Acknowledgements> {
  store.live = live
  slices = [...serving]
  acknowledgements.start()
  await clock.advance(0)
  log.length = 0
  return acknowledgements
}

describe('the pods that count', () => {
  test('a pod counts when it serves or sends heartbeats, and its heartbeat gives the revision that it has applied', async () => {
    const acks = await after([heartbeat('a', 5), heartbeat('b', 4)], [slice('a', 'c')])
    expect(acks.confirmation(5, 'key')).toEqual({ state: 'Waiting', ready: 1, total: 3, missing: ['b', 'c'] })
    expect(acks.confirmation(4, 'key')).toEqual({ state: 'Waiting', ready: 2, total: 3, missing: ['c'] })
  })

  test('a pod with two processes has applied a revision when both processes have applied it', async () => {
    const acks = await after([heartbeat('a', 5, {}, '1'), heartbeat('a', 4, {}, '2')])
    expect(acks.confirmation(5, 'key')).toMatchObject({ state: 'Waiting', ready: 0, total: 1 })
    expect(acks.confirmation(4, 'key')).toMatchObject({ state: 'Acknowledged', ready: 1, total: 1 })
  })

  const fullList = Array.from({ length: 64 }, (_, index) => `other-${index}`)
  test.each<[string, Partial<Acknowledgement>]>([
    ['of another data set', { epoch: 'e0', revision: 99 }],
    ['that names this record as unreadable', { unreadable: ['key'] }],
    ['whose list of unreadable records is full, so that the list may omit this record,', { unreadable: fullList }],
  ])('an acknowledgement %s does not count', async (_what, change) => {
    const acks = await after([heartbeat('a', 5, change)])
    expect(acks.confirmation(5, 'key')).toEqual({ state: 'Waiting', ready: 0, total: 1, missing: ['a'] })
  })

  test('an acknowledgement that names another record as unreadable counts for this record', async () => {
    const acks = await after([heartbeat('a', 5, { unreadable: ['other'] })])
    expect(acks.confirmation(5, 'key').state).toBe('Acknowledged')
  })

  test('an unreadable heartbeat acknowledges nothing, and its pod is waited for', async () => {
    const acks = await after([{ process: 'a/1', pod: 'a', acknowledgement: undefined }])
    expect(acks.confirmation(1, 'key')).toMatchObject({ state: 'Waiting', missing: ['a'] })
  })

  test('a starting pod is not waited for: it loads all records before it serves', async () => {
    const acks = await after([heartbeat('a', 5), heartbeat('new', 0, { ready: false, epoch: '' })])
    expect(acks.confirmation(5, 'key')).toMatchObject({ state: 'Acknowledged', total: 1 })
  })

  test.each<[string, Endpoint['conditions'], boolean]>([
    ['ready', { ready: true }, true],
    ['of unknown readiness', {}, true],
    ['not ready', { ready: false }, false],
    ['terminating and still serving', { ready: false, serving: true, terminating: true }, true],
    ['terminating and done', { ready: false, serving: false, terminating: true }, false],
  ])('an endpoint that is %s: expected is %o → %s', async (_what, conditions, isExpected) => {
    const endpoint = { addresses: ['10.0.0.9'], ...(conditions ? { conditions } : {}), targetRef: { kind: 'Pod', name: 'z' } }
    const acks = await after([], [slice(endpoint)])
    expect(acks.confirmation(1, 'key').missing).toEqual(isExpected ? ['z'] : [])
  })

  test('an endpoint without a pod is named by its address', async () => {
    const acks = await after([], [slice({ addresses: ['10.0.0.9'] })])
    expect(acks.confirmation(1, 'key').missing).toEqual(['10.0.0.9'])
  })
})

describe('the state of a revision', () => {
  const nothing: Confirmation = { state: 'Unknown', ready: 0, total: 0, missing: [] }

  test('is Unknown until the store has answered, and NoGateways without any pod, which is no proof', async () => {
    expect(acknowledgements.confirmation(0, 'key')).toEqual(nothing)
    const acks = await after([])
    expect(acks.confirmation(0, 'key')).toEqual({ ...nothing, state: 'NoGateways' })
  })

  test('is Unknown while the store is down, and known again once the store answers', async () => {
    const acks = await after([heartbeat('a', 5)])
    store.stop()
    await clock.advance(1_000)
    expect([acks.confirmation(5, 'key').state, acks.watermark]).toEqual(['Unknown', 0])
    store.resume()
    await clock.advance(1_000)
    expect([acks.confirmation(5, 'key').state, acks.watermark]).toEqual(['Acknowledged', 5])
  })

  test('the watermark is the revision of the slowest pod, and 0 while a pod serves without a heartbeat', async () => {
    const acks = await after([heartbeat('a', 9), heartbeat('b', 7)])
    expect(acks.watermark).toBe(7)
    slices = [slice('cut-off')]
    await clock.advance(1_000)
    expect(acks.watermark).toBe(0)
  })
})

describe('an expected key', () => {
  test('is confirmed once, within milliseconds, at the first poll in which every pod has applied its revision', async () => {
    const acks = await after([heartbeat('a', 4)])
    acks.expect('key', 5, 'uid')
    store.live = [heartbeat('a', 5)]
    await clock.advance(4)
    expect(log).toEqual(['confirmed key'])
    await clock.advance(5_000)
    expect(log).toEqual(['confirmed key'])
    expect(acks.waiting).toBe(0)
  })

  test('that is acknowledged already is confirmed by the next poll, never by the call of `expect`', async () => {
    const acks = await after([heartbeat('a', 5)])
    acks.expect('key', 5, 'uid')
    expect(log).toEqual([])
    await clock.advance(4)
    expect(log).toEqual(['confirmed key'])
  })

  test('is confirmed once the slowest pod has applied its revision; keys are confirmed in the order of their revisions', async () => {
    const acks = await after([heartbeat('a', 4), heartbeat('b', 4)])
    for (const revision of [8, 6, 7, 5]) acks.expect(`key-${revision}`, revision, `uid-${revision}`)
    store.live = [heartbeat('a', 8), heartbeat('b', 6)]
    await clock.advance(4)
    expect(log).toEqual(['confirmed key-5', 'confirmed key-6'])
    store.live = [heartbeat('a', 8), heartbeat('b', 8)]
    await clock.advance(100)
    expect(log.slice(2)).toEqual(['confirmed key-7', 'confirmed key-8'])
  })

  test('is confirmed when no pod serves: there is no pod to wait for', async () => {
    const acks = await after([])
    acks.expect('key', 5, 'uid')
    await clock.advance(4)
    expect(log).toEqual(['confirmed key'])
    expect(acks.confirmation(5, 'uid').state).toBe('NoGateways')
  })

  test('whose record a pod cannot read is not confirmed until the pod has read the record', async () => {
    const acks = await after([heartbeat('a', 9, { unreadable: ['uid'] })])
    acks.expect('key', 5, 'uid')
    acks.expect('other', 5, 'other')
    await clock.advance(1_000)
    expect(log).toEqual(['confirmed other'])
    store.live = [heartbeat('a', 9)]
    await clock.advance(100)
    expect(log).toEqual(['confirmed other', 'confirmed key'])
  })

  test('is not confirmed while another pod is there that has applied an older revision only', async () => {
    const acks = await after([heartbeat('a', 4)])
    acks.expect('key', 5, 'uid')
    store.live = [heartbeat('a', 5), heartbeat('b', 3)]
    await clock.advance(100)
    expect(log).toEqual(['serving changed'])
    store.live = [heartbeat('a', 5)]
    await clock.advance(100)
    expect(log.slice(1)).toEqual(['serving changed', 'confirmed key'])
  })

  test('is confirmed for its newest revision only, and not at all after it was forgotten', async () => {
    const acks = await after([heartbeat('a', 4)])
    acks.expect('key', 5, 'uid')
    acks.expect('key', 7, 'uid')
    acks.expect('deleted', 5, 'uid-2')
    acks.forget('deleted')
    store.live = [heartbeat('a', 5)]
    await clock.advance(100)
    expect(log).toEqual([])
    store.live = [heartbeat('a', 7)]
    await clock.advance(100)
    expect(log).toEqual(['confirmed key'])
  })

  test('that a pod holds up for 5 s is reported once with the name of the pod, and once more when none is held up', async () => {
    const acks = await after([heartbeat('a', 9), heartbeat('deaf', 4)])
    acks.expect('key', 5, 'uid')
    await clock.advance(3_000)
    for (let at = 0; at < 4; at += 1) {
      acks.expect('key', 5, 'uid') // a resync asks again for the same revision
      acks.expect('edited', 6 + at, 'uid-2')
      await clock.advance(1_000)
    }
    expect(lagging).toEqual(['deaf'])
    store.live = [heartbeat('a', 9)]
    slices = [slice('deaf')] // it is still sent requests, but its heartbeat is gone
    await clock.advance(10_000)
    expect(lagging).toEqual(['deaf'])
    slices = []
    await clock.advance(2_000)
    expect(lagging).toEqual(['deaf', ''])
  })

  test('is held up by each pod that lacks its revision, also if another pod lacks an older one', async () => {
    const acks = await after([heartbeat('a', 9), heartbeat('late', 7), heartbeat('later', 4)])
    acks.expect('older', 5, 'uid')
    acks.expect('newer', 8, 'uid-2')
    await clock.advance(8_000)
    expect(lagging).toEqual(['late,later'])
  })

  test('causes frequent polls, after a while every 100 ms; without an expected key there is one poll per second', async () => {
    const acks = await after([heartbeat('a', 4)])
    acks.expect('key', 5, 'uid')
    const before = store.calls.length
    await clock.advance(100)
    expect(store.calls.length - before).toBeGreaterThan(4)
    await clock.advance(1_900)
    const slow = store.calls.length
    await clock.advance(1_000)
    expect(store.calls.length - slow).toBe(10)
    acks.forget('key')
    await clock.advance(100)
    const idle = store.calls.length
    await clock.advance(5_000)
    expect(store.calls.length - idle).toBe(5)
  })

  test('does not delay the polls, even if more keys arrive all the time', async () => {
    const acks = await after([heartbeat('a', 9)])
    for (let index = 0; index < 50; index += 1) {
      acks.expect(`key-${index}`, 5, 'uid')
      await clock.advance(1)
    }
    expect(log.length).toBeGreaterThan(30)
  })

  test('costs a poll almost nothing, even if ten thousand keys wait for one of 200 pods', async () => {
    const pods = Array.from({ length: 200 }, (_, index) => heartbeat(`pod-${index}`, 20_000))
    const acks = await after(pods, [slice('deaf')])
    const cpuOfPolls = async (from: number, keys: number): Promise<number> => {
      for (let index = from; index < keys; index += 1) acks.expect(`key-${index}`, 5 + index, `uid-${index}`)
      const before = process.cpuUsage()
      await clock.advance(10_000)
      const { user, system } = process.cpuUsage(before)
      return user + system
    }
    const few = await cpuOfPolls(0, 10)
    expect(await cpuOfPolls(10, 10_000), 'a thousand times as many keys').toBeLessThan(50 * few)
    expect(log).toEqual([])
  })
})

describe('progress and changes', () => {
  test('a key with other counts in its status is reported at most once a second, and not again for the same counts', async () => {
    const acks = await after([heartbeat('a', 4), heartbeat('b', 4)])
    acks.expect('key', 5, 'uid', { ready: 0, total: 2 })
    acks.expect('silent', 5, 'uid-2')
    store.live = [heartbeat('a', 5), heartbeat('b', 4)]
    await clock.advance(1_100)
    expect(log).toEqual(['progress key'])
    await clock.advance(5_000)
    expect(log).toEqual(['progress key'])
  })

  test('a key whose status has the present counts is not reported', async () => {
    const acks = await after([heartbeat('a', 5), heartbeat('b', 4)])
    acks.expect('key', 5, 'uid', { ready: 1, total: 2 })
    await clock.advance(5_000)
    expect(log).toEqual([])
  })

  test('a pod that appears or disappears is reported once; another revision of the same pods is not reported', async () => {
    await after([heartbeat('a', 4)])
    store.live = [heartbeat('a', 5)]
    await clock.advance(1_000)
    expect(log).toEqual([])
    slices = [slice('b')]
    await clock.advance(2_000)
    expect(log).toEqual(['serving changed'])
  })

  test('nothing is reported after the stop', async () => {
    const acks = await after([heartbeat('a', 4)])
    acks.expect('key', 5, 'uid')
    acks.stop()
    store.live = [heartbeat('a', 5)]
    await clock.advance(10_000)
    expect(log).toEqual([])
    expect(clock.pending).toBe(0)
  })
})

test('a model is reported when a gateway reports another health of its backend, and again when the backend is healthy', () => {
  const health = new BackendHealth()
  const down = [anyHeartbeat('a', { backends: { 'uid-1/main': { up: 0, total: 2 } } }), anyHeartbeat('b')]
  expect([...health.changed(down)]).toEqual(['uid-1'])
  expect([...health.changed(down.toReversed())]).toEqual([])
  expect([...health.changed([anyHeartbeat('a')])]).toEqual(['uid-1'])
})

test('another order of the heartbeats is not a change', () => {
  const health = new BackendHealth()
  const reports = [
    anyHeartbeat('a', { backends: { 'u/x': { up: 0, total: 2 } } }),
    anyHeartbeat('b', { backends: { 'u/x': { up: 1, total: 2 } } }),
  ]
  health.changed(reports)
  expect([...health.changed(reports.toReversed())]).toEqual([])
})
