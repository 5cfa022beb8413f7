import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { apiKey } from '../../../test/support/objects.ts'
import { acknowledgement } from '../../../test/support/records.ts'
import { LIMITS_FEATURE } from '#contract/records/format.ts'
import type { ApiKey } from '#api/apikey.ts'
import { refKey, refOf } from '#kube/port.ts'
import type { LiveProcess } from '../../projection/store.ts'
import type { ModelsListener } from '../served-model/projected-models.ts'
import { LimitWatch } from './limit-watch.ts'

const limits = { requestsPerMinute: 1 }
const KEYS: readonly ApiKey[] = [
  apiKey('limited', { limits }),
  apiKey('free'),
  apiKey('bank-limited', { limits }, { namespace: 'bank' }),
  apiKey('no-budget', { budgets: [] }),
]

function process(change: Partial<LiveProcess> = {}): LiveProcess {
  return { process: 'g-0/1', pod: 'g-0', acknowledgement: acknowledgement(), ...change }
}
const old = (): LiveProcess => process({ acknowledgement: acknowledgement({ features: [] }) })

class Scene {
  readonly clock = new ManualClock()
  readonly enqueued: string[] = []
  live: readonly LiveProcess[] = []
  keys = KEYS
  changed: ModelsListener = () => undefined
  readonly watch = new LimitWatch({
    apiKeys: { list: () => this.keys },
    acknowledgements: this,
    models: { onChanged: (listener) => void (this.changed = listener) },
    clock: this.clock,
    enqueue: (_kind, ref) => void this.enqueued.push(refKey(ref)),
  })

  poll(...live: readonly LiveProcess[]): string {
    this.live = live
    this.watch.polled()
    return this.watch.supports(LIMITS_FEATURE)
  }

  async passed(ms: number): Promise<readonly string[]> {
    await this.clock.advance(ms)
    return this.enqueued.splice(0)
  }
}

describe('gateways that hold limits', () => {
  test.each<[string, LiveProcess, string]>([
    ['of this version', process(), 'Current'],
    ['of the version before', old(), 'TooOld'],
    ['whose heartbeat cannot be read', process({ acknowledgement: undefined }), 'TooOld'],
    ['that is ahead of a store with older data', process({ acknowledgement: undefined, isAhead: true }), 'Current'],
    ['that is starting and does not serve yet', process({ acknowledgement: acknowledgement({ features: [], ready: false }) }), 'Unknown'],
  ])('a gateway %s counts as expected', (_, live, expected) => {
    expect(new Scene().poll(live)).toBe(expected)
    if (expected !== 'Unknown') expect(new Scene().poll(process(), live)).toBe(expected)
  })

  test('a gateway that restarts often causes no status writes each time', async () => {
    const scene = new Scene()
    scene.poll(old())
    await scene.passed(1_000)
    for (let second = 0; second < 300; second += 1) {
      scene.poll(...(second % 2 === 0 ? [process()] : [old()]))
      expect(await scene.passed(1_000)).toEqual([])
    }
  })
})

describe('keys that a change may affect', () => {
  test('are keys with limits or budgets, enqueued a second later', async () => {
    const scene = new Scene()
    scene.poll(old())
    expect(await scene.passed(999)).toEqual([])
    expect(await scene.passed(1)).toEqual(['shop/limited', 'bank/bank-limited'])
  })

  test('of one namespace need no look at the policies of the keys of others', async () => {
    const scene = new Scene()
    const looked: string[] = []
    scene.keys = KEYS.map((key) => ({
      ...key,
      get spec() {
        looked.push(refKey(refOf(key)))
        return key.spec
      },
    }))
    scene.changed(['bank'])
    await scene.passed(1_000)
    expect(new Set(looked)).toEqual(new Set(['bank/bank-limited']))
  })

  test('are keys of the changed namespaces, and many changes are collected into one', async () => {
    const scene = new Scene()
    for (let count = 0; count < 100; count += 1) scene.changed(['bank'])
    expect(await scene.passed(1_000)).toEqual(['bank/bank-limited'])
    scene.changed(['bank'])
    scene.changed('*')
    scene.changed(['bank'])
    expect(await scene.passed(1_000)).toEqual(['shop/limited', 'bank/bank-limited'])
    expect(await scene.passed(10_000)).toEqual([])
  })
})
