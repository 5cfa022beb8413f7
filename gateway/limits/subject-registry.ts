/** The subjects of one process and their periodic work. */
import type { Cancel, Clock } from '#platform/clock.ts'
import type { LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import { Breaker, type BreakerState } from './breaker.ts'
import type { LedgerSnapshot, LedgerStore, LimitSubject } from './ledger.ts'
import type { Calendar } from './budget-book.ts'
import { type BooksDeps, SubjectBooks, type Urgency } from './subject-books.ts'
import { Contact, StoreTime } from './store-time.ts'
import { type CallDeps, SubjectCalls } from './subject-calls.ts'

interface RegistryDeps {
  readonly store: LedgerStore
  readonly clock: Clock
  /** Random per start of the process. */
  readonly process: string
  readonly live: () => number
  readonly calendar: Calendar
  /** Longest wait of a request for one answer of the store. */
  readonly waitMs: number
  readonly timing: LedgerTiming
  readonly onRefused: (error: Error) => void
}

export interface Entry {
  readonly books: SubjectBooks
  readonly calls: SubjectCalls
  /** Monotonic ms. */
  usedAt: number
  /** Monotonic ms at which the store should learn of changes that can wait; undefined if there are none. */
  laterAt: number | undefined
  isOverdue: boolean
  /** Whether its record was deleted: the subject is forgotten as soon as the store has its reports, or has forgotten the subject. */
  isDeleted: boolean
  /** Monotonic ms before which ticks skip the subject, unless it is overdue. */
  skipUntil: number
  /** The last snapshot, with the subject whose limits it shows. */
  snapshot: { readonly subject: LimitSubject; readonly askedAt: number; readonly snapshot: Promise<LedgerSnapshot> } | undefined
}

const FLUSH_MS = 250
/** Changes that no request waits for leave with the next call of their subject, or after this time, ms. */
const LATER_MS = 3_000
const IDLE_MS = 60_000
/** Polling interval of `close`, when every subject reports at once. */
const CLOSE_POLL_MS = 5
/** A store that loses data is one event, however many subjects notice, ms. */
const LOST_EVERY_MS = 5_000
/** Number of subjects that report everything in one turn, after the store has lost data. */
const REPORTS_PER_TICK = 500
/** Changed subjects whose units go back at once, per tick. A reload of the projection may change thousands; the rest report in small parts. */
const CHANGES_PER_TICK = 200
/** Number of steps of a tick over thousands of subjects; in one step it would delay every request of that moment. */
const STEPS_PER_TICK = 40
const STEP_MS = 5
/** Ticks check a subject with slow demand once in this time while no request comes, in ms. */
const SKIP_MS = 1_000
const LEAST_PER_STEP = 50
/** Minimum number of due subjects that a tick reports; all of them are reported within `LATER_MS`. */
const LEAST_LATER_PER_TICK = 200
/** Number of ticks within which every subject is checked, even without expected work. */
const SWEEP_TICKS = 20

export class SubjectRegistry {
  readonly #deps: RegistryDeps
  readonly #booksDeps: BooksDeps
  readonly #callDeps: CallDeps
  readonly #entries = new Map<string, Entry>()
  /** Subjects with leases, permits, or changes to report soon. A tick reads only these. */
  readonly #active = new Set<Entry>()
  /** Subjects with changes that can wait, the oldest first. */
  readonly #later = new Set<Entry>()
  /** Unused subjects whose spend in open windows must stay known: a count that restarts would return spend. */
  readonly #resting = new Map<string, Entry>()
  #again: Entry[] = []
  /** The remaining subjects of the present tick. */
  #walk: Entry[] = []
  #perStep = LEAST_PER_STEP
  /** How many more subjects of `#later` to report in this tick, and in one step. */
  #laterLeft = 0
  #laterPerStep = 0
  #changesLeft = CHANGES_PER_TICK
  #sweep = this.#entries.entries()
  /** Monotonic ms. */
  #lostAt = -Infinity
  #number = 0
  #calls = 0
  readonly #breaker: Breaker
  readonly #contact: Contact
  /** Cancels the next tick, or the next step of the running one. */
  #cancelTick: Cancel | undefined

  constructor(deps: RegistryDeps) {
    const { store, clock, process, live, calendar, waitMs: timeoutMs, timing, onRefused } = deps
    this.#deps = deps
    this.#booksDeps = { timing, calendar, live }
    this.#breaker = new Breaker({ clock, ping: () => store.ping(), timeoutMs })
    this.#contact = new Contact(clock.monotonic(), () => {
      for (const entries of [this.#entries, this.#resting]) for (const { calls } of entries.values()) calls.setAway()
    })
    this.#callDeps = {
      contact: this.#contact,
      ...{ store, clock, process, live, onRefused, timeoutMs },
      breaker: this.#breaker,
      time: new StoreTime(clock.now() - clock.monotonic()),
      nextNumber: () => (this.#number += 1),
      onCall: (uid) => this.#called(uid),
      onLost: () => this.#lost(),
    }
  }

  get calls(): number {
    return this.#calls
  }

  get size(): number {
    return this.#entries.size
  }

  get breaker(): BreakerState {
    return this.#breaker.state
  }

  /** @returns undefined for an unknown or unused subject */
  find(uid: string): Entry | undefined {
    return this.#entries.get(uid)
  }

  /** The books of a subject for the next use, with its newest limits. @param now monotonic ms */
  use(subject: LimitSubject, now: number): Entry {
    const entry = this.#entries.get(subject.uid) ?? this.#resting.get(subject.uid) ?? this.#make(subject, now)
    entry.usedAt = now
    entry.skipUntil = now
    entry.isDeleted = false
    entry.books.update(subject)
    this.#activate(entry)
    return entry
  }

  ended(entry: Entry, urgency: Urgency, now: number): void {
    entry.usedAt = now
    if (urgency === 'later') return this.#postpone(entry, now)
    entry.isOverdue = true
    this.#activate(entry)
    if (urgency === 'now') entry.calls.flush()
  }

  /**
   * Ends the leases of a subject whose record refuses every request or has other limits. Unused units are returned at once, or within
   * `LATER_MS` if hundreds of subjects change together. Running requests keep theirs. @param now monotonic ms
   */
  changed(uid: string, now: number): void {
    const entry = this.#entries.get(uid)
    if (!entry) return
    entry.books.endLeases()
    this.#activate(entry)
    if (this.#changesLeft === 0) return this.#postpone(entry, now)
    this.#changesLeft -= 1
    entry.isOverdue = true
    entry.calls.flush()
  }

  /** As `changed`; the subject stays in memory only until the store knows everything about it. */
  deleted(uid: string, now: number): void {
    this.#resting.delete(uid) // the store knows everything about a resting subject
    const entry = this.#entries.get(uid)
    if (entry) entry.isDeleted = true
    this.changed(uid, now)
  }

  /** Makes every subject report its spend, admissions and running requests, as many at once as cost neither side a noticeable time. */
  reportAgain(): void {
    for (const entry of this.#resting.values()) this.#activate(entry)
    this.#again = [...this.#entries.values()]
    this.#reportSomeAgain()
  }

  /** Records that the store has answered this process. @param now monotonic ms */
  heard(now: number): void {
    this.#contact.heard(now)
  }

  /** Returns and reports everything, for at most `deadlineMs`. */
  async close(deadlineMs: number): Promise<void> {
    this.#cancelTick?.()
    const { clock } = this.#deps
    const deadline = clock.monotonic() + deadlineMs
    for (const { books } of this.#entries.values()) books.close()
    while (clock.monotonic() < deadline && this.#flushAll()) {
      await new Promise<void>((resolve) => clock.after(CLOSE_POLL_MS, resolve))
    }
    this.#breaker.close()
  }

  /** The subjects that are in use report again, since other processes admit calls as if their last minute were empty. */
  #lost(): void {
    const now = this.#deps.clock.monotonic()
    if (now - this.#lostAt < LOST_EVERY_MS) return
    this.#lostAt = now
    this.#again = [...this.#entries.values()]
    this.#reportSomeAgain()
  }

  #reportSomeAgain(): void {
    for (const entry of this.#again.splice(0, REPORTS_PER_TICK)) {
      entry.books.forgetReports()
      this.#activate(entry)
      entry.calls.flush()
    }
  }

  #make(subject: LimitSubject, now: number): Entry {
    const books = new SubjectBooks(subject, this.#booksDeps)
    return {
      books,
      calls: new SubjectCalls(books, this.#callDeps),
      usedAt: now,
      laterAt: undefined,
      isOverdue: false,
      isDeleted: false,
      skipUntil: -Infinity,
      snapshot: undefined,
    }
  }

  #activate(entry: Entry): void {
    if (this.#active.has(entry)) return
    const { uid } = entry.books.subject
    this.#active.add(entry)
    this.#entries.set(uid, entry)
    this.#resting.delete(uid)
    this.#cancelTick ??= this.#deps.clock.after(FLUSH_MS, () => this.#tick())
  }

  #postpone(entry: Entry, now: number): void {
    if (entry.laterAt !== undefined) return
    entry.laterAt = now + LATER_MS
    this.#later.add(entry)
  }

  /** Notes that a call carries all pending changes. */
  #called(uid: string): void {
    this.#calls += 1
    const entry = this.#entries.get(uid)
    if (!entry) return
    entry.isOverdue = false
    entry.laterAt = undefined
    this.#later.delete(entry)
  }

  #tick(): void {
    const now = this.#deps.clock.monotonic()
    this.#laterLeft = Math.max(LEAST_LATER_PER_TICK, Math.ceil((this.#later.size * FLUSH_MS) / LATER_MS))
    this.#laterPerStep = Math.ceil(this.#laterLeft / STEPS_PER_TICK)
    this.#changesLeft = CHANGES_PER_TICK
    this.#reportSomeAgain()
    this.#walk = [...this.#active].reverse() // `#step` takes from the end
    this.#perStep = Math.max(LEAST_PER_STEP, Math.ceil(this.#walk.length / STEPS_PER_TICK))
    this.#step(now)
  }

  /** Runs a part of the tick that began at `beganAt`. */
  #step(beganAt: number): void {
    const { clock } = this.#deps
    const now = clock.monotonic()
    const isLaterDone = this.#callLater(now)
    for (let count = 0; count < this.#perStep; count += 1) {
      const entry = this.#walk.pop()
      if (entry === undefined) break
      if (this.#active.has(entry) && (entry.isOverdue || now >= entry.skipUntil)) this.#tickEntry(entry, now)
    }
    if (this.#walk.length > 0 || !isLaterDone) return void (this.#cancelTick = clock.after(STEP_MS, () => this.#step(beganAt)))
    this.#sweepSome(now)
    const isNeeded = this.#entries.size > 0
    this.#cancelTick = isNeeded ? clock.after(Math.max(STEP_MS, beganAt + FLUSH_MS - now), () => this.#tick()) : undefined
  }

  /** Reports one step's share of the due subjects in `#later`. @returns false if some are left for this tick */
  #callLater(now: number): boolean {
    let count = 0
    for (const entry of this.#later) {
      if ((entry.laterAt ?? now) > now || this.#laterLeft === 0) return true
      if (count === this.#laterPerStep) return false
      count += 1
      this.#laterLeft -= 1
      this.#later.delete(entry)
      entry.laterAt = undefined
      this.#activate(entry)
      if (entry.books.isReportDue) entry.calls.flush()
    }
    return true
  }

  #tickEntry(entry: Entry, now: number): void {
    const { books, calls } = entry
    if (entry.isDeleted && calls.isUnseeded) return this.#drop(entry)
    const urgency = books.tick({ now, storeNow: calls.storeNow(now) })
    if (urgency === 'soon') entry.isOverdue = true
    if (urgency === 'later') this.#postpone(entry, now)
    this.#callOrRest(entry, now)
  }

  #callOrRest(entry: Entry, now: number): void {
    const { books, calls } = entry
    if (books.isAskDue(now, FLUSH_MS)) return calls.flush()
    const isPostponed = entry.laterAt !== undefined && !entry.isOverdue
    if (books.isReportDue && !isPostponed) return calls.flush()
    if (calls.isBusy) return
    if (books.isQuiet) this.#active.delete(entry)
    else if (books.maySkipTicks) entry.skipUntil = now + SKIP_MS
  }

  /** Shrinks subjects in occasional use, and drops those without recent use. */
  #sweepSome(now: number): void {
    for (let count = Math.ceil(this.#entries.size / SWEEP_TICKS); count > 0; count -= 1) {
      const { value, done = false } = this.#sweep.next()
      if (value) this.#forget(value[0], value[1], now)
      if (done) this.#sweep = this.#entries.entries()
    }
  }

  #forget(uid: string, entry: Entry, now: number): void {
    const { books, calls, usedAt } = entry
    if (this.#active.has(entry)) return
    books.tick({ now, storeNow: calls.storeNow(now) })
    const isUsed = now - usedAt < IDLE_MS && !entry.isDeleted
    if (isUsed || !books.isIdle || calls.isBusy) return
    this.#drop(entry)
    if (!books.isUnused && !entry.isDeleted) this.#resting.set(uid, entry)
  }

  #drop(entry: Entry): void {
    this.#entries.delete(entry.books.subject.uid)
    this.#active.delete(entry)
    this.#later.delete(entry)
  }

  #flushAll(): boolean {
    let isLeft = false
    for (const { books, calls } of this.#entries.values()) {
      if (books.isReportDue) calls.flush()
      isLeft ||= books.isReportDue || calls.isBusy
    }
    return isLeft
  }
}
