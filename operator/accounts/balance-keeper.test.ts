import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { secrets } from '#kube/resources.ts'
import type { SignedMicros } from '#contract/values/signed-micros.ts'
import { CreditStore } from '../../test/support/credit-store.ts'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { uncompressed } from '../../test/support/uncompressed-codec.ts'
import type { LedgerBalance } from '#contract/ledger/account-spend.ts'
import type { LiveProcess } from '../projection/store.ts'
import { bookCodec, NO_SPEND, readBook } from '../shards/account-book.ts'
import { creditCodec, readCredit } from '../shards/credit-entry.ts'
import { AccountBooks } from './account-books.ts'
import { BalanceKeeper, type BalanceKeeperDeps } from './balance-keeper.ts'
import { CreditBooks } from './credit-books.ts'

const NAMESPACE = 'headgate'
const HOURS_MS = 7_300_000
/** Time until spend is read and durable, ms. */
const DURABLE_MS = 10_000

let kube: FakeKubePort
let clock: ManualClock
let store: CreditStore
let live: LiveProcess[]
let outages: string[]
let running: BalanceKeeper[]

beforeEach(() => {
  kube = new FakeKubePort()
  clock = new ManualClock()
  store = new CreditStore()
  live = [processOf('p1')]
  outages = []
  running = []
})
afterEach(() => Promise.all(running.map((keeper) => keeper.stop())))

const processOf = (name: string): LiveProcess => ({ process: `pod-${name}/${name}`, pod: `pod-${name}`, acknowledgement: undefined })

/** One operator. @param options.isStarted false: its keeper takes no turns yet */
async function operator(fence = 1, options: Partial<BalanceKeeperDeps> & { readonly isStarted?: boolean } = {}) {
  const leader = { fence: () => fence, raiseFence: () => Promise.reject(new Error('newer')), onFenced: () => undefined }
  const deps = { kube, namespace: NAMESPACE, clock, assertLeading: () => undefined, warn: () => undefined, leader }
  const fast = {
    books: { shards: 2, codec: () => uncompressed(bookCodec(), readBook) },
    credits: { shards: 2, codec: () => uncompressed(creditCodec, readCredit) },
  }
  const books = new AccountBooks({ ...deps, ...fast.books, installation: () => 'one' })
  const credits = new CreditBooks({ ...deps, ...fast.credits })
  const keeper = new BalanceKeeper({
    ...{ store, books, credits, clock, assertLeading: () => undefined },
    live: () => live,
    serving: () => new Set(live.map(({ pod }) => pod)),
    outage: { failed: (line) => outages.push(line), works: () => undefined },
    ...options,
  })
  await books.load()
  await credits.load()
  if (options.isStarted !== false) keeper.start()
  running.push(keeper)
  return { books, credits, keeper, ledger: (name: string) => books.ledgerName(name) }
}

type Operator = Awaited<ReturnType<typeof operator>>

/** Begins the books of an account, whose key grants then. */
async function opened({ books, keeper }: Operator, name = 'acme'): Promise<void> {
  books.commit({ name, owner: `uid-${name}`, changes: 0, ...NO_SPEND }, 'create')
  keeper.opened(name)
  await clock.advance(2_000)
}

async function credited({ credits }: Operator, micros: number, id = 'pay-1'): Promise<void> {
  credits.book({ id, account: 'acme', micros: micros as SignedMicros, type: 'TopUp', time: '', reference: '' }, 'change')
  await clock.advance(100)
}

/** A report of a gateway. */
function report(ledger: string, spent: Readonly<Record<number, number>>, { process: name = 'p1', held = 0, need = 0 } = {}) {
  const by = new Map(Object.entries(spent).map(([period, amount]) => [Number(period), amount]))
  const call = { ledger, process: name, period: Math.max(0, ...by.keys()), held, spent: by, credits: 1_000n, need }
  return store.call(call)
}

const key = (ledger: string): LedgerBalance => {
  const read = store.peek(ledger)
  if (typeof read === 'string') throw new Error(`the key is ${read}`)
  return read
}

