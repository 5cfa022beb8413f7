/** Takes a world of prepaid accounts to rest, and checks there what is promised of balances. */
import assert from 'node:assert/strict'
import { SHARDS_LABEL, type ShardSet } from '#contract/records/mounted-folder.ts'
import { uidOf } from '#kube/port.ts'
import { secrets } from '#kube/resources.ts'
import { type AccountBook, bookCodec, totalSpent } from '../../operator/shards/account-book.ts'
import { creditCodec, type CreditEntry } from '../../operator/shards/credit-entry.ts'
import type { ShardCodec } from '../../operator/shards/shard-codec.ts'
import type { BalanceRead } from '../../operator/books/balance-store.ts'
import { type CreditOperator, entryIn, type OperatedWorld } from './credit-operator.ts'
import { settle } from './manual-clock.ts'

/** Time in which everything that a failure has left behind is repaired, ms. */
const REPAIRED_MS = 12_000
/** Time after which the holds of a dead process are dropped, even by a leader that never saw it alive, ms. */
const DROPPED_MS = 125_000

/** A running request. */
export interface OpenHold {
  readonly amount: number
  readonly settle: (cost: number) => void
}

/** A world whose rest can be checked. */
export interface RestedWorld extends OperatedWorld {
  readonly operators: readonly CreditOperator[]
  readonly leader: CreditOperator
  readonly gateways: ReadonlyArray<{ losesReply: boolean }>
  heal(): void
  catchUp(): Promise<void>
  pass(ms: number): Promise<void>
  openHolds(): readonly OpenHold[]
  balanceIn(ledger: string): Promise<BalanceRead>
  /** @returns whether a gateway admits a request of an Account that holds 1 */
  admitsOne(uid: string): Promise<boolean>
}

/** What is in the Secrets. */
export interface DurableBooks {
  readonly books: readonly AccountBook[]
  readonly credits: readonly CreditEntry[]
}

/** Every failure ends, every request settles at what it holds, and the operator does all that is to be done. */
export async function rest(world: RestedWorld): Promise<void> {
  for (const operator of world.operators) {
    operator.holdsWrite = undefined
    operator.dieAt(Infinity, 'before')
    operator.release()
  }
  await settle() // an operator dies if the write that arrives is its last
  world.heal()
  for (const gateway of world.gateways) gateway.losesReply = false
  await world.catchUp()
  world.leader.books.check()
  world.leader.credits.check()
  await world.pass(REPAIRED_MS)
  for (const hold of world.openHolds()) hold.settle(hold.amount)
  await world.pass(DROPPED_MS)
  await world.catchUp()
  await world.pass(REPAIRED_MS)
}

export async function durableBooks(world: RestedWorld): Promise<DurableBooks> {
  const { books, credits: booked } = world.codecs
  return {
    books: await entriesOf(world, 'balances', books.codec?.() ?? bookCodec()),
    credits: await entriesOf(world, 'credits', booked.codec?.() ?? creditCodec),
  }
}

async function entriesOf<Entry>(world: RestedWorld, set: ShardSet, codec: ShardCodec<Entry>): Promise<readonly Entry[]> {
  const found = await world.kube.list(secrets, world.namespace, `${SHARDS_LABEL}=${set}`)
  const shards = await Promise.all(found.map(({ data = {} }) => codec.decode(data)))
  return shards.flatMap(({ entries }) => entries.flatMap(({ entry }) => entry ?? []))
}

/** Checks a world at rest. */
export async function checkRest(world: RestedWorld): Promise<void> {
  const durable = await durableBooks(world)
  checkCredits(world, durable)
  for (const book of durable.books) {
    await checkSpend(world, book)
    checkBalance(world, book, durable.credits)
  }
  await checkOwners(world, durable)
}

/** Each Credit counts once and for ever, with the account and the amount of a manifest. */
function checkCredits(world: RestedWorld, { books, credits: booked }: DurableBooks): void {
  const byId = new Map(booked.map((entry) => [entry.id, entry]))
  assert.equal(byId.size, booked.length, 'no Credit counts twice')
  for (const { id, account, micros } of booked) {
    const isPaid = world.manifests.some((paid) => paid.id === id && paid.account === account && paid.micros === micros)
    assert.ok(isPaid, `${id} counts as somebody has paid it`)
  }
  const names = new Set(books.map(({ name }) => name))
  for (const object of world.objects().credits) {
    const { id, account } = entryIn(object)
    if (names.has(account)) assert.ok(byId.has(id), `${id} is booked`)
  }
  if (world.excuses.credits) return
  for (const [id, { account, micros }] of world.shown)
    assert.deepEqual([byId.get(id)?.account, byId.get(id)?.micros], [account, micros], `${id} was Booked`)
}

/** All that was settled is in the books and in the store, once, and nothing is held. */
async function checkSpend(world: RestedWorld, book: AccountBook): Promise<void> {
  const ledger = world.leader.books.ledgerName(book.name)
  const spent = totalSpent(book)
  const { least, most } = world.spentOf(ledger)
  assert.ok(spent >= BigInt(least) && spent <= BigInt(most), `${book.name}: ${spent} are in the books of ${least} to ${most}`)
  const read = await world.balanceIn(ledger)
  assert.ok(typeof read === 'object' && read.openFrom !== undefined, `${book.name}: the store grants`)
  assert.equal(totalSpent({ ...read, openFrom: read.openFrom }), spent, `${book.name}: books and store agree`)
  assert.deepEqual([...read.holders], [], `${book.name}: nothing is held`)
}

/** What was paid minus what was spent is the balance, exactly. */
function checkBalance(world: RestedWorld, book: AccountBook, booked: readonly CreditEntry[]): void {
  const { keeper } = world.leader
  const own = booked.filter(({ account }) => account === book.name)
  const paid = own.reduce((sum, { micros }) => sum + BigInt(micros), 0n)
  assert.equal(keeper.balanceOf(book.name), paid - totalSpent(book), `${book.name}: the balance`)
  const record = world.recordOf(book.name)
  if (record?.state === 'Active') assert.equal(record.credits, paid, `${book.name}: the published sum`)
}

/** At most one Account spends the balance of a name: the owner of the books, which works. */
async function checkOwners(world: RestedWorld, { books }: DurableBooks): Promise<void> {
  const objects = new Set(world.objects().accounts.map(uidOf))
  for (const { uid, name, state } of world.records.values()) {
    if (state !== 'Active') continue
    assert.ok(objects.has(uid), `${name}: a deleted Account is refused`)
    assert.equal(books.find((book) => book.name === name)?.owner, uid, `${name}: the owner of the books spends`)
  }
  for (const { name, owner } of books) {
    if (!objects.has(owner)) continue
    const balance = world.leader.keeper.balanceOf(name)
    assert.equal(await world.admitsOne(owner), balance >= 1n, `${name}: an account with ${balance} works, and only then`)
  }
}
