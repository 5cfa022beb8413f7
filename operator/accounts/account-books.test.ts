import { beforeEach, describe, expect, test } from 'vitest'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { secrets } from '#kube/resources.ts'
import { mergeBooks } from '../shards/account-book.ts'
import { shardOf } from '../shards/secret-shards.ts'
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
  books.commit({ name, owner, changes }, 'create')
  await books.flush().catch(() => undefined) // the listener has the error
}

/** Another name whose books are in the same Secret. */
const neighbour = (name: string): string =>
  Array.from({ length: 100 }, (_, at) => `other-${at}`).find((other) => shardOf(other, 8) === shardOf(name, 8)) ?? ''

describe('the books of accounts', () => {
  test('are found by the next leader', async () => {
    const { books } = await openedBy(1)
    await opened(books, 'acme', 'uid-1')
    expect((await openedBy(2)).books.get('acme')).toEqual({ name: 'acme', owner: 'uid-1', changes: 0 })
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

  test('of two leaders are merged: the later owner counts, in either order', () => {
    const [first, second] = [0, 1].map((changes) => ({ name: 'acme', owner: `uid-${changes}`, changes }))
    expect([mergeBooks(first!, second!), mergeBooks(second!, first!)]).toEqual([second, second])
  })
})
