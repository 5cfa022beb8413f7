/**
 * Keeps the durable books of spend and the counts of the gateways together, by merging in both directions: neither is ever right alone. One turn
 * per second. Only what is durable goes to the store, and a key of the store that lost its content grants nothing before every process that holds
 * something has reported again.
 */
import type { Cancel, Clock } from '#platform/clock.ts'
import { messageOf } from '#platform/message-of.ts'
import type { BalanceRead, BalanceStore } from '../books/balance-store.ts'
import { ProcessWatch } from '../books/process-watch.ts'
import { SubjectSchedule } from '../books/spend-reader.ts'
import type { LiveProcess } from '../projection/store.ts'
import { isMissingFunction } from '../redis-library.ts'
import type { AccountSpend, LedgerBalance } from '#contract/ledger/account-spend.ts'
import { closePeriods, lacksSpend, mergeSpend, NO_SPEND, totalSpent } from '../shards/account-book.ts'
import type { AccountBooks } from './account-books.ts'
import { believed, foldStep, hasLostSpend, isBooked, isNearlyFull, mostSpent, spendIn } from './balance-plan.ts'
import { BalanceRepairs } from './balance-repairs.ts'
import { DeadHolds, FoldTimes, UnreadyKeys } from './balance-times.ts'
import type { CreditBooks } from './credit-books.ts'

const TURN_MS = 1_000
/** Shortest pause between two turns, ms, for a machine on which a turn takes longer than `TURN_MS`. */
const MIN_PAUSE_MS = 100
/** Maximum number of accounts that are read and compared without a pause for other work. */
const READ_AT_ONCE = 200
/** At the end accounts are read that would be due within this time, ms. */
const STOP_AHEAD_MS = 5_000
/** Maximum number of accounts per turn whose period is raised: all of them may be due at once. */
const RAISES_PER_TURN = 500
/** Time between two reads of unreadable Secrets of Credits, ms: an administrator may have restored them. */
const CREDITS_EVERY_MS = 30_000
/** Shortest time between two reads of all accounts after a loss, ms. */
const ALL_EVERY_MS = 10_000
/** Age at which spend that is not durable counts as late, s. */
const LATE_SECONDS = 30

export interface BalanceKeeperDeps {
  readonly store: BalanceStore
  readonly books: AccountBooks
  readonly credits: CreditBooks
  readonly clock: Clock
  /** Gateway processes with a heartbeat. */
  readonly live: () => readonly LiveProcess[]
  /** Names of the gateway pods that clients can reach. */
  readonly serving: () => ReadonlySet<string>
  readonly assertLeading: () => void
  /** Log of failures and recoveries, at a limited rate. */
  readonly outage: { failed(line: string): void; works(): void }
  /** Whether gateways refuse an account without balance, so that it cannot spend more than its credits pay; absent: no count is doubted. */
  readonly isPrepaid?: ((name: string) => boolean) | undefined
  /** Sum of the Credits in the last record of an account; absent: every account waits while a Secret of Credits cannot be read. */
  readonly publishedCredits?: ((name: string) => bigint | undefined) | undefined
  /** Called when the key of an account had less than is durable: the store went back to an older state, or the count was forged. */
  readonly onRestored?: ((name: string) => void) | undefined
}

/** One read of one account. Times are monotonic ms. */
interface Taken {
  readonly name: string
  /** Its name in the store. */
  readonly ledger: string
  readonly nowMs: number
}

export class BalanceKeeper {
  readonly #deps: BalanceKeeperDeps
  readonly #schedule = new SubjectSchedule()
  readonly #processes = new ProcessWatch()
  readonly #unready = new UnreadyKeys()
  readonly #folds = new FoldTimes()
  readonly #deadHolds = new DeadHolds()
  /** Accounts whose key granted at its last read. */
  readonly #ready = new Set<string>()
  /** Owners of books that were lost with a damaged Secret, by name of the account. */
  readonly #lost = new Map<string, string>()
  readonly #heldBack = new Map<string, bigint>()
  /** Accounts that lack no Credit although a Secret cannot be read. */
  readonly #intact = new Set<string>()
  /** What listeners were told last, by name. */
  readonly #told = new Map<string, string>()
  readonly #listeners: Array<(name: string) => void> = []
  #isIncomplete = false
  #creditsAtMs = Number.NEGATIVE_INFINITY
  #allAtMs = Number.NEGATIVE_INFINITY
  #cancel: Cancel = () => undefined
  #turn: Promise<void> = Promise.resolve()
  #isRunning = false
  #isStopped = false

