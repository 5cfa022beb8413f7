import { beforeEach, describe, expect, test } from 'vitest'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { secrets } from '#kube/resources.ts'
import type { AccountSpend } from '#contract/ledger/account-spend.ts'
import { NO_SPEND } from '../shards/account-book.ts'
import { shardOf } from '../shards/shard.ts'
import { AccountBooks } from './account-books.ts'

const NAMESPACE = 'headgate'

let kube: FakeKubePort
let clock: ManualClock

beforeEach(() => {
  kube = new FakeKubePort()
  clock = new ManualClock()
})

/** The books as one leader has them. @param raised what the Lease gives a leader that asks for a higher token */
async function openedBy(fence: number, raised = fence, installation = 'one') {
  const leader = { fence, fencedBy: 0, refused: [] as string[] }
  const books = new AccountBooks({
    kube,
    namespace: NAMESPACE,
    clock,
    assertLeading: () => undefined,
    warn: () => undefined,
    installation: () => installation,
    leader: {
      fence: () => leader.fence,
      raiseFence: async () => void (leader.fence = raised),
      onFenced: (other) => void (leader.fencedBy = other),
    },
  })
  books.onSettled((name, error) => error && leader.refused.push(name))
  await books.load()
  return { leader, books }
}

async function opened(books: AccountBooks, name: string, owner: string, changes = 0): Promise<void> {
  books.commit({ name, owner, changes, ...NO_SPEND }, 'create')
  await books.flush().catch(() => undefined) // the listener has the error
}

/** Another name whose books are in the same Secret. */
const neighbour = (name: string): string =>
  Array.from({ length: 100 }, (_, at) => `other-${at}`).find((other) => shardOf(other, 8) === shardOf(name, 8)) ?? ''

describe('the books of accounts', () => {
  test('are found by the next leader', async () => {
    const { books } = await openedBy(1)
    await opened(books, 'acme', 'uid-1')
    expect((await openedBy(2)).books.get('acme')).toEqual({ name: 'acme', owner: 'uid-1', changes: 0, ...NO_SPEND })
  })

  test('are claimed by a new leader: a former one that writes finds the claim, writes nothing, and ends', async () => {
    const former = await openedBy(1)
    await opened(former.books, 'acme', 'uid-1')
    const newest = await openedBy(2)
    await opened(former.books, neighbour('acme'), 'uid-stale')
    expect([former.leader.fencedBy, former.leader.refused]).toEqual([2, [neighbour('acme')]])
    await opened(newest.books, neighbour('acme'), 'uid-2')
    expect((await openedBy(3)).books.get(neighbour('acme'))?.owner).toBe('uid-2')
  })

  test('of a leader whose Lease was deleted are claimed with a higher token', async () => {
    await opened((await openedBy(7)).books, 'acme', 'uid-1')
    const { leader, books } = await openedBy(1, 8)
    await opened(books, 'acme', 'uid-2', 1)
    expect([leader.fence, leader.fencedBy, books.get('acme')?.owner]).toEqual([8, 0, 'uid-2'])
  })

  test('write nothing at a start while there are none', async () => {
    await openedBy(1)
    expect(await kube.list(secrets, NAMESPACE)).toEqual([])
  })

  test('name an account in the ledger by installation and name, and find the name again', async () => {
    const { books } = await openedBy(1)
    await opened(books, 'acme', 'uid-1')
    const ledgerName = books.ledgerName('acme')
    expect(ledgerName).toMatch(/^[0-9a-f]{32}$/)
    expect([books.nameIn(ledgerName), books.nameIn(books.ledgerName('nobody'))]).toEqual(['acme', undefined])
    expect((await openedBy(2, 2, 'another')).books.ledgerName('acme')).not.toBe(ledgerName)
  })

  test('are claimed although a former leader writes between the first read and the claim', async () => {
    const former = await openedBy(1)
    await opened(former.books, 'acme', 'uid-1')
    let isFirst = true
    kube.before = async ({ verb }) => {
      if (verb !== 'update' || !isFirst) return
      isFirst = false // the claim is under way
      await opened(former.books, neighbour('acme'), 'uid-2')
    }
    const newest = await openedBy(2)
    expect(newest.books.get(neighbour('acme'))?.owner).toBe('uid-2')
    await opened(former.books, 'acme', 'uid-stale', 1)
    expect([former.leader.fencedBy, newest.books.get('acme')?.owner]).toEqual([2, 'uid-1'])
  })
})

