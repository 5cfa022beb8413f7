/**
 * One operator process of a CreditWorld: the real books and the real keeper, and the steps of the kinds Account and Credit in their order. It
 * sees objects as of its last read, may die at any write, and may have a write under way that arrives late.
 */
import type { Account } from '#api/account.ts'
import type { Credit } from '#api/credit.ts'
import { accounts } from '#api/resources.ts'
import { parseSignedAmount } from '#contract/values/signed-micros.ts'
import type { Clock } from '#platform/clock.ts'
import { KubeError, type KubePort, refOf, uidOf } from '#kube/port.ts'
import { AccountBooks } from '../../operator/accounts/account-books.ts'
import { BalanceKeeper } from '../../operator/accounts/balance-keeper.ts'
import { beginsBooks, claimOf, isMarked, MARK_ANNOTATION, markFor } from '../../operator/accounts/claim.ts'
import { CreditBooks } from '../../operator/accounts/credit-books.ts'
import { NO_SPEND } from '../../operator/shards/account-book.ts'
import type { AccountBook } from '../../operator/shards/account-book.ts'
import type { CreditEntry } from '../../operator/shards/credit-entry.ts'
import type { BalanceStore } from '../../operator/books/balance-store.ts'
import type { LiveProcess } from '../../operator/projection/store.ts'
import type { CreditCounts, SetCodec } from './credit-counts.ts'
import { type PortCall, PortAround } from './fake-kube-port.ts'

export const NAMESPACE = 'headgate'
export const INSTALLATION = '7d3c1e2a-5a1b-4c39-9f0e-0c1d2e3f4a5b'

const WRITES: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'remove'])

/** What an operator works on. */
export interface OperatedWorld extends CreditCounts {
  readonly kube: KubePort
  /** Of the Secrets. */
  readonly namespace: string
  readonly store: BalanceStore
  readonly clock: Clock
  readonly codecs: { readonly books: SetCodec<AccountBook>; readonly credits: SetCodec<CreditEntry> }
  /** The objects of the API server as of now, or as of the last read of them. */
  objects(): { readonly accounts: readonly Account[]; readonly credits: readonly Credit[] }
  live(): readonly LiveProcess[]
  serving(): ReadonlySet<string>
}

export class CreditOperator {
  readonly fence: number
  /** Monotonic ms. */
  readonly startedMs: number
  readonly books: AccountBooks
  readonly credits: CreditBooks
  readonly keeper: BalanceKeeper
  /** Dead, or deposed and aware of it. */
  isOver = false
  /** The next write of an object with such a name stays under way until `release`. */
  holdsWrite: RegExp | undefined
  readonly #world: OperatedWorld
  readonly #kube: KubePort
  readonly #late: Array<() => void> = []
  #written = 0
  #death: { readonly write: number; readonly when: 'before' | 'after' } | undefined
  #accounts: readonly Account[] = []
  #credits: readonly Credit[] = []
  #isWorking = false
  #isLoaded = false

