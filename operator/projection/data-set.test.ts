import { beforeEach, describe, expect, test } from 'vitest'
import { FaultyProjectionStore } from '../../test/support/faulty-projection-store.ts'
import { acknowledgement, issuedKey, recordText, writer } from '../../test/support/records.ts'
import { DataSet, type DataSetDeps, ForeignStore } from './data-set.ts'
import type { ProjectionChange } from './store.ts'

const { record } = issuedKey('template')
const put = (id: string): ProjectionChange => ({ kind: 'key', op: 'put', id, text: recordText({ ...record, uid: id }) })

describe('the data set of a leader', () => {
  let store: FaultyProjectionStore
  let fencedBy: number[]

  beforeEach(() => {
    store = new FaultyProjectionStore()
    fencedBy = []
  })

  const make = (change: Partial<DataSetDeps> = {}): DataSet =>
    new DataSet({
      ...{ store, onPrepared: () => Promise.resolve(), beforeWrite: () => Promise.resolve() },
      ...{ fence: () => 2, raiseFence: () => Promise.reject(new Error('not expected')), assertLeading: () => undefined },
      ...{ onFenced: (fence) => void fencedBy.push(fence), installation: () => 'ours', takesOver: false },
      ...change,
    })

  /** Writes the data set of a former leader. */
  async function left(revision = 5, installation = 'ours', fence = 1): Promise<void> {
    await store.memory.rebuild(writer(fence, installation), 'former', revision, [put('a')])
  }

  test('is adopted as it is: the same epoch and revision, under the fence of the new leader', async () => {
    await left()
    const dataSet = make()
    dataSet.startAt(5)
    expect(await dataSet.takeOver()).toBeUndefined()
    expect([dataSet.epoch, dataSet.revision]).toEqual(['former', 5])
    expect(await store.memory.meta()).toMatchObject({ fence: 2, epoch: 'former', revision: 5 })
  })

  test.each<[string, () => Promise<void>, string]>([
    ['the store is empty', () => Promise.resolve(), 'the store is empty'],
    ['the keyring has seen a newer revision', () => left(4), 'the store is older than the keyring'],
  ])('is rebuilt when %s', async (_what, prepare, why) => {
    await prepare()
    const dataSet = make()
    dataSet.startAt(5)
    expect(await dataSet.takeOver()).toBe(why)
    expect(dataSet.epoch).toBe('')
  })

  test('is rebuilt under a new epoch, above every revision in the store and in the keyring', async () => {
    await left(9)
    const dataSet = make()
    dataSet.startAt(5)
    expect(await dataSet.rebuild([put('b')])).toBe(10)
    expect(dataSet.epoch).not.toBe('former')
    expect(await store.memory.meta()).toMatchObject({ epoch: dataSet.epoch, revision: 10, installation: 'ours' })
  })

  test('gives each change a revision of its own, and an unchanged record keeps its revision', async () => {
    await left()
    const dataSet = make()
    await dataSet.takeOver()
    expect(await dataSet.write([put('b'), put('a')])).toEqual([6, 5])
    expect(dataSet.revision).toBe(6)
  })

  test('is not written after the store went back to an older state or the data set was replaced: it must be rebuilt', async () => {
    await left()
    const dataSet = make()
    await dataSet.takeOver()
    await dataSet.write([put('b')])
    await store.memory.rebuild(writer(2, 'ours'), 'former', 5, [])
    expect(await dataSet.write([put('c')])).toBeUndefined()
    expect(await dataSet.verify()).toBe('the store went back to an older state')
    await store.memory.rebuild(writer(2, 'ours'), 'another', 50, [])
    expect(await dataSet.write([put('c')])).toBeUndefined()
    expect(await dataSet.verify()).toBe('its epoch changed')
    store.memory = new FaultyProjectionStore().memory
    expect(await dataSet.verify()).toBe('the store was emptied')
  })

  test('that a newer leader has written ends this leader', async () => {
    await left()
    const dataSet = make()
    await dataSet.takeOver()
    await store.memory.write(writer(3, 'ours'), 'former', [])
    await expect(dataSet.write([put('b')])).rejects.toThrow('another leader with fence 3')
    expect(fencedBy).toEqual([3])
  })

  test('of another installation is not touched, whether it is found at the start, at a check or at a write', async () => {
    await left(5, 'theirs')
    await expect(make().takeOver()).rejects.toThrow(ForeignStore)
    store.memory = new FaultyProjectionStore().memory
    await left()
    const dataSet = make()
    await dataSet.takeOver()
    await store.memory.rebuild({ ...writer(2, 'theirs'), takesOver: true }, 'former', 5, [])
    await expect(dataSet.verify()).rejects.toThrow(/another installation \(theirs\).*REDIS_TAKE_OVER=true/)
    await expect(dataSet.write([put('b')])).rejects.toThrow(ForeignStore)
    expect(await store.memory.ids('former', 'key')).toEqual([])
  })

  test('is rebuilt by a new leader, but not by the present one, if a gateway has applied more than the store holds', async () => {
    await left()
    const leading = make()
    await leading.takeOver()
    await store.memory.heartbeat('gateway-0/1', acknowledgement({ epoch: 'former', revision: 7 }))
    store.liveProcesses = () => store.memory.liveProcesses()
    expect(await leading.verify()).toBeUndefined()
    expect(await make({ fence: () => 3 }).takeOver()).toBe('the store went back to an older state')
  })

  test('raises the fence above the stored fence of another leader, but not above its own', async () => {
    await left(5, 'ours', 9)
    let fence = 2
    const raised: number[] = []
    const raiseFence = async (stored: number): Promise<void> => {
      raised.push(stored)
      fence = stored + 1
    }
    const dataSet = make({ fence: () => fence, raiseFence })
    await dataSet.takeOver()
    await dataSet.takeOver()
    expect(raised).toEqual([9])
    expect(await store.memory.meta()).toMatchObject({ fence: 10 })
  })

  test('is not read by a process that does not lead', async () => {
    const dataSet = make({
      assertLeading: () => {
        throw new Error('not the leader')
      },
    })
    await expect(dataSet.takeOver()).rejects.toThrow('not the leader')
    expect(store.calls).toEqual([])
  })
})