describe('new books', () => {
  test('grant at once, before any gateway knows the account', async () => {
    const one = await operator(1, { isStarted: false })
    one.books.commit({ name: 'acme', owner: 'uid-1', changes: 0, ...NO_SPEND }, 'create')
    one.keeper.opened('acme')
    await clock.advance(100)
    await one.keeper.seedBefore(['acme', 'nobody'])
    expect(key(one.ledger('acme'))).toMatchObject({ openFrom: 0, period: 1 })
    expect(report(one.ledger('acme'), {}, { need: 1 }).isGranted).toBe(true)
  })

  test('grant nothing before they are durable', async () => {
    const one = await operator(1, { isStarted: false })
    kube.before = ({ verb }) => (verb === 'create' ? Promise.reject(new Error('no answer')) : undefined)
    one.books.commit({ name: 'acme', owner: 'uid-1', changes: 0, ...NO_SPEND }, 'create')
    one.keeper.opened('acme')
    await one.keeper.seedBefore(['acme'])
    expect(store.peek(one.ledger('acme'))).toBe('absent')
  })

  test('that another process has begun wait for 6 s', async () => {
    const former = await operator(1, { isStarted: false })
    former.books.commit({ name: 'acme', owner: 'uid-1', changes: 0, ...NO_SPEND }, 'create')
    await clock.advance(100)
    const next = await operator(2)
    await clock.advance(5_000)
    expect(report(next.ledger('acme'), { 1: 0 }, { need: 1 }).isGranted).toBe(false)
    await clock.advance(3_000)
    expect(report(next.ledger('acme'), { 1: 0 }, { need: 1 }).isGranted).toBe(true)
  })
})

describe('spend', () => {
  test('becomes durable within seconds, and is the balance at once', async () => {
    const one = await operator()
    const told: bigint[] = []
    one.keeper.onChanged((name) => told.push(one.keeper.balanceOf(name)))
    await opened(one)
    await credited(one, 1_000)
    report(one.ledger('acme'), { 1: 300 })
    await clock.advance(DURABLE_MS)
    expect([one.keeper.balanceOf('acme'), one.keeper.spentOf('acme'), told]).toEqual([700n, 300n, [0n, 1_000n, 700n]])
    expect(one.books.durable('acme')?.spent).toEqual(new Map([['1:p1', 300]]))
    expect((await operator(2)).keeper.spentOf('acme')).toBe(300n)
  })

  test('of an account that spends is read every 4 s at least, so that little is lost with the store', async () => {
    const one = await operator()
    await opened(one)
    const ledger = one.ledger('acme')
    const reads: number[] = []
    const read = store.readBalances.bind(store)
    store.readBalances = (names) => {
      if (names.includes(ledger)) reads.push(clock.monotonic())
      return read(names)
    }
    for (let second = 1; second <= 60; second += 1) {
      report(ledger, { 1: second })
      await clock.advance(1_000)
    }
    const gaps = reads.slice(2).map((at, index) => at - (reads[index + 1] ?? 0)) // the first read finds that it spends
    expect(Math.max(...gaps)).toBeLessThanOrEqual(4_000)
  })

  test('that the store has lost is restored from the books, and said once', async () => {
    const restored: string[] = []
    const one = await operator(1, { onRestored: (name) => restored.push(name) })
    await opened(one)
    const back = store.save()
    report(one.ledger('acme'), { 1: 300 })
    await clock.advance(DURABLE_MS)
    back()
    await clock.advance(10_000)
    expect([key(one.ledger('acme')).spent, restored]).toEqual([new Map([['1:p1', 300]]), ['acme']])
  })

  test('is not put into an emptied store before it is durable, and the store grants nothing until then', async () => {
    const one = await operator()
    await opened(one)
    kube.before = ({ verb }) => (verb === 'update' ? Promise.reject(new Error('no answer')) : undefined)
    report(one.ledger('acme'), { 1: 300 })
    await clock.advance(DURABLE_MS)
    store.wipe()
    await clock.advance(20_000)
    expect([one.keeper.spentOf('acme'), store.peek(one.ledger('acme'))]).toEqual([300n, 'absent'])
    kube.before = () => undefined
    await clock.advance(10_000)
    expect(key(one.ledger('acme'))).toMatchObject({ openFrom: 0, spent: new Map([['1:p1', 300]]) })
  })

  test('of a store that does not answer is waited for, and every wait begins again', async () => {
    const one = await operator()
    await opened(one)
    store.wipe()
    one.keeper.used('acme') // so that the loss is seen before the outage
    await clock.advance(4_000)
    store.isDown = true
    await clock.advance(4_000)
    store.isDown = false
    await clock.advance(5_000)
    expect([store.peek(one.ledger('acme')), outages[0]]).toEqual(['absent', 'balances of accounts cannot be kept: the store is down'])
    await clock.advance(3_000)
    expect(key(one.ledger('acme')).openFrom).toBe(0)
  })

  test('in a key that no Headgate program has written is dropped, and counted again from books and reports', async () => {
    const one = await operator()
    await opened(one)
    report(one.ledger('acme'), { 1: 300 })
    await clock.advance(DURABLE_MS)
    store.forge(one.ledger('acme'), (balance) => balance.spent.set('1:no process', 5))
    await clock.advance(15_000)
    expect(key(one.ledger('acme'))).toMatchObject({ openFrom: 0, spent: new Map([['1:p1', 300]]) })
  })

  test('in a key with a sum that no books can hold is dropped, and other accounts do not wait for it', async () => {
    const one = await operator(1, { isPrepaid: () => false })
    await opened(one)
    await opened(one, 'beta')
    store.wipe()
    store.forge(one.ledger('acme'), (balance) => Object.assign(balance, { openFrom: 1, closedSpend: 9n * 10n ** 30n }))
    await clock.advance(30_000)
    expect(key(one.ledger('beta'))).toMatchObject({ openFrom: 0 })
    expect([key(one.ledger('acme')).openFrom, one.keeper.spentOf('acme'), outages]).toEqual([0, 0n, []])
  })

  test('that is forged too high is held back and shown, and the rest is believed', async () => {
    const one = await operator(1, { isPrepaid: () => true })
    await opened(one)
    await credited(one, 1_000)
    report(one.ledger('acme'), { 1: 300 })
    store.forge(one.ledger('acme'), (balance) => balance.spent.set('1:evil', 1_000_000))
    await clock.advance(DURABLE_MS)
    expect([one.keeper.spentOf('acme'), one.keeper.heldBackOf('acme')]).toEqual([300n, 1_000_000n])
    await credited(one, 900_000, 'pay-2')
    await clock.advance(DURABLE_MS)
    expect([one.keeper.spentOf('acme'), one.keeper.heldBackOf('acme')]).toEqual([1_000_300n, 0n])
  })

  test('of an account without a prepaid balance has no bound', async () => {
    const one = await operator(1, { isPrepaid: () => false })
    await opened(one)
    report(one.ledger('acme'), { 1: 5_000_000 })
    await clock.advance(DURABLE_MS)
    expect([one.keeper.balanceOf('acme'), one.keeper.heldBackOf('acme')]).toEqual([-5_000_000n, 0n])
  })

  test('is read once more before an end', async () => {
    const one = await operator()
    await opened(one)
    report(one.ledger('acme'), { 1: 300 })
    await one.keeper.stop()
    await one.books.flush()
    expect((await operator(2)).keeper.spentOf('acme')).toBe(300n)
  })
})

