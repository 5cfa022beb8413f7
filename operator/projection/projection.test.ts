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
      onPrepared: () => Promise.resolve(),
      onReached: () => Promise.resolve(),
      beforeWrite: () => Promise.resolve(),
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
      standIn: () => undefined,
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

  /** Starts a leader and waits for its take-over. Callers give each leader a higher fence than its predecessor, as the election does. */
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

  /** Sets a wanted record, and waits until no more work is queued. */
  async function want(projection: Projection, id: string, wanted: string | undefined, level: Level = 'change'): Promise<void> {
    projection.want('key', id, wanted, level)
    await settle()
  }

  const revisionOf = (projection: Projection, id: string, wanted: string | undefined): number | undefined =>
    projection.present('key', id, wanted)?.revision

  /** Lets a gateway report that it has applied this revision. */
  async function claim(epoch: string, revision: number): Promise<void> {
    await store.memory.heartbeat('gateway-0/1', acknowledgement({ epoch, revision }))
    store.liveProcesses = () => store.memory.liveProcesses()
  }

  /** The states of all keys as readers see them, by id. */
  async function states(): Promise<Record<string, string>> {
    const meta = await store.memory.meta()
    const found: Record<string, string> = {}
    await store.memory.scan(meta?.epoch ?? '', 'key', (batch) => {
      for (const [id, json] of batch) found[id] = /"state":"(\w+)"/.exec(json)?.[1] ?? ''
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

    test('a restart adopts the data set of the store: the epoch stays, and no revision is added', async () => {
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

    test('after a take-over a late call of the former leader is refused, even if the new leader had nothing to write', async () => {
      const first = await leader(1)
      first.stop()
      await leader(2)
      expect(await store.memory.write(writer(), first.epoch, [put('a')], 0)).toEqual({ outcome: 'fenced', fence: 2 })
    })

    test('a record that a late call wrote before the take-over is removed: the new leader writes its fence before it reads the ids', async () => {
      const first = await leader(1)
      first.stop()
      const outcomes: string[] = []
      // after `meta`: before the new leader writes its fence; after `ids`: too late
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

    test('in a rebuild too, an unwanted record with an unreadable source stays, byte for byte but for the revision, until it is changed', async () => {
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
      'a change that becomes wanted while a rebuild calls the store (%s) is not lost',
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

    test('a store that is older than the keyring has lost data: it is rebuilt with a revision above those of the keyring', async () => {
      const first = await leader(1, [put('a')])
      first.stop()
      const second = await leader(2, [put('a', 'Suspended')], 50)
      expect(second.epoch).not.toBe(first.epoch)
      expect(second.revision).toBe(51)
      expect(await states()).toEqual({ a: 'Suspended' })
    })

    test('a new leader rebuilds the store if a gateway has applied more than the store holds', async () => {
      const first = await leader(1, [put('a')])
      first.stop()
      await claim(first.epoch, 7)
      const second = await leader(2, [put('a')])
      expect(second.epoch).not.toBe(first.epoch)
      expect(await store.memory.meta()).toMatchObject({ epoch: second.epoch, revision: 2 }) // the revision that the gateway claims is not used
      const { epoch } = second
      await clock.advance(2 * CHECK_MS)
      expect(second.epoch).toBe(epoch) // a claim about another data set proves nothing
    })

    test('a gateway that claims a revision that does not exist causes no rebuild by the present leader', async () => {
      ;(await leader(1, [put('a')])).stop()
      const second = await leader(2, [put('a')])
      const { epoch } = second
      await claim(epoch, 999_999_999)
      await clock.advance(5 * CHECK_MS)
      expect(second.epoch).toBe(epoch)
    })

    test('a store of another installation is not changed, and a store that names no installation is adopted', async () => {
      ;(await leader(1, [put('a')])).stop()
      const second = await leader(2, [put('a')], 0, { installation: () => 'ours' })
      expect(await store.memory.meta()).toMatchObject({ installation: 'ours' })
      second.stop()
      const before = await store.memory.meta()
      store.calls.splice(0)
      const prepared: string[] = []
      const onPrepared = async (): Promise<void> => void prepared.push('ledger')
      const stranger = await leader(3, [put('b')], 0, { installation: () => 'theirs', onPrepared })
      await clock.advance(CHECK_MS)
      expect([...new Set(store.calls), ...prepared], 'it is read, and gets no functions').toEqual(['meta'])
      expect(stranger.available).toBe(false)
      expect(outages.at(-1)).toMatch(
        /^the projection cannot be written: this Redis holds the projection of another installation \(ours\); .*REDIS_TAKE_OVER=true/,
      )
      expect(foreign.at(-1)).toMatch(/another installation \(ours\)/)
      expect(await store.memory.meta()).toEqual(before)
    })

    test('a store of another installation is taken over when the administrator sets REDIS_TAKE_OVER', async () => {
      ;(await leader(1, [put('a')], 0, { installation: () => 'ours' })).stop()
      const second = await leader(2, [put('b')], 0, { installation: () => 'theirs', takesOver: true })
      expect(second.available).toBe(true)
      expect(await store.memory.meta()).toMatchObject({ installation: 'theirs', epoch: second.epoch })
      expect(await states()).toEqual({ b: 'Active' })
    })

    test('once the data of the other installation was deleted, the store is used and no longer reported as foreign', async () => {
      ;(await leader(1, [put('a')], 0, { installation: () => 'ours' })).stop()
      const stranger = await leader(2, [put('b')], 0, { installation: () => 'theirs' })
      store.memory = new FaultyProjectionStore().memory
      await clock.advance(CHECK_MS)
      expect(stranger.available).toBe(true)
      expect(foreign.at(-1)).toBeUndefined()
      expect(await states()).toEqual({ b: 'Active' })
    })

    /** Gives the data set in the store the layout of another version. */
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

    test('a store with a newer layout is not changed, unless the administrator sets REDIS_TAKE_OVER', async () => {
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

    test('after the Lease was deleted and its count started again, the fence is raised above the stored one before the first write', async () => {
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

    test('the fence is raised before a rebuild too', async () => {
      ;(await leader(9, [put('a')])).stop()
      let fence = 1
      await leader(1, [put('a')], 99, {
        fence: () => fence,
        raiseFence: async (stored) => void (fence = stored + 1),
      })
      expect(await store.memory.meta()).toMatchObject({ fence: 10, revision: 100 })
    })

    test.each(['meta', 'ids', 'write'] as const)(
      'a take-over that fails at "%s" is completed by the next check, with the removal of unwanted records',
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

    test('a record that is wanted before the start is an error: the projection would take it for the only record', () => {
      const projection = make()
      expect(() => projection.want('key', 'a', text('a'), 'change')).toThrow('was not started')
    })

    test('a process that does not lead makes no call to the store', async () => {
      isLeading = false
      const projection = await leader(1, [put('a')])
      await want(projection, 'b', text('b'))
      expect(store.calls).toEqual([])
      expect(await store.memory.meta()).toBeUndefined()
    })
  })

  describe('writing', () => {
    test('changes of one turn of the event loop go in one call, and each changed record gets its own revision', async () => {
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

    test('an urgent change is written before all changes that wait', async () => {
      const projection = await leader(1)
      store.stop()
      for (let index = 0; index < 300; index += 1) projection.want('key', `k${index}`, text(`k${index}`), 'background')
      await settle()
      projection.want('key', 'suspended', text('suspended', 'Suspended'), 'urgent')
      store.resume()
      await clock.advance(CHECK_MS)
      expect(store.written[0]?.id).toBe('suspended')
    })

    test('no caller waits: a record is pending until the store has it, and `onWritten` is called once', async () => {
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

    test('`present` gives the revision that carries exactly this record, and since when, but nothing for another text', async () => {
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

    test('a failed write is repeated by the next check', async () => {
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

    test('an older text of a record never overwrites a newer one, however long it waited', async () => {
      const projection = await leader(1)
      const gate = Promise.withResolvers<void>()
      store.before = (call) => (call === 'write' ? gate.promise : undefined)
      for (let index = 0; index < 250; index += 1) projection.want('key', `k${index}`, text(`k${index}`), 'change')
      await settle()
      await want(projection, 'k249', text('k249', 'Suspended')) // its older text would be in the second call
      await want(projection, 'k0', text('k0', 'Suspended')) // its older text is being written
      const check = clock.advance(CHECK_MS) // the check runs between these two writes
      gate.resolve()
      store.before = () => undefined
      await check
      expect(await states()).toMatchObject({ k0: 'Suspended', k249: 'Suspended' })
      expect(store.written.filter(({ id }) => id === 'k249').every(({ text: sent }) => sent === text('k249', 'Suspended'))).toBe(true)
      expect(revisionOf(projection, 'k0', text('k0', 'Suspended'))).toBeDefined()
      expect(written.filter((id) => id === 'k0')).toHaveLength(1)
    })

    test('a write that meets the fence of a newer leader ends this leader and changes nothing', async () => {
      const projection = await leader(1, [put('a')])
      await store.memory.write(writer(2), projection.epoch, [])
      await want(projection, 'a', text('a', 'Suspended'))
      expect(fencedBy).toEqual([2])
      expect(outages.at(-1)).toContain('another leader with fence 2')
      expect(await states()).toEqual({ a: 'Active' })
    })
  })

  describe('a store that lost or changed its data', () => {
    test('is rebuilt within two seconds after it was emptied, under a new epoch and a higher revision', async () => {
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

    test('is rebuilt at the next check after it went back to an older state: a revoked key stays revoked', async () => {
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

    test('is also rebuilt by a write after it went back to an older state: later revisions must not hide the lost changes', async () => {
      const projection = await leader(1, [put('a'), put('b')])
      const { epoch } = projection
      await want(projection, 'a', text('a', 'Suspended'))
      await rollBack(epoch)
      for (const id of ['c', 'd', 'e']) await want(projection, id, text(id))
      await clock.advance(CHECK_MS)
      expect(await states()).toEqual({ a: 'Suspended', b: 'Active', c: 'Active', d: 'Active', e: 'Active' })
    })

    test('is rebuilt by another try if the rebuild fails, with the changes that were wanted until then', async () => {
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

    test('is rebuilt ever more rarely while each rebuild fails, whatever is wanted meanwhile, and again at once after a success', async () => {
      const projection = await leader(1, [put('a')])
      const rebuilds = (): number => store.calls.filter((call) => call === 'rebuild').length
      let failures = 0
      const fail = (): void => {
        store.memory = new FaultyProjectionStore().memory
        store.before = (call) => {
          if (call !== 'rebuild') return
          failures += 1
          throw new Error('OOM command not allowed')
        }
      }
      fail()
      for (let at = 0; at < 150; at += 1) {
        await clock.advance(CHECK_MS)
        await want(projection, `key-${at}`, text(`key-${at}`))
      }
      expect(failures, 'of 300 s, at 0, 2, 6, 14, 30, 62, 122, 182 and 242 s').toBe(9)
      expect(outages.at(-1)).toContain('OOM command not allowed')
      store.resume()
      await clock.advance(60_000)
      expect(Object.keys(await states())).toHaveLength(151)
      expect(rebuilds()).toBe(2) // and the first one
      fail()
      failures = 0
      await clock.advance(3 * CHECK_MS)
      expect(failures, 'the pauses begin again').toBe(2)
    })

    test('is not called any more after `stop`', async () => {
      const projection = await leader(1, [put('a')])
      projection.stop()
      const calls = store.calls.length
      await clock.advance(10 * CHECK_MS)
      expect(store.calls).toHaveLength(calls)
    })

    /** Puts the store into the state after a failover to a replica that had only the first revision. */
    async function rollBack(epoch: string): Promise<void> {
      const memory = new FaultyProjectionStore().memory
      await memory.rebuild(writer(), epoch, 1, [put('a'), put('b')])
      store.memory = memory
    }
  })
})