  constructor(world: OperatedWorld, fence: number) {
    this.#world = world
    this.fence = fence
    this.startedMs = world.clock.monotonic()
    const kube = new PortAround(world.kube, (call, run) => this.#around(call, run))
    this.#kube = kube
    const leader = {
      fence: () => this.fence,
      raiseFence: () => Promise.reject(new Error('a newer leader exists')),
      onFenced: () => this.end(),
    }
    const assertLeading = (): void => {
      if (this.isOver) throw new Error('not the leader')
    }
    const deps = { kube, namespace: world.namespace, clock: world.clock, assertLeading, warn: () => undefined, leader }
    this.books = new AccountBooks({ ...deps, ...world.codecs.books, installation: () => INSTALLATION })
    this.credits = new CreditBooks({ ...deps, ...world.codecs.credits })
    this.keeper = new BalanceKeeper({
      ...{ store: world.store, books: this.books, credits: this.credits, clock: world.clock, assertLeading },
      live: () => world.live(),
      serving: () => world.serving(),
      outage: { failed: () => undefined, works: () => undefined },
      isPrepaid: () => false, // after several losses of the store an account may have spent more than its credits pay
      publishedCredits: (name) => world.recordOf(name)?.credits,
    })
  }

  /** Reads and claims the books, then begins to work. */
  async start(): Promise<void> {
    try {
      await this.books.load()
      await this.credits.load()
      this.#isLoaded = true
      this.see()
      this.keeper.start()
    } catch {
      this.end() // it died at a write, or a newer leader has claimed the books
    }
  }

  end(): void {
    if (this.isOver) return
    this.isOver = true
    void this.keeper.stop()
    this.books.stop()
    this.credits.stop()
  }

  /** Reads the objects of the API server. Between two reads any number of changes merge into one. */
  see(): void {
    const { accounts: present, credits: paid } = this.#world.objects()
    this.#accounts = present
    this.#credits = paid
  }

  /** It dies at the n-th write from now on, counted from 0: before the write takes effect, or after it and before its answer. */
  dieAt(write: number, when: 'before' | 'after'): void {
    this.#death = { write: this.#written + write, when }
  }

  /** Lets writes that are under way arrive. */
  release(): void {
    for (const arrive of this.#late.splice(0)) arrive()
  }

  /** One pass over the objects that it sees. Commits become durable later. */
  async work(): Promise<void> {
    if (this.isOver || !this.#isLoaded || this.#isWorking) return // it decides nothing before it has claimed the books
    this.#isWorking = true
    try {
      for (const account of this.#accounts) await this.#account(account)
      for (const record of this.#world.records.values()) await this.#ended(record.uid)
      for (const credit of this.#credits) this.#credit(credit)
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
    } finally {
      this.#isWorking = false
    }
  }

  async #account(account: Account): Promise<void> {
    const { books, credits: booked, keeper } = this
    const { name } = account.metadata
    const book = books.newest(name)
    const facts = { isUnreadable: books.isUnreadable(name), isDamaged: books.isDamaged(name), isBroken: keeper.isBroken(name) }
    const claim = claimOf(account, { installation: INSTALLATION, book, ...facts })
    if (books.state(name) === 'Pending') return
    if (claim === 'Open' || claim === 'Inherit') {
      const changes = book === undefined ? 0 : book.changes + 1
      books.commit({ ...NO_SPEND, name, owner: uidOf(account), changes }, 'create')
      if (book === undefined && !beginsBooks(account)) keeper.opened(name)
    } else if (claim === 'Owned' && !isMarked(INSTALLATION, account)) await this.#mark(account)
    else if (claim === 'Owned') {
      await keeper.seedBefore([name])
      const paid = new Set(this.#world.manifests.map(({ id }) => id))
      const ids = [...paid].filter((id) => booked.entryOf(id)?.account === name)
      const record = { uid: uidOf(account), name, ledger: books.ledgerName(name), credits: booked.sumOf(name) }
      this.#world.publish(this, { ...record, state: 'Active' }, ids)
    } else this.#world.withdraw(this, uidOf(account))
  }

  async #mark(account: Account): Promise<void> {
    const mark = { [MARK_ANNOTATION]: markFor(INSTALLATION, account) }
    const { resourceVersion, annotations } = account.metadata
    const marked = await this.#kube.patch(accounts, refOf(account), [
      { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
      { op: 'add', path: '/metadata/annotations', value: { ...annotations, ...mark } },
    ])
    this.#accounts = this.#accounts.map((one) => (one === account ? marked : one))
  }

  /** An account without an object counts as deleted after a live read. */
  async #ended(uid: string): Promise<void> {
    if (this.#accounts.some((account) => uidOf(account) === uid)) return
    const live = await this.#kube.list(accounts, '')
    if (!live.some((account) => uidOf(account) === uid)) this.#world.withdraw(this, uid)
  }

  #credit(credit: Credit): void {
    const entry = entryIn(credit)
    const booked = this.credits.entryOf(entry.id)
    const isSame = booked?.account === entry.account && booked.micros === entry.micros
    if (booked && isSame && this.#world.isPublished(entry.account, this.credits.sumOf(entry.account))) this.#world.booked(booked)
    if (booked === undefined && this.books.get(entry.account)) this.credits.book(entry, entry.micros < 0 ? 'urgent' : 'change')
  }

  async #around<R>(call: PortCall, run: () => Promise<R>): Promise<R> {
    if (!WRITES.has(call.verb)) return await this.#alive(run)
    if (this.isOver) return await this.#lost()
    const number = this.#written++
    const isLast = number === this.#death?.write
    if (this.holdsWrite?.test(call.name)) {
      this.holdsWrite = undefined
      await new Promise<void>((resolve) => this.#late.push(resolve))
    } else if (isLast && this.#death?.when === 'before') {
      this.end()
      return await this.#lost()
    }
    const answer = await run() // a write that is under way arrives even if its author has died
    if (isLast) this.end()
    return await this.#alive(() => Promise.resolve(answer))
  }

  async #alive<R>(run: () => Promise<R>): Promise<R> {
    return this.isOver ? await this.#lost() : await run()
  }

  #lost(): Promise<never> {
    return Promise.reject(new KubeError('Unreachable', 0, 'the operator is over'))
  }
}

export function entryIn({ metadata, spec }: Credit): CreditEntry {
  const micros = parseSignedAmount(spec.amount)
  if (micros === undefined) throw new Error(`no amount: ${spec.amount}`)
  return { id: metadata.name, account: spec.accountRef.name, micros, type: spec.type, time: '', reference: '' }
}
