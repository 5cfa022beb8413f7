import { beforeEach, describe, expect, test } from 'vitest'
import { secrets } from '#kube/resources.ts'
import type { SignedMicros } from '#contract/values/signed-micros.ts'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import type { CreditEntry } from '../shards/credit-entry.ts'
import { shardOf } from '../shards/shard.ts'
import { ShardDamaged } from '../shards/shard-writer.ts'
import { CreditBooks } from './credit-books.ts'

const NAMESPACE = 'headgate'

let kube: FakeKubePort
let clock: ManualClock
let refused: Array<readonly [string, Error]>
let changed: string[]

beforeEach(() => {
  kube = new FakeKubePort()
  clock = new ManualClock()
  refused = []
  changed = []
})

async function openedBy(fence: number) {
  const leader = { fencedBy: 0 }
  const books = new CreditBooks({
    ...{ kube, namespace: NAMESPACE, clock, assertLeading: () => undefined, warn: () => undefined },
    leader: {
      fence: () => fence,
      raiseFence: () => Promise.reject(new Error('a newer leader exists')),
      onFenced: (other) => void (leader.fencedBy = other),
    },
  })
  books.onSettled((id, error) => error && refused.push([id, error]))
  books.onChanged((account) => changed.push(account))
  await books.load()
  return { leader, books }
}

const credit = (id: string, micros: number, account = 'acme', more: Partial<CreditEntry> = {}): CreditEntry => ({
  ...{ id, account, micros: micros as SignedMicros, type: 'TopUp', time: '', reference: '' },
  ...more,
})

/** Books Credits durably. */
async function booked(books: CreditBooks, ...entries: readonly CreditEntry[]): Promise<void> {
  for (const entry of entries) books.book(entry, 'change')
  await books.flush().catch(() => undefined) // the listener has the error
}

const ref = (id: string) => ({ namespace: NAMESPACE, name: `hg-credits-8-${shardOf(id, 8)}` })
/** Other ids whose entries are in the same Secret, or in other ones. */
const others = (id: string, isSame: boolean): string[] =>
  Array.from({ length: 200 }, (_, at) => `other-${at}`).filter((one) => (shardOf(one, 8) === shardOf(id, 8)) === isSame)
const other = (id: string, isSame: boolean): string => others(id, isSame)[0] ?? ''

async function damage(id: string): Promise<void> {
  const present = await kube.get(secrets, ref(id))
  await kube.update(secrets, { ...present!, data: { records: 'ZGFtYWdl' } })
}

describe('a Credit in the books', () => {
  test('counts from the moment it is durable, and for the next leader too', async () => {
    const { books } = await openedBy(1)
    books.book(credit('pay-1', 5), 'change')
    expect([books.sumOf('acme'), books.has('pay-1'), books.entryOf('pay-1'), books.state('pay-1')]).toEqual([
      0n,
      false,
      undefined,
      'Pending',
    ])
    await books.flush()
    expect([books.sumOf('acme'), books.entryOf('pay-1'), changed]).toEqual([5n, credit('pay-1', 5), ['acme']])
    const next = (await openedBy(2)).books
    expect([next.sumOf('acme'), next.entryOf('pay-1')]).toEqual([5n, credit('pay-1', 5)])
  })

  test('has changed the sum when its listener is called', async () => {
    const { books } = await openedBy(1)
    const sums: bigint[] = []
    books.onSettled(() => sums.push(books.sumOf('acme')))
    await booked(books, credit('pay-1', 5))
    await booked(books, credit('pay-2', -2))
    expect(sums).toEqual([5n, 3n])
  })

  test('counts once: a second one of its name changes nothing, whatever it says', async () => {
    const { books } = await openedBy(1)
    await booked(books, credit('pay-1', 5))
    await booked(books, credit('pay-1', 5), credit('pay-1', 7), credit('pay-1', 5, 'beta'))
    expect([books.sumOf('acme'), books.sumOf('beta'), refused]).toEqual([5n, 0n, []])
  })

  test('does not wait longer because another account has very many', async () => {
    const { books } = await openedBy(1)
    for (const id of others('pay-1', false)) books.book(credit(id, 5, 'storm'), 'change')
    books.book(credit('pay-1', 5), 'change')
    await clock.advance(10)
    await expect.poll(() => books.has('pay-1')).toBe(true)
  })

  test('of two leaders that book one name differently is the one that was stored first', async () => {
    const former = await openedBy(1)
    await booked(former.books, credit(other('pay-1', true), 1))
    const newest = await openedBy(2)
    await booked(newest.books, credit('pay-1', 5))
    await booked(former.books, credit('pay-1', 7, 'beta'))
    expect([former.leader.fencedBy, newest.books.entryOf('pay-1')]).toEqual([2, credit('pay-1', 5)])
    expect((await openedBy(3)).books.sumOf('beta')).toBe(0n)
  })
})