  constructor(deps: BalanceKeeperDeps) {
    this.#deps = deps
    deps.books.onChanged((name) => {
      this.#schedule.add(name, deps.clock.monotonic())
      this.#tell(name)
    })
    deps.credits.onChanged((name) => this.#tell(name))
  }

  /** Tells of every account once: what a former leader has booked last, it may not have shown. */
  start(): void {
    this.#isRunning = true
    for (const name of this.#schedule.uids()) this.#tell(name)
    this.#scheduleTurn(0)
  }

  /** Reads the accounts that spend once more. Never rejects. The caller then makes the books durable. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancel()
    await this.#turn
    if (this.#isRunning) await this.#guarded(() => this.#readAll(this.#schedule.due(this.#deps.clock.monotonic() + STOP_AHEAD_MS)))
  }

  /** Merges into the store what it lacks, before the record of an account reaches the gateways. Never rejects. @param names also those in the ledger */
  async seedBefore(names: readonly string[]): Promise<void> {
    const { books } = this.#deps
    const known = names.map((name) => (books.newest(name) ? name : books.nameIn(name))).filter((name) => name !== undefined)
    await this.#guarded(() => this.#readAll(known))
  }

  /** Called when this process begins books: no process can hold anything, so their key grants at once. */
  opened(name: string): void {
    this.#unready.opened(name)
  }

  /** Called when an account has spent for certain: it is read in one of the next turns. */
  used(name: string): void {
    this.#schedule.name(name, this.#deps.clock.monotonic())
  }

  /**
   * Begins the books of an account again that were lost with a damaged Secret, as soon as the store has its whole spend.
   * @param owner uid of the Account
   */
  recover(name: string, owner: string): void {
    this.#lost.set(name, owner)
  }

  /** What the account may still spend, micro-units; below 0 if it has spent more than its credits. */
  balanceOf(name: string): bigint {
    return this.#deps.credits.sumOf(name) - this.spentOf(name)
  }

  /** What it has spent since ever, micro-units. */
  spentOf(name: string): bigint {
    const book = this.#deps.books.newest(name)
    return book ? totalSpent(book) : 0n
  }

  /** Spend in the store that is not believed, since the credits of the account could not pay it, micro-units. */
  heldBackOf(name: string): bigint {
    return this.#heldBack.get(name) ?? 0n
  }

  /** Whether spend or Credits of the account may be lost: gateways must not admit until the store or an administrator has supplied them. */
  isBroken(name: string): boolean {
    const { books } = this.#deps
    return books.newest(name) === undefined ? books.isDamaged(name) : this.#lacksCredits(name)
  }

  /** Calls a listener with each name whose balance, spend or state has changed; it must only remember and enqueue. */
  onChanged(listener: (name: string) => void): void {
    this.#listeners.push(listener)
  }

  #scheduleTurn(delayMs = TURN_MS): void {
    if (this.#isStopped) return
    const { clock } = this.#deps
    this.#cancel = clock.after(delayMs, () => {
      const startedMs = clock.monotonic()
      const rest = (): number => Math.max(MIN_PAUSE_MS, startedMs + TURN_MS - clock.monotonic())
      this.#turn = this.#guarded(() => this.#runTurn()).then(() => this.#scheduleTurn(rest()))
    })
  }