describe('the spend of an account', () => {
  const spend = (openFrom: number, closedSpend: bigint, spent: Record<string, number>): AccountSpend => ({
    ...{ openFrom, closedSpend },
    spent: new Map(Object.entries(spent)),
  })

  test('is known at once, durable with the next write, and found by the next leader', async () => {
    const { books } = await openedBy(1)
    await opened(books, 'acme', 'uid-1')
    expect(books.addSpend('acme', spend(0, 0n, { '1:p1': 5 }))).toBe(true)
    expect([books.newest('acme')?.spent.get('1:p1'), books.durable('acme')?.spent.size]).toEqual([5, 0])
    await books.flush()
    expect(books.durable('acme')?.spent.get('1:p1')).toBe(5)
    expect((await openedBy(2)).books.get('acme')).toMatchObject({ owner: 'uid-1', ...spend(0, 0n, { '1:p1': 5 }) })
  })

  test('never shrinks, and costs no write while nothing is new', async () => {
    const { books } = await openedBy(1)
    await opened(books, 'acme', 'uid-1')
    books.addSpend('acme', spend(1, 7n, { '1:p1': 5 }))
    await books.flush()
    const writes = kube.calls.length
    expect([books.addSpend('acme', spend(0, 0n, { '1:p1': 4 })), books.addSpend('acme', NO_SPEND)]).toEqual([false, false])
    await books.flush()
    expect([kube.calls.length, books.get('acme')]).toMatchObject([writes, spend(1, 7n, { '1:p1': 5 })])
  })

  test('stays with the name when the owner changes, also if the change began before it was known', async () => {
    const { books } = await openedBy(1)
    await opened(books, 'acme', 'uid-1')
    books.addSpend('acme', spend(0, 0n, { '1:p1': 5 }))
    books.commit({ name: 'acme', owner: 'uid-2', changes: 1, ...NO_SPEND }, 'create')
    books.addSpend('acme', spend(0, 0n, { '1:p2': 3 }))
    await books.flush()
    expect((await openedBy(2)).books.get('acme')).toMatchObject({ owner: 'uid-2', changes: 1, ...spend(0, 0n, { '1:p1': 5, '1:p2': 3 }) })
  })

  test('of a name without books is not kept', async () => {
    const { books } = await openedBy(1)
    expect([books.addSpend('acme', spend(0, 0n, { '1:p1': 5 })), books.newest('acme')]).toEqual([false, undefined])
  })

  test('survives the return of a Secret to an older state', async () => {
    const { books } = await openedBy(1)
    await opened(books, 'acme', 'uid-1')
    const ref = { namespace: NAMESPACE, name: `hg-balances-8-${shardOf('acme', 8)}` }
    const older = await kube.get(secrets, ref)
    books.addSpend('acme', spend(2, 10n, { '2:p1': 5 }))
    await books.flush()
    const present = await kube.get(secrets, ref)
    await kube.update(secrets, { ...present!, data: older?.data ?? {} })
    await opened(books, neighbour('acme'), 'uid-2')
    await books.flush()
    expect((await openedBy(2)).books.get('acme')).toMatchObject(spend(2, 10n, { '2:p1': 5 }))
  })
})

test('while a Secret is damaged, the ledger keeps the spend of accounts whose books may be lost', async () => {
  const { books } = await openedBy(1)
  await opened(books, 'acme', 'uid-1')
  const ledger = books.ledgerName('gone')
  expect([books.mayHave(books.ledgerName('acme')), books.mayHave(ledger)]).toEqual([true, false])
  const name = `hg-balances-8-${shardOf('acme', 8)}`
  const secret = await kube.get(secrets, { namespace: NAMESPACE, name })
  await kube.update(secrets, { ...secret!, data: { records: 'ZGFtYWdl' } })
  const next = (await openedBy(2)).books
  expect([next.mayHave(books.ledgerName('acme')), next.mayHave(ledger), next.mayHave('00000000-0000-4000-8000-000000000001')]).toEqual([
    true,
    true,
    false,
  ])
})
