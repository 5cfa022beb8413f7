import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { stampRevision } from '../../gateway/shared/revision-log.ts'
import { FaultyProjectionStore } from '../../test/support/faulty-projection-store.ts'
import { ManualClock, settle } from '../../test/support/manual-clock.ts'
import { issuedKey, modelText, recordText } from '../../test/support/records.ts'
import { Projection, type ProjectionDeps } from './projection.ts'
import type { LiveProcess, ProjectionChange } from './store.ts'

const { record } = issuedKey('template')
const text = (id: string, state: 'Active' | 'Suspended' = 'Active'): string => recordText({ ...record, uid: id, st: state })
const put = (id: string, state?: 'Suspended'): ProjectionChange => ({ kind: 'key', op: 'put', id, text: text(id, state) })
const CHECK_MS = 2_000

function heartbeat(epoch: string, rev: number): LiveProcess {
  const common = { source: 'Redis' as const, ready: true, version: 'test', schemas: [1], bad: [], backends: {} }
  return { process: 'gateway-0/1', pod: 'gateway-0', acknowledgement: { epoch, rev, ...common } }
}

describe('Projection', () => {
  let store: FaultyProjectionStore
  let clock: ManualClock
  let outages: string[]
  let fencedBy: number[]
  let isLeading: boolean
  const running: Projection[] = []

  beforeEach(() => {
    store = new FaultyProjectionStore()
    clock = new ManualClock()
    outages = []
    fencedBy = []
    isLeading = true
  })
  afterEach(() => {
    for (const projection of running.splice(0)) projection.stop()
  })

  function make(change: Partial<ProjectionDeps> = {}): Projection {
    const projection = new Projection({
      store,
      clock,
      fence: () => 1,
      raiseFence: () => Promise.reject(new Error('not expected')),
      assertLeading: () => {
        if (!isLeading) throw new Error('not the leader')
      },
      onFenced: (fence) => fencedBy.push(fence),
      rescue: () => Promise.resolve(undefined),
      log: { info: () => undefined },
      outage: { failed: (line) => outages.push(line), works: () => void outages.splice(0) },
      ...change,
    })
    running.push(projection)
    return projection
  }

  /** A leader that has taken over; with a fence above the last one's, as the election gives it. */
  async function leader(
    fence: number,
    records: readonly ProjectionChange[] = [],
    floor = 0,
    change: Partial<ProjectionDeps> = {},
  ): Promise<Projection> {
    const projection = make({ fence: () => fence, ...change })
    await projection.start(records, floor)
    return projection
  }

  /** What readers see: states by id. */
  async function states(): Promise<Record<string, string>> {
    const meta = await store.memory.meta()
    const found: Record<string, string> = {}
    await store.memory.scan(meta?.epoch ?? '', 'key', (batch) => {
      for (const [id, json] of batch) found[id] = /"st":"(\w+)"/.exec(json)?.[1] ?? ''
    })
    return found
  }

  describe('taking over', () => {
    test('an empty store is built with everything, under an epoch of its own and above every revision that the keyring knows', async () => {
      const projection = await leader(1, [put('a'), { kind: 'model', op: 'put', id: 'm', text: modelText('m') }], 40)
      expect(await store.memory.meta()).toMatchObject({ epoch: projection.epoch, rev: 41, fence: 1 })
      expect(await states()).toEqual({ a: 'Active' })
      expect(await store.memory.ids(projection.epoch, 'model')).toEqual(['m'])
      expect(projection.revisionOf('key', 'a', text('a'))).toBe(41)
    })

    test('a restart adopts what stands there: the same epoch, not one new revision', async () => {
      const first = await leader(1, [put('a'), put('b')])
      await first.put('key', 'c', text('c'))
      const before = await store.memory.meta()
      first.stop()
      const second = await leader(2, [put('a'), put('b'), put('c')], 2)
      expect(await store.memory.meta()).toEqual({ ...before, fence: 2 })
      expect(second.epoch).toBe(first.epoch)
      expect(second.revisionOf('key', 'c', text('c'))).toBe(first.revisionOf('key', 'c', text('c')))
      expect(await store.memory.read(before?.rev ?? 0, 0)).toEqual([])
    })

    test('records that nobody wants any more are deleted, changed ones are written', async () => {
      ;(await leader(1, [put('a'), put('b'), put('c')])).stop()
      await leader(2, [put('a'), put('b', 'Suspended')])
      expect(await states()).toEqual({ a: 'Active', b: 'Suspended' })
    })

    test('a call of the former leader that is still under way is refused from then on, even if nothing was left to write', async () => {
      const first = await leader(1)
      first.stop()
      await leader(2)
      expect(await store.memory.write(1, first.epoch, [put('a')], 0)).toEqual({ outcome: 'fenced', fence: 2 })
    })

    test("what such a call had written before is seen and taken away: the store is the new leader's before it is read", async () => {
      const first = await leader(1)
      first.stop()
      const outcomes: string[] = []
      // after meta: between the new leader's look and its claim; after ids: too late
      store.after = async (call) => {
        if (call === 'meta' || call === 'ids') outcomes.push((await store.memory.write(1, first.epoch, [put(call)], 0)).outcome)
      }
      await leader(2, [put('a')])
      expect(outcomes.slice(0, 2)).toEqual(['written', 'fenced'])
      expect(await states()).toEqual({ a: 'Active' })
    })

    test('a key that the keyring lost is offered for rescue and then kept; nothing else is asked about', async () => {
      ;(await leader(1, [put('a'), put('lost'), put('gone'), { kind: 'model', op: 'put', id: 'm', text: modelText('m') }])).stop()
      const asked: string[] = []
      const rescue = (id: string, present: string): Promise<string | undefined> => {
        asked.push(id)
        return Promise.resolve(id === 'lost' ? stampRevision(present, 0) : undefined)
      }
      const second = await leader(2, [put('a')], 0, { rescue })
      expect(asked.sort()).toEqual(['gone', 'lost'])
      expect(await states()).toEqual({ a: 'Active', lost: 'Active' })
      expect(second.revisionOf('key', 'lost', text('lost'))).toBeDefined()
    })

    test('a store that is older than the keyring lost data: it is rebuilt, above everything seen before', async () => {
      const first = await leader(1, [put('a')])
      first.stop()
      const second = await leader(2, [put('a', 'Suspended')], 50)
      expect(second.epoch).not.toBe(first.epoch)
      expect(second.rev).toBe(51)
      expect(await states()).toEqual({ a: 'Suspended' })
    })

    test.each(['at the start', 'later'])(
      'gateways that have applied more than the store holds show that it went back: %s',
      async (when) => {
        const first = await leader(1, [put('a')])
        first.stop()
        const seen = (): void => void (store.live = [heartbeat(first.epoch, 7)])
        if (when === 'at the start') seen()
        const second = await leader(2, [put('a')])
        seen()
        await clock.advance(CHECK_MS)
        expect(second.epoch).not.toBe(first.epoch)
        expect(await store.memory.meta()).toMatchObject({ epoch: second.epoch, rev: 2 }) // no number of theirs is taken over
        const { epoch } = second
        await clock.advance(CHECK_MS)
        expect(second.epoch).toBe(epoch) // what they say about another data set proves nothing
      },
    )

    test('a store with another layout is rebuilt', async () => {
      const first = await leader(1, [put('a')])
      first.stop()
      const present = await store.memory.meta()
      store.meta = () => Promise.resolve(present && { ...present, schema: 99 })
      const second = await leader(2, [put('a')])
      expect(second.epoch).not.toBe(first.epoch)
    })

    test('when the Lease was deleted and counts from the start again, the fence is raised above the stored one before the first write', async () => {
      ;(await leader(9, [put('a')])).stop()
      let fence = 1
      const raised: number[] = []
      const raiseFence = async (stored: number): Promise<void> => {
        raised.push(stored)
        fence = stored + 1
      }
      await leader(1, [put('a', 'Suspended')], 0, { fence: () => fence, raiseFence })
      expect(raised).toEqual([9])
      expect(await states()).toEqual({ a: 'Suspended' })
      expect(await store.memory.meta()).toMatchObject({ fence: 10 })
      expect(fencedBy).toEqual([])
    })

    test('the fence is raised for a rebuild too', async () => {
      ;(await leader(9, [put('a')])).stop()
      let fence = 1
      await leader(1, [put('a')], 99, {
        fence: () => fence,
        raiseFence: async (stored) => void (fence = stored + 1),
      })
      expect(await store.memory.meta()).toMatchObject({ fence: 10, rev: 100 })
    })

    test.each(['meta', 'ids', 'write'] as const)(
      'one that breaks off at "%s" is made good at the next check, extras included',
      async (call) => {
        ;(await leader(1, [put('a'), put('extra')])).stop()
        store.before = (present) => {
          if (present === call) throw new Error('the store is down')
        }
        const second = await leader(2, [put('a', 'Suspended'), put('b')])
        expect(second.available).toBe(false)
        expect(outages).toEqual(['the projection cannot be written: the store is down'])
        store.resume()
        await clock.advance(CHECK_MS)
        expect(await states()).toEqual({ a: 'Suspended', b: 'Active' })
        expect(second.available).toBe(true)
        expect(outages).toEqual([])
      },
    )

    test('put before start throws: what is held would be taken for everything', () => {
      const projection = make()
      expect(() => projection.put('key', 'a', text('a'))).toThrow('was not started')
      expect(() => projection.delete('key', 'a')).toThrow('was not started')
    })

    test('a process that does not lead touches nothing', async () => {
      isLeading = false
      const projection = await leader(1, [put('a')])
      expect(store.calls).toEqual([])
      await expect(projection.put('key', 'b', text('b'))).rejects.toThrow('not the leader')
      expect(await store.memory.meta()).toBeUndefined()
    })
  })

  describe('writing', () => {
    test('what is asked in one turn goes in one call, and each wish learns its own revision', async () => {
      const projection = await leader(1)
      const before = store.calls.length
      const revs = await Promise.all([
        projection.put('key', 'a', text('a')),
        projection.put('key', 'b', text('b')),
        projection.delete('key', 'c'),
      ])
      expect(store.calls.slice(before)).toEqual(['write'])
      expect(revs).toEqual([2, 3, 3])
      expect(projection.rev).toBe(3)
    })

    test('1000 wishes go in calls of at most 200', async () => {
      const projection = await leader(1)
      const before = store.calls.length
      await Promise.all(Array.from({ length: 1000 }, (_, index) => projection.put('key', `k${index}`, text(`k${index}`))))
      expect(store.calls.length - before).toBe(5)
    })

    test('knows which revision carries exactly this record, and does not pretend for another', async () => {
      const projection = await leader(1, [put('a')])
      expect(projection.revisionOf('key', 'a', text('a'))).toBe(1)
      expect(projection.revisionOf('key', 'a', text('a', 'Suspended'))).toBeUndefined()
      expect(projection.revisionOf('key', 'a', undefined)).toBeUndefined()
      expect(projection.revisionOf('key', 'unheard of', undefined)).toBeUndefined()
      const gone = await projection.delete('key', 'a')
      expect(projection.revisionOf('key', 'a', undefined)).toBe(gone)
      projection.forget('key', 'a')
      expect(projection.revisionOf('key', 'a', undefined)).toBeUndefined()
    })

    test('a write that failed is made good by the next check, and the caller is told at once', async () => {
      const projection = await leader(1, [put('a')])
      store.stop()
      await expect(projection.put('key', 'a', text('a', 'Suspended'))).rejects.toThrow('the store is down')
      await expect(projection.delete('key', 'b')).rejects.toThrow('the store is down')
      expect(projection.available).toBe(false)
      expect(projection.revisionOf('key', 'a', text('a', 'Suspended'))).toBeUndefined()
      store.resume()
      await clock.advance(CHECK_MS)
      expect(await states()).toEqual({ a: 'Suspended' })
      expect(projection.revisionOf('key', 'a', text('a', 'Suspended'))).toBe(2)
      expect(projection.available).toBe(true)
    })

    test('or by the first write that arrives again, if that comes before', async () => {
      const projection = await leader(1, [put('a'), put('b')])
      store.stop()
      await expect(projection.delete('key', 'a')).rejects.toThrow('the store is down')
      store.resume()
      await projection.put('key', 'b', text('b', 'Suspended'))
      expect(await states()).toEqual({ b: 'Suspended' })
    })

    test('a write whose answer was lost is asked again and costs no second revision', async () => {
      const projection = await leader(1, [put('a')])
      store.after = (call) => {
        if (call === 'write') throw new Error('no answer')
      }
      await expect(projection.put('key', 'a', text('a', 'Suspended'))).rejects.toThrow('no answer')
      store.resume()
      await clock.advance(CHECK_MS)
      expect(await store.memory.meta()).toMatchObject({ rev: 2 })
      expect(projection.revisionOf('key', 'a', text('a', 'Suspended'))).toBe(2)
    })

    test('of wishes missed during an outage only the last one of a record is written', async () => {
      const projection = await leader(1, [put('a')])
      store.stop()
      await Promise.allSettled([projection.put('key', 'a', text('a', 'Suspended')), projection.delete('key', 'a')])
      await projection.put('key', 'a', text('a')).catch(() => undefined)
      store.resume()
      store.written.length = 0
      await clock.advance(CHECK_MS)
      expect(store.written.map(({ op }) => op)).toEqual(['put'])
      expect(await states()).toEqual({ a: 'Active' })
      expect(await store.memory.meta()).toMatchObject({ rev: 1 })
    })

    test('an older record never overtakes a newer one, however long it waited in the queue', async () => {
      const projection = await leader(1)
      const gate = Promise.withResolvers<void>()
      store.before = (call) => (call === 'write' ? gate.promise : undefined)
      const wishes: Array<Promise<number>> = []
      for (let index = 0; index < 250; index++) wishes.push(projection.put('key', `k${index}`, text(`k${index}`)))
      await settle()
      wishes.push(projection.put('key', 'k249', text('k249', 'Suspended'))) // the older one stands in the second call
      const check = clock.advance(CHECK_MS) // whose turn comes between the two
      gate.resolve()
      store.before = () => undefined
      await check
      const revs = await Promise.all(wishes)
      expect((await states()).k249).toBe('Suspended')
      expect(store.written.filter(({ id }) => id === 'k249').every(({ text: sent }) => sent === text('k249', 'Suspended'))).toBe(true)
      expect(revs.at(-2)).toBe(revs.at(-1))
    })

    test('a newer leader ends this one: told once, nothing written', async () => {
      const projection = await leader(1, [put('a')])
      await store.memory.write(2, projection.epoch, [])
      await expect(projection.put('key', 'a', text('a', 'Suspended'))).rejects.toThrow('another leader with fence 2')
      expect(fencedBy).toEqual([2])
      expect(await states()).toEqual({ a: 'Active' })
    })

    test('a newer leader that rebuilt ends this one at its next check', async () => {
      await leader(1, [put('a')])
      await store.memory.rebuild(2, 'theirs', 9, [])
      await clock.advance(CHECK_MS)
      expect(fencedBy).toEqual([2])
      expect(await store.memory.meta()).toMatchObject({ epoch: 'theirs', rev: 9 })
    })
  })

  describe('a store that lost or changed what it held', () => {
    test('emptied, it is rebuilt within two seconds under a new epoch and a higher revision', async () => {
      const projection = await leader(1, [put('a')])
      await projection.put('key', 'b', text('b'))
      const before = { epoch: projection.epoch, rev: projection.rev }
      store.memory = new FaultyProjectionStore().memory
      await clock.advance(CHECK_MS)
      expect(await states()).toEqual({ a: 'Active', b: 'Active' })
      expect(projection.epoch).not.toBe(before.epoch)
      expect(projection.rev).toBeGreaterThan(before.rev)
      expect(projection.revisionOf('key', 'b', text('b'))).toBe(projection.rev)
    })

    test('emptied, a write rebuilds it at once, with that write in it', async () => {
      const projection = await leader(1, [put('a')])
      store.memory = new FaultyProjectionStore().memory
      const rev = await projection.put('key', 'a', text('a', 'Suspended'))
      expect(await states()).toEqual({ a: 'Suspended' })
      expect(projection.revisionOf('key', 'a', text('a', 'Suspended'))).toBe(rev)
    })

    test('back at an older state, it is rebuilt at the next check: what was revoked stays revoked', async () => {
      const projection = await leader(1, [put('a'), put('b')])
      const { epoch } = projection
      await projection.put('key', 'a', text('a', 'Suspended'))
      await projection.delete('key', 'b')
      await rollBack(epoch)
      expect(await states()).toEqual({ a: 'Active', b: 'Active' })
      await clock.advance(CHECK_MS)
      expect(await states()).toEqual({ a: 'Suspended' })
      expect(projection.epoch).not.toBe(epoch)
    })

    test('back at an older state, a write notices it too: later revisions must not hide what was lost', async () => {
      const projection = await leader(1, [put('a'), put('b')])
      const { epoch } = projection
      await projection.put('key', 'a', text('a', 'Suspended'))
      await rollBack(epoch)
      await Promise.all(['c', 'd', 'e'].map((id) => projection.put('key', id, text(id))))
      await clock.advance(CHECK_MS)
      expect(await states()).toEqual({ a: 'Suspended', b: 'Active', c: 'Active', d: 'Active', e: 'Active' })
    })

    test('a rebuild that fails is tried again, and a write waits for nobody meanwhile', async () => {
      const projection = await leader(1, [put('a')])
      store.memory = new FaultyProjectionStore().memory
      store.before = (call) => {
        if (call === 'rebuild') throw new Error('the store is down')
      }
      await clock.advance(CHECK_MS)
      await expect(projection.put('key', 'b', text('b'))).rejects.toThrow('the store is down')
      store.resume()
      await clock.advance(CHECK_MS)
      expect(await states()).toEqual({ a: 'Active', b: 'Active' })
    })

    test('nothing is asked any more after stop', async () => {
      const projection = await leader(1, [put('a')])
      projection.stop()
      const calls = store.calls.length
      await clock.advance(10 * CHECK_MS)
      expect(store.calls).toHaveLength(calls)
    })

    /** As after a failover to a replica that had only the first revision. */
    async function rollBack(epoch: string): Promise<void> {
      const memory = new FaultyProjectionStore().memory
      await memory.rebuild(1, epoch, 1, [put('a'), put('b')])
      store.memory = memory
    }
  })
})