  /** Runs a part of the work of a leader. After an error every wait for reports begins again: gateways may not have reached the store either. */
  async #guarded(work: () => Promise<void>): Promise<void> {
    const { assertLeading, outage } = this.#deps
    try {
      assertLeading()
      await work()
    } catch (error) {
      this.#unready.restart()
      if (!isMissingFunction(error)) outage.failed(`balances of accounts cannot be kept: ${messageOf(error)}`) // else a new Redis
    }
  }

  async #runTurn(): Promise<void> {
    const { clock, live, serving, books, outage } = this.#deps
    this.#processes.observe(live(), serving(), clock.monotonic())
    this.#checkCredits(clock.monotonic())
    await this.#recoverLost()
    await this.#readAll(this.#schedule.due(clock.monotonic()))
    if (books.ageSeconds < LATE_SECONDS) return outage.works()
    const what = `spend of accounts has not become durable for more than ${LATE_SECONDS} s`
    outage.failed(`${what}; the Secrets hg-balances-* cannot be written: check the API server and the rights of the operator there`)
  }

  async #readAll(names: readonly string[]): Promise<void> {
    for (let at = 0; at < names.length; at += READ_AT_ONCE) await this.#read(names.slice(at, at + READ_AT_ONCE))
  }

  async #read(names: readonly string[]): Promise<void> {
    const { store, books, clock, assertLeading } = this.#deps
    const ledgers = names.map((name) => books.ledgerName(name))
    const reads = await store.readBalances(ledgers)
    const nowMs = clock.monotonic()
    this.#schedule.wasRead(names, nowMs)
    const repairs = new BalanceRepairs()
    for (const [at, name] of names.entries()) this.#take({ name, ledger: ledgers[at] ?? '', nowMs }, reads[at] ?? 'absent', repairs)
    assertLeading()
    await repairs.apply(store)
  }

  #take(taken: Taken, read: BalanceRead, repairs: BalanceRepairs): void {
    const { books } = this.#deps
    const { name } = taken
    const book = books.newest(name)
    if (book === undefined || books.isUnreadable(name)) return
    if (typeof read !== 'object' || !isBooked(read, book)) return this.#merge(taken, { book, read }, repairs)
    this.#setHeldBack(name, 0n)
    this.#keep(taken, read, repairs)
  }

  /** Handles a read that differs from the books. */
  #merge(taken: Taken, { book, read }: { readonly book: AccountSpend; readonly read: BalanceRead }, repairs: BalanceRepairs): void {
    const { books } = this.#deps
    const { name, ledger, nowMs } = taken
    const spend = spendOf(read)
    const belief = spend && believed(book, spend, this.#limitOf(name))
    if (spend === undefined || belief === undefined) {
      this.#setUnready(taken, undefined)
      return repairs.drop(ledger)
    }
    this.#setHeldBack(name, belief.heldBack)
    if (books.addSpend(name, belief.spend)) this.#schedule.name(name, nowMs)
    if (typeof read === 'object' && read.openFrom !== undefined) {
      this.#mergeDurable(taken, spend, repairs)
      return this.#keep(taken, read, repairs)
    }
    this.#setUnready(taken, read === 'absent' ? undefined : totalSpent(spend))
    this.#begin(taken, spend, repairs)
  }

  /** Lets a key grant once every process that holds something has reported, and the store has all spend. */
  #begin({ name, ledger, nowMs }: Taken, spend: AccountSpend, repairs: BalanceRepairs): void {
    const { books } = this.#deps
    const [durable, newest] = [books.durable(name), books.newest(name)]
    if (durable === undefined || newest === undefined || !this.#unready.isOver(name, nowMs)) return
    if (lacksSpend(mergeSpend(spend, durable), newest)) return // until all is durable: the store would grant what is spent
    this.#unready.begun(name)
    repairs.merge({ name: ledger, books: durable, isReady: true })
  }

  /** @param reported spend in the key; undefined without a key */
  #setUnready({ name, nowMs }: Taken, reported: bigint | undefined): void {
    this.#unready.seen(name, reported, nowMs)
    this.#schedule.name(name, nowMs, TURN_MS)
    if (!this.#ready.delete(name) || nowMs < this.#allAtMs) return
    this.#allAtMs = nowMs + ALL_EVERY_MS // the store may have lost other accounts too
    for (const other of this.#schedule.uids()) this.#schedule.name(other, nowMs, TURN_MS)
  }

  #mergeDurable({ name, ledger, nowMs }: Taken, spend: AccountSpend, repairs: BalanceRepairs): void {
    const durable = this.#deps.books.durable(name)
    if (durable === undefined || !lacksSpend(spend, durable)) return
    if (hasLostSpend(spend, durable)) this.#deps.onRestored?.(name)
    repairs.merge({ name: ledger, books: durable, isReady: false })
    this.#schedule.name(name, nowMs, TURN_MS)
  }

  /** Handles a key that grants. */
  #keep(taken: Taken, read: LedgerBalance, repairs: BalanceRepairs): void {
    const { name, ledger, nowMs } = taken
    this.#unready.begun(name)
    this.#ready.add(name)
    for (const process of read.holders.keys()) this.#processes.met(process, nowMs)
    const dead = [...read.holders].filter(([process, held]) => held > 0 && this.#processes.isDead(process, nowMs))
    for (const [process, held] of this.#deadHolds.lasting(name, dead, nowMs)) repairs.free({ name: ledger, process, held })
    if (read.holders.size > 0) this.#schedule.name(name, nowMs)
    this.#fold(taken, read, repairs)
  }

  /** Closes old periods, so that the sum of the open ones and the number of their processes stay small. */
  #fold({ name, ledger, nowMs }: Taken, read: LedgerBalance, repairs: BalanceRepairs): void {
    const { books } = this.#deps
    const book = books.newest(name)
    this.#folds.seen(name, read, nowMs)
    if (book === undefined || this.#heldBack.has(name)) return // a sum would lose what is held back
    const step = foldStep(book, read, repairs.raised < RAISES_PER_TURN && this.#folds.isDue(name, nowMs, isNearlyFull(book)))
    if (step === undefined) return
    if (step.do === 'raise') repairs.raise({ name: ledger, period: step.period })
    else books.addSpend(name, closePeriods(book, step.period))
    this.#schedule.name(name, nowMs, TURN_MS)
  }

  /** Begins lost books with the spend of the store, if the store has lost nothing itself. */
  async #recoverLost(): Promise<void> {
    const { books, store } = this.#deps
    for (const name of [...this.#lost.keys()]) if (books.newest(name)) this.#lost.delete(name)
    const lost = [...this.#lost]
    for (let at = 0; at < lost.length; at += READ_AT_ONCE) {
      const some = lost.slice(at, at + READ_AT_ONCE)
      const reads = await store.readBalances(some.map(([name]) => books.ledgerName(name)))
      for (const [index, [name, owner]] of some.entries()) {
        const read = reads[index]
        const spend = typeof read === 'object' && read.openFrom !== undefined ? spendIn(read) : undefined
        if (spend) books.commit({ name, owner, changes: 0, ...spend }, 'change')
      }
    }
  }

  #checkCredits(nowMs: number): void {
    const { credits } = this.#deps
    const { isIncomplete } = credits
    if (isIncomplete && nowMs >= this.#creditsAtMs) {
      this.#creditsAtMs = nowMs + CREDITS_EVERY_MS
      credits.check()
    }
    if (isIncomplete === this.#isIncomplete) return
    this.#isIncomplete = isIncomplete
    for (const name of this.#schedule.uids()) this.#tell(name)
  }

  #lacksCredits(name: string): boolean {
    const { credits, publishedCredits } = this.#deps
    if (!credits.isIncomplete) this.#intact.clear()
    if (!credits.isIncomplete || this.#intact.has(name)) return false
    if (publishedCredits === undefined || (publishedCredits(name) ?? 0n) !== credits.sumOf(name)) return true
    this.#intact.add(name) // later Credits change its sum
    return false
  }

  /** @returns undefined while the spend of the account has no limit, or its Credits are not known */
  #limitOf(name: string): bigint | undefined {
    const { credits, isPrepaid } = this.#deps
    return isPrepaid?.(name) === true && !credits.isIncomplete ? mostSpent(credits.grossOf(name)) : undefined
  }

  #setHeldBack(name: string, heldBack: bigint): void {
    if (heldBack === this.heldBackOf(name)) return
    if (heldBack > 0n) this.#heldBack.set(name, heldBack)
    else this.#heldBack.delete(name)
    this.#tell(name)
  }

  #tell(name: string): void {
    if (!this.#isRunning) return
    const told = [this.balanceOf(name), this.spentOf(name), this.heldBackOf(name), this.isBroken(name)].join(' ')
    if (this.#told.get(name) === told) return
    this.#told.set(name, told)
    for (const listener of this.#listeners) listener(name)
  }
}

/** @returns undefined for a damaged key */
function spendOf(read: BalanceRead): AccountSpend | undefined {
  if (read === 'absent') return NO_SPEND
  return read === 'damaged' ? undefined : spendIn(read)
}
