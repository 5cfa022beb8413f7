import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Level } from '../loop/level.ts'
import { FaultyProjectionStore } from '../../test/support/faulty-projection-store.ts'
import { ManualClock, settle } from '../../test/support/manual-clock.ts'
import { acknowledgement, issuedKey, modelText, recordText, writer } from '../../test/support/records.ts'
import { Projection, type ProjectionDeps } from './projection.ts'
import type { ProjectionChange } from './store.ts'

const { record } = issuedKey('template')
const text = (id: string, state: 'Active' | 'Suspended' = 'Active'): string => recordText({ ...record, uid: id, state })
const put = (id: string, state?: 'Suspended'): ProjectionChange => ({ kind: 'key', op: 'put', id, text: text(id, state) })
const CHECK_MS = 2_000

describe('Projection', () => {
  let store: FaultyProjectionStore
  let clock: ManualClock
  let outages: string[]
  let fencedBy: number[]
  let isLeading: boolean
  let written: string[]
  let availability: boolean[]
  let foreign: Array<string | undefined>
  const running: Projection[] = []

  beforeEach(() => {
    store = new FaultyProjectionStore()
    clock = new ManualClock()
    outages = []
    fencedBy = []
    isLeading = true
    written = []
    availability = []
    foreign = []
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
      installation: () => '',
      takesOver: false,
      keeps: () => false,
      onWritten: (_kind, id) => written.push(id),
      onAvailability: (isAvailable) => availability.push(isAvailable),
      onForeign: (why) => foreign.push(why),
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

  /** Wants a record, and lets everything happen that can. */
  async function want(projection: Projection, id: string, wanted: string | undefined, level: Level = 'change'): Promise<void> {
    projection.want('key', id, wanted, level)
    await settle()
  }

  const revisionOf = (projection: Projection, id: string, wanted: string | undefined): number | undefined =>
    projection.present('key', id, wanted)?.revision

  /** A gateway says that it has applied this revision. */
  async function claim(epoch: string, revision: number): Promise<void> {
    await store.memory.heartbeat('gateway-0/1', acknowledgement({ epoch, revision }))
    store.liveProcesses = () => store.memory.liveProcesses()
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
      expect(await store.memory.meta()).toMatchObject({ epoch: projection.epoch, revision: 41, fence: 1 })
      expect(await states()).toEqual({ a: 'Active' })
      expect(await store.memory.ids(projection.epoch, 'model')).toEqual(['m'])
      expect(revisionOf(projection, 'a', text('a'))).toBe(41)
    })

    test('a restart adopts what stands there: the same epoch, not one new revision', async () => {
      const first = await leader(1, [put('a'), put('b')])
      await want(first, 'c', text('c'))
      const before = await store.memory.meta()
      first.stop()
      const second = await leader(2, [put('a'), put('b'), put('c')], 2)
      expect(await store.memory.meta()).toEqual({ ...before, fence: 2 })
      expect(second.epoch).toBe(first.epoch)
      expect(revisionOf(second, 'c', text('c'))).toBe(revisionOf(first, 'c', text('c')))
      expect(await store.memory.read(before?.revision ?? 0, 0)).toEqual([])
    })

    test('records that are no longer wanted are deleted, and changed records are written', async () => {
      ;(await leader(1, [put('a'), put('b'), put('c')])).stop()
      await leader(2, [put('a'), put('b', 'Suspended')])
      expect(await states()).toEqual({ a: 'Active', b: 'Suspended' })
    })

    test('a call of the former leader that is still under way is refused from then on, even if nothing was left to write', async () => {
      const first = await leader(1)
      first.stop()
      await leader(2)
      expect(await store.memory.write(writer(), first.epoch, [put('a')], 0)).toEqual({ outcome: 'fenced', fence: 2 })
    })

    test("what such a call had written before is seen and taken away: the store is the new leader's before it is read", async () => {
      const first = await leader(1)
      first.stop()
      const outcomes: string[] = []
      // after meta: between the new leader's look and its claim; after ids: too late
      store.after = async (call) => {
        if (call === 'meta' || call === 'ids') outcomes.push((await store.memory.write(writer(), first.epoch, [put(call)], 0)).outcome)
      }
      await leader(2, [put('a')])
      expect(outcomes.slice(0, 2)).toEqual(['written', 'fenced'])
      expect(await states()).toEqual({ a: 'Active' })
    })

    test('an unwanted record stays if its source cannot be read now; all other unwanted records are deleted', async () => {
      const model: ProjectionChange = { kind: 'model', op: 'put', id: 'm', text: modelText('m') }
      ;(await leader(1, [put('a'), put('unreadable'), put('deleted'), model])).stop()
      const second = await leader(2, [put('a')], 0, { keeps: (kind, id) => kind === 'key' && id === 'unreadable' })
      expect(await states()).toEqual({ a: 'Active', unreadable: 'Active' })
      expect(await store.memory.ids(second.epoch, 'model')).toEqual([])
    })

    test('it stays in a rebuild too, byte for byte but for the revision, unless somebody wants another record meanwhile', async () => {
      const first = await leader(
        1,
        ['a', 'kept', 'edited', 'removed'].map((id) => put(id)),
      )
      first.stop()
      const before = await store.memory.records(first.epoch, 'key', ['kept'])
      const second = await leader(2, [put('a')], 50, {
        keeps: (_kind, id) => id !== 'a',
      })
      expect(second.epoch).not.toBe(first.epoch)
      const after = await store.memory.records(second.epoch, 'key', ['kept'])
      expect(after.get('kept')?.replace(/"rev":\d+/, '')).toBe(before.get('kept')?.replace(/"rev":\d+/, ''))
      await want(second, 'edited', text('edited', 'Suspended'))
      await want(second, 'removed', undefined)
      expect(await states()).toEqual({ a: 'Active', kept: 'Active', edited: 'Suspended' })
    })

    test.each(['meta', 'ids', 'records', 'rebuild'] as const)(
      'what is wanted while a rebuild talks to the store (%s) is not lost',
      async (call) => {
        ;(
          await leader(
            1,
            ['a', 'b', 'kept', 'dropped'].map((id) => put(id)),
          )
        ).stop()
        const second = await leader(2, [put('a'), put('b')], 0, { keeps: (_kind, id) => id === 'kept' || id === 'dropped' })
        const copy = new FaultyProjectionStore().memory
        await copy.rebuild(
          writer(2),
          'older',
          1,
          ['a', 'b', 'kept', 'dropped'].map((id) => put(id)),
        )
        store.memory = copy
        let isWanted = false
        written.length = 0
        store.before = (present) => {
          if (present !== call || isWanted) return
          isWanted = true
          second.want('key', 'a', text('a', 'Suspended'), 'urgent')
          second.want('key', 'b', undefined, 'urgent')
          second.want('key', 'kept', text('kept', 'Suspended'), 'urgent')
          second.want('key', 'dropped', undefined, 'urgent')
        }
        await clock.advance(2 * CHECK_MS)
        expect(isWanted).toBe(true)
        expect(await states()).toEqual({ a: 'Suspended', kept: 'Suspended' })
        expect(revisionOf(second, 'a', text('a', 'Suspended'))).toBeDefined()
        expect(written.toSorted()).toEqual(['a', 'b', 'dropped', 'kept'])
      },
    )

    test('a store that is older than the keyring lost data: it is rebuilt, above everything seen before', async () => {
      const first = await leader(1, [put('a')])
      first.stop()
      const second = await leader(2, [put('a', 'Suspended')], 50)
      expect(second.epoch).not.toBe(first.epoch)
      expect(second.revision).toBe(51)
      expect(await states()).toEqual({ a: 'Suspended' })
    })

    test('gateways that have applied more than the store holds show a new leader that it went back', async () => {
      const first = await leader(1, [put('a')])
      first.stop()
      await claim(first.epoch, 7)
      const second = await leader(2, [put('a')])
      expect(second.epoch).not.toBe(first.epoch)
      expect(await store.memory.meta()).toMatchObject({ epoch: second.epoch, revision: 2 }) // no number of theirs is taken over
      const { epoch } = second
      await clock.advance(2 * CHECK_MS)
      expect(second.epoch).toBe(epoch) // what they say about another data set proves nothing
    })

    test('a gateway that claims revisions which do not exist causes no rebuild by a leader that knows better', async () => {
      ;(await leader(1, [put('a')])).stop()
      const second = await leader(2, [put('a')])
      const { epoch } = second
      await claim(epoch, 999_999_999)
      await clock.advance(5 * CHECK_MS)
      expect(second.epoch).toBe(epoch)
    })

    test('a store of another installation is left alone, and one without an installation is adopted', async () => {
      ;(await leader(1, [put('a')])).stop()
      const second = await leader(2, [put('a')], 0, { installation: () => 'ours' })
      expect(await store.memory.meta()).toMatchObject({ installation: 'ours' })
      second.stop()
      const before = await store.memory.meta()
      const stranger = await leader(3, [put('b')], 0, { installation: () => 'theirs' })
      await clock.advance(CHECK_MS)
      expect(stranger.available).toBe(false)
      expect(outages.at(-1)).toMatch(
        /^the projection cannot be written: this Redis holds the projection of another installation \(ours\); .*REDIS_TAKE_OVER=true/,
      )
      expect(foreign.at(-1)).toMatch(/another installation \(ours\)/)
      expect(await store.memory.meta()).toEqual(before)
    })

    test('a store of another installation is taken over when the administrator says so', async () => {
      ;(await leader(1, [put('a')], 0, { installation: () => 'ours' })).stop()
      const second = await leader(2, [put('b')], 0, { installation: () => 'theirs', takesOver: true })
      expect(second.available).toBe(true)
      expect(await store.memory.meta()).toMatchObject({ installation: 'theirs', epoch: second.epoch })
      expect(await states()).toEqual({ b: 'Active' })
    })

    test('once the other installation has left, the store is used, and nothing is reported any more', async () => {
      ;(await leader(1, [put('a')], 0, { installation: () => 'ours' })).stop()
      const stranger = await leader(2, [put('b')], 0, { installation: () => 'theirs' })
      store.memory = new FaultyProjectionStore().memory
      await clock.advance(CHECK_MS)
      expect(stranger.available).toBe(true)
      expect(foreign.at(-1)).toBeUndefined()
      expect(await states()).toEqual({ b: 'Active' })
    })

    /** The store holds the layout of another version. */
    const relaid = (schema: number): void => {
      const { memory } = store
      const meta = memory.meta.bind(memory)
      memory.meta = async () => {
        const present = await meta()
        return present && { ...present, schema }
      }
    }

    test('a store with an older layout is rebuilt', async () => {
      const first = await leader(1, [put('a')])
      first.stop()
      relaid(0)
      expect((await leader(2, [put('a')])).epoch).not.toBe(first.epoch)
    })

    test('a store with a newer layout is left alone, unless the administrator says so', async () => {
      const first = await leader(1, [put('a')])
      first.stop()
      relaid(99)
      const second = await leader(2, [put('b')])
      expect(second.available).toBe(false)
      expect(outages.at(-1)).toMatch(/a newer version of Headgate wrote the projection \(layout 99.*update the operator/)
      expect(foreign.at(-1)).toContain('layout 99')
      expect(await states()).toEqual({ a: 'Active' })
      second.stop()
      await leader(3, [put('b')], 0, { takesOver: true })
      expect(await states()).toEqual({ b: 'Active' })
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
      expect(await store.memory.meta()).toMatchObject({ fence: 10, revision: 100 })
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

    test('a record that is wanted before the start is a mistake: what is held would be taken for everything', () => {
      const projection = make()
      expect(() => projection.want('key', 'a', text('a'), 'change')).toThrow('was not started')
    })

    test('a process that does not lead touches nothing', async () => {
      isLeading = false
      const projection = await leader(1, [put('a')])
      await want(projection, 'b', text('b'))
      expect(store.calls).toEqual([])
      expect(await store.memory.meta()).toBeUndefined()
    })
  })

  describe('writing', () => {
    test('what is wanted in one turn goes in one call, and each record has its own revision', async () => {
      const projection = await leader(1)
      const before = store.calls.length
      projection.want('key', 'a', text('a'), 'change')
      projection.want('key', 'b', text('b'), 'change')
      projection.want('key', 'c', undefined, 'change')
      await settle()
      expect(store.calls.slice(before)).toEqual(['write'])
      expect([
        revisionOf(projection, 'a', text('a')),
        revisionOf(projection, 'b', text('b')),
        revisionOf(projection, 'c', undefined),
      ]).toEqual([2, 3, 3])
      expect(projection.revision).toBe(3)
      expect(written).toEqual(['a', 'b', 'c'])
    })

    test('1000 records go in calls of at most 200', async () => {
      const projection = await leader(1)
      const before = store.calls.length
      for (let index = 0; index < 1000; index += 1) projection.want('key', `k${index}`, text(`k${index}`), 'change')
      await settle()
      expect(store.calls.length - before).toBe(5)
    })

    test('what is urgent goes before everything that waits', async () => {
      const projection = await leader(1)
      store.stop()
      for (let index = 0; index < 300; index += 1) projection.want('key', `k${index}`, text(`k${index}`), 'background')
      await settle()
      projection.want('key', 'suspended', text('suspended', 'Suspended'), 'urgent')
      store.resume()
      await clock.advance(CHECK_MS)
      expect(store.written[0]?.id).toBe('suspended')
    })

    test('no caller waits: a record on its way is pending, and its arrival is announced once', async () => {
      const projection = await leader(1)
      projection.want('key', 'a', text('a'), 'change')
      expect(projection.isPending('key', 'a')).toBe(true)
      expect(projection.isPending('model', 'a')).toBe(false)
      expect(revisionOf(projection, 'a', text('a'))).toBeUndefined()
      await settle()
      expect(projection.isPending('key', 'a')).toBe(false)
      await clock.advance(5 * CHECK_MS)
      expect(written).toEqual(['a'])
    })

    test('knows which revision carries exactly this record and since when, and does not pretend for another', async () => {
      const projection = await leader(1, [put('a')])
      await clock.advance(300)
      expect(projection.present('key', 'a', text('a'))).toEqual({ revision: 1, forMs: 300 })
      expect(revisionOf(projection, 'a', text('a', 'Suspended'))).toBeUndefined()
      expect(revisionOf(projection, 'a', undefined)).toBeUndefined()
      expect(revisionOf(projection, 'never seen', undefined)).toBeUndefined()
      await want(projection, 'a', undefined)
      expect(projection.present('key', 'a', undefined)).toEqual({ revision: 2, forMs: 0 })
      projection.forget('key', 'a')
      expect(revisionOf(projection, 'a', undefined)).toBeUndefined()
    })

    test('a record that is written again unchanged keeps its revision and its age', async () => {
      const projection = await leader(1, [put('a')])
      await clock.advance(300)
      await want(projection, 'a', text('a'))
      expect(projection.present('key', 'a', text('a'))).toEqual({ revision: 1, forMs: 300 })
    })

    test('a record that is wanted is not forgotten', async () => {
      const projection = await leader(1, [put('a')])
      projection.forget('key', 'a')
      expect(revisionOf(projection, 'a', text('a'))).toBe(1)
    })

    test('a write that failed is repeated by the next check', async () => {
      const projection = await leader(1, [put('a')])
      store.stop()
      await want(projection, 'a', text('a', 'Suspended'))
      await want(projection, 'b', undefined)
      expect([projection.available, availability]).toEqual([false, [true, false]])
      expect(projection.isPending('key', 'a')).toBe(true)
      expect(revisionOf(projection, 'a', text('a', 'Suspended'))).toBeUndefined()
      store.resume()
      await clock.advance(CHECK_MS)
      expect(await states()).toEqual({ a: 'Suspended' })
      expect(revisionOf(projection, 'a', text('a', 'Suspended'))).toBe(2)
      expect([projection.available, availability]).toEqual([true, [true, false, true]])
      expect(written).toEqual(['a', 'b'])
    })

    test('or by the first write that arrives again, if that comes before', async () => {
      const projection = await leader(1, [put('a'), put('b')])
      store.stop()
      await want(projection, 'a', undefined)
      store.resume()
      await want(projection, 'b', text('b', 'Suspended'))
      expect(await states()).toEqual({ b: 'Suspended' })
    })

    test('a write whose answer was lost is repeated and costs no second revision', async () => {
      const projection = await leader(1, [put('a')])
      store.after = (call) => {
        if (call === 'write') throw new Error('no answer')
      }
      await want(projection, 'a', text('a', 'Suspended'))
      expect(revisionOf(projection, 'a', text('a', 'Suspended'))).toBeUndefined()
      store.resume()
      await clock.advance(CHECK_MS)
      expect(await store.memory.meta()).toMatchObject({ revision: 2 })
      expect(revisionOf(projection, 'a', text('a', 'Suspended'))).toBe(2)
    })

    test('of the changes of one record during an outage only the last is written', async () => {
      const projection = await leader(1, [put('a')])
      store.stop()
      for (const wanted of [text('a', 'Suspended'), undefined, text('a')]) await want(projection, 'a', wanted)
      store.resume()
      store.written.length = 0
      await clock.advance(CHECK_MS)
      expect(store.written.map(({ op }) => op)).toEqual(['put'])
      expect(await states()).toEqual({ a: 'Active' })
      expect(await store.memory.meta()).toMatchObject({ revision: 1 })
    })

    test('an older record never overtakes a newer one, however long it waited', async () => {
      const projection = await leader(1)
      const gate = Promise.withResolvers<void>()
      store.before = (call) => (call === 'write' ? gate.promise : undefined)
      for (let index = 0; index < 250; index += 1) projection.want('key', `k${index}`, text(`k${index}`), 'change')
      await settle()
      await want(projection, 'k249', text('k249', 'Suspended')) // the older one would be in the second call
      await want(projection, 'k0', text('k0', 'Suspended')) // the older one is under way
      const check = clock.advance(CHECK_MS) // whose turn comes between the two
      gate.resolve()
      store.before = () => undefined
      await check
      expect(await states()).toMatchObject({ k0: 'Suspended', k249: 'Suspended' })
      expect(store.written.filter(({ id }) => id === 'k249').every(({ text: sent }) => sent === text('k249', 'Suspended'))).toBe(true)
      expect(revisionOf(projection, 'k0', text('k0', 'Suspended'))).toBeDefined()
      expect(written.filter((id) => id === 'k0')).toHaveLength(1)
    })

    test('a newer leader ends this one, and nothing is written', async () => {
      const projection = await leader(1, [put('a')])
      await store.memory.write(writer(2), projection.epoch, [])
      await want(projection, 'a', text('a', 'Suspended'))
      expect(fencedBy).toEqual([2])
      expect(outages.at(-1)).toContain('another leader with fence 2')
      expect(await states()).toEqual({ a: 'Active' })
    })

    test('a newer leader that rebuilt ends this one at its next check', async () => {
      await leader(1, [put('a')])
      await store.memory.rebuild(writer(2), 'theirs', 9, [])
      await clock.advance(CHECK_MS)
      expect(fencedBy).toEqual([2])
      expect(await store.memory.meta()).toMatchObject({ epoch: 'theirs', revision: 9 })
    })
  })

  describe('a store that lost or changed what it held', () => {
    test('emptied, it is rebuilt within two seconds under a new epoch and a higher revision', async () => {
      const projection = await leader(1, [put('a')])
      await want(projection, 'b', text('b'))
      const before = { epoch: projection.epoch, revision: projection.revision }
      store.memory = new FaultyProjectionStore().memory
      await clock.advance(CHECK_MS)
      expect(await states()).toEqual({ a: 'Active', b: 'Active' })
      expect(projection.epoch).not.toBe(before.epoch)
      expect(projection.revision).toBeGreaterThan(before.revision)
      expect(revisionOf(projection, 'b', text('b'))).toBe(projection.revision)
    })

    test('emptied, a write rebuilds it at once, with that write in it', async () => {
      const projection = await leader(1, [put('a')])
      store.memory = new FaultyProjectionStore().memory
      await want(projection, 'a', text('a', 'Suspended'))
      expect(await states()).toEqual({ a: 'Suspended' })
      expect(revisionOf(projection, 'a', text('a', 'Suspended'))).toBe(projection.revision)
      expect(written).toEqual(['a'])
    })

    test('back at an older state, it is rebuilt at the next check: what was revoked stays revoked', async () => {
      const projection = await leader(1, [put('a'), put('b')])
      const { epoch } = projection
      await want(projection, 'a', text('a', 'Suspended'))
      await want(projection, 'b', undefined)
      await rollBack(epoch)
      expect(await states()).toEqual({ a: 'Active', b: 'Active' })
      await clock.advance(CHECK_MS)
      expect(await states()).toEqual({ a: 'Suspended' })
      expect(projection.epoch).not.toBe(epoch)
    })

    test('back at an older state, a write notices it too: later revisions must not hide what was lost', async () => {
      const projection = await leader(1, [put('a'), put('b')])
      const { epoch } = projection
      await want(projection, 'a', text('a', 'Suspended'))
      await rollBack(epoch)
      for (const id of ['c', 'd', 'e']) await want(projection, id, text(id))
      await clock.advance(CHECK_MS)
      expect(await states()).toEqual({ a: 'Suspended', b: 'Active', c: 'Active', d: 'Active', e: 'Active' })
    })

    test('a rebuild that fails is tried again, with what is wanted meanwhile', async () => {
      const projection = await leader(1, [put('a')])
      store.memory = new FaultyProjectionStore().memory
      store.before = (call) => {
        if (call === 'rebuild') throw new Error('the store is down')
      }
      await clock.advance(CHECK_MS)
      await want(projection, 'b', text('b'))
      expect(projection.available).toBe(false)
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
      await memory.rebuild(writer(), epoch, 1, [put('a'), put('b')])
      store.memory = memory
    }
  })
})
