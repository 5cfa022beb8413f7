import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Acknowledgement } from '../../gateway/shared/revision-log.ts'
import { FaultyProjectionStore } from '../../test/support/faulty-projection-store.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import type { EndpointSlice } from '../kube/resources.ts'
import { Acknowledgements, type Confirmation } from './acknowledgements.ts'
import type { LiveProcess } from './store.ts'

const EPOCH = 'e1'

function heartbeat(pod: string, revision: number, change: Partial<Acknowledgement> = {}, name = '1'): LiveProcess {
  const ack: Acknowledgement = {
    epoch: EPOCH,
    revision,
    source: 'Redis',
    ready: true,
    version: 't',
    schemas: [1],
    features: [],
    unreadable: [],
    backends: {},
  }
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

let store: FaultyProjectionStore
let clock: ManualClock
let slices: EndpointSlice[]
/** Every callback, in order. */
let log: string[]
let acknowledgements: Acknowledgements

beforeEach(() => {
  store = new FaultyProjectionStore()
  store.live = []
  clock = new ManualClock()
  slices = []
  log = []
  acknowledgements = new Acknowledgements({
    store,
    clock,
    epoch: () => EPOCH,
    gatewaySlices: () => slices,
    onConfirmed: (key) => log.push(`confirmed ${key}`),
    onProgress: (key) => log.push(`progress ${key}`),
    onServingChanged: () => log.push('serving changed'),
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

describe('who counts', () => {
  test('a pod counts when it serves or sends heartbeats; it has applied what its heartbeat says', async () => {
    const acks = await after([heartbeat('a', 5), heartbeat('b', 4)], [slice('a', 'c')])
    expect(acks.confirmation(5, 'key')).toEqual({ state: 'Waiting', ready: 1, total: 3, missing: ['b', 'c'] })
    expect(acks.confirmation(4, 'key')).toEqual({ state: 'Waiting', ready: 2, total: 3, missing: ['c'] })
  })

  test('a pod with two processes has applied what both have', async () => {
    const acks = await after([heartbeat('a', 5, {}, '1'), heartbeat('a', 4, {}, '2')])
    expect(acks.confirmation(5, 'key')).toMatchObject({ state: 'Waiting', ready: 0, total: 1 })
    expect(acks.confirmation(4, 'key')).toMatchObject({ state: 'Acknowledged', ready: 1, total: 1 })
  })

  const fullList = Array.from({ length: 64 }, (_, index) => `other-${index}`)
  test.each<[string, Partial<Acknowledgement>]>([
    ['of another data set', { epoch: 'e0', revision: 99 }],
    ['that could not read this very record', { unreadable: ['key'] }],
    ['whose list of unreadable records is full, so that this one may be missing from it', { unreadable: fullList }],
  ])('an acknowledgement %s does not count', async (_what, change) => {
    const acks = await after([heartbeat('a', 5, change)])
    expect(acks.confirmation(5, 'key')).toEqual({ state: 'Waiting', ready: 0, total: 1, missing: ['a'] })
  })

  test('one that cannot read another record counts for this one', async () => {
    const acks = await after([heartbeat('a', 5, { unreadable: ['other'] })])
    expect(acks.confirmation(5, 'key').state).toBe('Acknowledged')
  })

  test('a heartbeat that cannot be read acknowledges nothing, and is waited for', async () => {
    const acks = await after([{ process: 'a/1', pod: 'a', acknowledgement: undefined }])
    expect(acks.confirmation(1, 'key')).toMatchObject({ state: 'Waiting', missing: ['a'] })
  })

  test('a pod that is still starting is not waited for: it loads everything before it serves', async () => {
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

describe('what is known', () => {
  const nothing: Confirmation = { state: 'Unknown', ready: 0, total: 0, missing: [] }

  test('the state is unknown until the store has answered; without any pod it is NoGateways, which is no proof', async () => {
    expect(acknowledgements.confirmation(0, 'key')).toEqual(nothing)
    const acks = await after([])
    expect(acks.confirmation(0, 'key')).toEqual({ ...nothing, state: 'NoGateways' })
  })

  test('while the store is down nothing is known, and it is again when it answers', async () => {
    const acks = await after([heartbeat('a', 5)])
    store.stop()
    await clock.advance(1_000)
    expect([acks.confirmation(5, 'key').state, acks.watermark]).toEqual(['Unknown', 0])
    store.resume()
    await clock.advance(1_000)
    expect([acks.confirmation(5, 'key').state, acks.watermark]).toEqual(['Acknowledged', 5])
  })

  test('the watermark is that of the slowest pod, a pod that serves without a heartbeat included', async () => {
    const acks = await after([heartbeat('a', 9), heartbeat('b', 7)])
    expect(acks.watermark).toBe(7)
    slices = [slice('cut-off')]
    await clock.advance(1_000)
    expect(acks.watermark).toBe(0)
  })
})

describe('expecting', () => {
  test('a key is confirmed once, at the first poll that shows it everywhere, within milliseconds', async () => {
    const acks = await after([heartbeat('a', 4)])
    acks.expect('key', 5, 'uid')
    store.live = [heartbeat('a', 5)]
    await clock.advance(4)
    expect(log).toEqual(['confirmed key'])
    await clock.advance(5_000)
    expect(log).toEqual(['confirmed key'])
    expect(acks.waiting).toBe(0)
  })

  test('what is acknowledged already is confirmed too, but never from within the call', async () => {
    const acks = await after([heartbeat('a', 5)])
    acks.expect('key', 5, 'uid')
    expect(log).toEqual([])
    await clock.advance(4)
    expect(log).toEqual(['confirmed key'])
  })

  test('keys are confirmed as far as the slowest pod has come, in the order of their revisions', async () => {
    const acks = await after([heartbeat('a', 4), heartbeat('b', 4)])
    for (const revision of [8, 6, 7, 5]) acks.expect(`key-${revision}`, revision, `uid-${revision}`)
    store.live = [heartbeat('a', 8), heartbeat('b', 6)]
    await clock.advance(4)
    expect(log).toEqual(['confirmed key-5', 'confirmed key-6'])
    store.live = [heartbeat('a', 8), heartbeat('b', 8)]
    await clock.advance(100)
    expect(log.slice(2)).toEqual(['confirmed key-7', 'confirmed key-8'])
  })

  test('when no pod serves, every expectation is confirmed: there is no pod to wait for', async () => {
    const acks = await after([])
    acks.expect('key', 5, 'uid')
    await clock.advance(4)
    expect(log).toEqual(['confirmed key'])
    expect(acks.confirmation(5, 'uid').state).toBe('NoGateways')
  })

  test('a record that a pod cannot read is waited for until the pod has read it', async () => {
    const acks = await after([heartbeat('a', 9, { unreadable: ['uid'] })])
    acks.expect('key', 5, 'uid')
    acks.expect('other', 5, 'other')
    await clock.advance(1_000)
    expect(log).toEqual(['confirmed other'])
    store.live = [heartbeat('a', 9)]
    await clock.advance(100)
    expect(log).toEqual(['confirmed other', 'confirmed key'])
  })

  test('a pod that comes up behind holds up the proof', async () => {
    const acks = await after([heartbeat('a', 4)])
    acks.expect('key', 5, 'uid')
    store.live = [heartbeat('a', 5), heartbeat('b', 3)]
    await clock.advance(100)
    expect(log).toEqual(['serving changed'])
    store.live = [heartbeat('a', 5)]
    await clock.advance(100)
    expect(log.slice(1)).toEqual(['serving changed', 'confirmed key'])
  })

  test('only the newest revision of a key counts, and a forgotten key is not confirmed', async () => {
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

  test('polls are frequent while a key is expected, at most each 100 ms after a while, and each second otherwise', async () => {
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

  test('keys that arrive without end do not put off the poll', async () => {
    const acks = await after([heartbeat('a', 9)])
    for (let index = 0; index < 50; index += 1) {
      acks.expect(`key-${index}`, 5, 'uid')
      await clock.advance(1)
    }
    expect(log.length).toBeGreaterThan(30)
  })

  test('ten thousand keys that wait for one deaf pod of 200 do not burden the polls', async () => {
    const pods = Array.from({ length: 200 }, (_, index) => heartbeat(`pod-${index}`, 20_000))
    const acks = await after(pods, [slice('deaf')])
    for (let index = 0; index < 10_000; index += 1) acks.expect(`key-${index}`, 5 + index, `uid-${index}`)
    const before = process.cpuUsage()
    await clock.advance(20_000)
    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 1_000_000).toBeLessThan(3)
    expect(log).toEqual([])
  })
})

describe('progress and changes', () => {
  test('a key whose status says other counts is offered, at most once a second, and not again for the same counts', async () => {
    const acks = await after([heartbeat('a', 4), heartbeat('b', 4)])
    acks.expect('key', 5, 'uid', { ready: 0, total: 2 })
    acks.expect('silent', 5, 'uid-2')
    store.live = [heartbeat('a', 5), heartbeat('b', 4)]
    await clock.advance(1_100)
    expect(log).toEqual(['progress key'])
    await clock.advance(5_000)
    expect(log).toEqual(['progress key'])
  })

  test('counts that the status says already are not offered', async () => {
    const acks = await after([heartbeat('a', 5), heartbeat('b', 4)])
    acks.expect('key', 5, 'uid', { ready: 1, total: 2 })
    await clock.advance(5_000)
    expect(log).toEqual([])
  })

  test('a pod that appears or disappears is reported once, a new revision of the same pods is not', async () => {
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