describe('the Secrets of Credits', () => {
  test('are claimed as a whole once one exists: a former leader cannot begin another one', async () => {
    const former = await openedBy(1)
    expect(await kube.list(secrets, NAMESPACE)).toEqual([])
    await booked(former.books, credit('pay-1', 5))
    await openedBy(2)
    expect(await kube.list(secrets, NAMESPACE)).toHaveLength(8)
    const elsewhere = other('pay-1', false)
    await booked(former.books, credit(elsewhere, 5))
    expect([former.leader.fencedBy, refused.map(([id]) => id)]).toEqual([2, [elsewhere]])
  })

  test('all exist soon after the first Credit, so that one that is absent later is noticed', async () => {
    const { books } = await openedBy(1)
    books.book(credit('pay-1', 5), 'change')
    await expect.poll(() => clock.advance(10).then(() => kube.list(secrets, NAMESPACE))).toHaveLength(8)
    expect(books.isIncomplete).toBe(false)
  })

  test('are merged with memory when one was taken back to an older state', async () => {
    const { books } = await openedBy(1)
    await booked(books, credit('pay-1', 5))
    const older = await kube.get(secrets, ref('pay-1'))
    await booked(books, credit(other('pay-1', true), 3))
    const present = await kube.get(secrets, ref('pay-1'))
    await kube.update(secrets, { ...present!, data: older?.data ?? {} })
    await booked(books, credit(others('pay-1', true)[1] ?? '', 1))
    await books.flush()
    expect([books.sumOf('acme'), (await openedBy(2)).books.sumOf('acme')]).toEqual([9n, 9n])
  })

  test('are written again from memory when one has vanished', async () => {
    const { books } = await openedBy(1)
    await booked(books, credit('pay-1', 5))
    await kube.remove(secrets, ref('pay-1'))
    await booked(books, credit(other('pay-1', true), 3))
    expect([books.sumOf('acme'), (await openedBy(2)).books.sumOf('acme')]).toEqual([8n, 8n])
  })
})

describe('a damaged Secret of Credits', () => {
  test('stays as it is and takes no Credit, until an administrator restores it', async () => {
    const { books } = await openedBy(1)
    await booked(books, credit('pay-1', 5))
    const intact = await kube.get(secrets, ref('pay-1'))
    await damage('pay-1')
    const next = (await openedBy(2)).books
    expect([next.isIncomplete, next.isUnreadable('pay-1'), next.isUnreadable(other('pay-1', false))]).toEqual([true, true, false])
    await booked(next, credit(other('pay-1', true), 1), credit(other('pay-1', false), 2))
    expect(refused).toEqual([[other('pay-1', true), expect.any(ShardDamaged)]])
    expect([next.sumOf('acme'), (await kube.get(secrets, ref('pay-1')))?.data]).toEqual([2n, { records: 'ZGFtYWdl' }])
    const present = await kube.get(secrets, ref('pay-1'))
    await kube.update(secrets, { ...present!, data: intact?.data ?? {} })
    next.check()
    await booked(next, credit(other('pay-1', true), 1))
    expect([next.isIncomplete, next.sumOf('acme')]).toEqual([false, 8n])
  })

  test('is begun again after an administrator has deleted it', async () => {
    const { books } = await openedBy(1)
    await booked(books, credit('pay-1', 5))
    await damage('pay-1')
    const next = (await openedBy(2)).books
    await kube.remove(secrets, ref('pay-1'))
    next.check()
    await booked(next, credit('pay-1', 5))
    await booked(next, credit('pay-1', 5))
    expect([next.isIncomplete, next.sumOf('acme')]).toEqual([false, 5n])
  })

  test('costs a leader that knows its entries nothing: it is written again', async () => {
    const { books } = await openedBy(1)
    await booked(books, credit('pay-1', 5))
    await damage('pay-1')
    await booked(books, credit(other('pay-1', true), 1))
    await booked(books, credit(other('pay-1', true), 1))
    expect([books.isIncomplete, books.sumOf('acme'), (await openedBy(2)).books.sumOf('acme')]).toEqual([false, 6n, 6n])
  })
})