describe('the periods of an account', () => {
  test('are closed one after the other, hours apart, and lose nothing', async () => {
    const one = await operator()
    await opened(one)
    const ledger = one.ledger('acme')
    report(ledger, { 1: 300 })
    await clock.advance(DURABLE_MS)
    clock.skip(HOURS_MS)
    await clock.advance(DURABLE_MS)
    expect([key(ledger).openFrom, key(ledger).period]).toEqual([1, 2])
    expect(report(ledger, { 1: 310, 2: 5 }), 'the period before is open').toMatchObject({ period: 2, openFrom: 1 })
    await clock.advance(DURABLE_MS)
    clock.skip(HOURS_MS)
    await clock.advance(DURABLE_MS)
    expect(key(ledger)).toMatchObject({ openFrom: 2, period: 3, closedSpend: 310n, spent: new Map([['2:p1', 5]]) })
    expect(one.books.durable('acme')).toMatchObject({ openFrom: 2, closedSpend: 310n, spent: new Map([['2:p1', 5]]) })
    expect(one.keeper.spentOf('acme')).toBe(315n)
  })

  test('are not closed twice by two leaders within hours', async () => {
    const one = await operator()
    await opened(one)
    report(one.ledger('acme'), { 1: 300 })
    await clock.advance(DURABLE_MS)
    clock.skip(HOURS_MS / 2)
    await operator(2)
    await clock.advance(DURABLE_MS)
    clock.skip(HOURS_MS / 2)
    await clock.advance(DURABLE_MS)
    clock.skip(HOURS_MS / 2)
    await clock.advance(DURABLE_MS)
    expect(key(one.ledger('acme')).period).toBe(2)
  })

  test('are closed in the store only after they are closed in the Secrets', async () => {
    const one = await operator()
    await opened(one)
    const ledger = one.ledger('acme')
    report(ledger, { 1: 300 })
    await clock.advance(DURABLE_MS)
    kube.before = ({ verb }) => (verb === 'update' ? Promise.reject(new Error('no answer')) : undefined)
    clock.skip(HOURS_MS)
    await clock.advance(DURABLE_MS)
    expect([one.books.newest('acme')?.openFrom, key(ledger).openFrom, key(ledger).period]).toEqual([1, 0, 2])
    kube.before = () => undefined
    await clock.advance(DURABLE_MS)
    expect([one.books.durable('acme')?.openFrom, key(ledger).openFrom]).toEqual([1, 1])
  })

  test('are closed within an hour if they have more spend than a report may add to', async () => {
    const one = await operator()
    await opened(one)
    const ledger = one.ledger('acme')
    report(ledger, { 1: 4_000_000_000_000_001 })
    await clock.advance(20 * 60_000)
    report(ledger, { 1: 4_000_000_000_000_001, 2: 1 })
    await clock.advance(20 * 60_000)
    expect(key(ledger)).toMatchObject({ openFrom: 2, closedSpend: 4_000_000_000_000_001n, spent: new Map([['2:p1', 1]]) })
  })

  test('go on from where a leader has died', async () => {
    const one = await operator()
    await opened(one)
    report(one.ledger('acme'), { 1: 300 })
    await clock.advance(DURABLE_MS)
    await one.keeper.stop()
    await store.raisePeriods([{ name: one.ledger('acme'), period: 2 }])
    report(one.ledger('acme'), { 1: 320 })
    const next = await operator(2)
    await clock.advance(DURABLE_MS)
    expect(next.books.durable('acme')).toMatchObject({ openFrom: 1, spent: new Map([['1:p1', 320]]) })
  })
})

describe('what is held', () => {
  test('by a dead process is free again after half a minute, and its spend stays', async () => {
    const one = await operator()
    await opened(one)
    report(one.ledger('acme'), { 1: 300 }, { held: 7 })
    await clock.advance(5_000)
    live = []
    await clock.advance(25_000)
    expect(key(one.ledger('acme')).holders).toEqual(new Map([['p1', 7]]))
    await clock.advance(17_000)
    expect(key(one.ledger('acme'))).toMatchObject({ holders: new Map(), spent: new Map([['1:p1', 300]]) })
  })

  test('by a process that was frozen stays although its first heartbeat is not read yet', async () => {
    const one = await operator()
    await opened(one)
    report(one.ledger('acme'), {}, { held: 7 })
    await clock.advance(5_000)
    live = []
    await clock.advance(39_000)
    report(one.ledger('acme'), {}, { held: 9 })
    await clock.advance(9_000)
    expect(key(one.ledger('acme')).holders).toEqual(new Map([['p1', 9]]))
  })
})

describe('damage', () => {
  const damaged = async (name: string): Promise<void> => {
    const ref = { namespace: NAMESPACE, name }
    const present = await kube.get(secrets, ref)
    await kube.update(secrets, { ...present!, data: { records: Buffer.from('{').toString('base64') } })
  }
  const nameOf = async (set: string, entry: string): Promise<string> => {
    const all = await kube.list(secrets, NAMESPACE, `headgate.dev/shards=${set}`)
    const found = all.find(({ data }) =>
      Buffer.from(data?.['records'] ?? '', 'base64')
        .toString()
        .includes(entry),
    )
    return found?.metadata.name ?? ''
  }

  test('of books: the account waits until the store has supplied its spend', async () => {
    const one = await operator()
    await opened(one)
    report(one.ledger('acme'), { 1: 300 })
    await clock.advance(DURABLE_MS)
    await one.keeper.stop()
    await damaged(await nameOf('balances', 'acme'))
    const next = await operator(2)
    expect([next.keeper.isBroken('acme'), next.keeper.spentOf('acme')]).toEqual([true, 0n])
    next.keeper.recover('acme', 'uid-acme')
    await clock.advance(DURABLE_MS)
    expect([next.keeper.isBroken('acme'), next.books.durable('acme')]).toMatchObject([
      false,
      { owner: 'uid-acme', spent: new Map([['1:p1', 300]]) },
    ])
  })

  test('of books: a store that has lost the spend supplies nothing', async () => {
    const one = await operator()
    await opened(one)
    await one.keeper.stop()
    await damaged(await nameOf('balances', 'acme'))
    store.wipe()
    const next = await operator(2)
    report(one.ledger('acme'), { 1: 20 })
    next.keeper.recover('acme', 'uid-acme')
    await clock.advance(20_000)
    expect([next.keeper.isBroken('acme'), next.books.newest('acme')]).toEqual([true, undefined])
  })

  test('of Credits: an account that lacks some waits until an administrator has acted, and others go on', async () => {
    const one = await operator()
    await opened(one)
    await opened(one, 'beta')
    await credited(one, 1_000)
    const published = new Map([['acme', 1_000n]])
    const name = await nameOf('credits', 'pay-1')
    await damaged(name)
    const next = await operator(2, { publishedCredits: (account) => published.get(account) })
    const told: string[] = []
    next.keeper.onChanged((account) => told.push(account))
    expect([next.keeper.isBroken('acme'), next.keeper.isBroken('beta')]).toEqual([true, false])
    await kube.remove(secrets, { namespace: NAMESPACE, name })
    await clock.advance(60_000)
    expect([next.keeper.isBroken('acme'), told.includes('acme')]).toEqual([false, true])
  })
})
