/** The subjects of one process and their periodic work. */
import type { Cancel, Clock } from '#platform/clock.ts'
import type { LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import { Breaker, type BreakerState } from './breaker.ts'
import type { LedgerSnapshot, LedgerStore, LimitSubject } from './ledger.ts'
import type { Calendar } from './budget-book.ts'
import { SubjectBooks } from './subject-books.ts'
import { StoreTime } from './store-time.ts'
import { type CallDeps, type CallEnd, SubjectCalls } from './subject-calls.ts'
import type { Urgency } from './subject-demand.ts'

/** What the ledger of a process needs. */
export interface LedgerDeps {
  readonly store: LedgerStore
  readonly clock: Clock
  /** Random per start of the process. */
  readonly process: string
  /** Number of live processes that share the limits, at least 1. */
  readonly live: () => number
  readonly calendar: Calendar
  /** Longest wait of a request for one answer of the store, ms. */
  readonly waitMs: number
  readonly timing: LedgerTiming
  /** Called for an answer to a call that did not count: an error reply, or an unreadable one. The message holds no value of a key. */
  readonly onRefused: (error: Error) => void
  readonly onEnd: (how: CallEnd) => void
}

/** A subject of this process, and when to visit it. Times are monotonic ms. */
export interface Entry {
  readonly books: SubjectBooks
  readonly calls: SubjectCalls
  usedAt: number
  /** Time before which a visit would find nothing to do, except a due report. */
  visitAt: number
  /** Time at which the store is told of pending changes; undefined and SOON: at the next visit. */
  reportAt: number | undefined
  /** Whether its record was deleted: the subject is forgotten as soon as the store has its reports, or has forgotten the subject. */
  isDeleted: boolean
  /** The last snapshot, and the subject whose limits it shows. */
  snapshot: { readonly subject: LimitSubject; readonly askedAt: number; readonly snapshot: Promise<LedgerSnapshot> } | undefined
}

const TICK_MS = 250
/** Changes that no request waits for leave with the next call of their subject, or after this time, ms. */
const LATER_MS = 3_000
const SOON = 0
/** The operator forgets a silent process after two hours. Half of them, because each side measures by a clock of its own. */
const AWAY_MS = 3_600_000
const IDLE_MS = 60_000
/** Polling interval of `close`, when every subject reports at once. */
const CLOSE_POLL_MS = 5
/** A store that loses data is one event, however many subjects notice, ms. */
const LOST_EVERY_MS = 5_000
/** Number of subjects that report everything in the time of one tick, after the store has lost data. */
const REPEATS_PER_TICK = 500
/** Changed subjects whose units go back at once, per tick. A reload of the projection may change thousands. */
const CHANGES_PER_TICK = 200
/** Number of steps of a tick over thousands of subjects; in one step it would delay every request of that moment. */
const STEPS_PER_TICK = 40
const STEP_MS = 5
const MIN_PER_STEP = 50
/** Reports of one step that no request waits for: at least this many, and as many as send all within `LATER_MS`. */
const MIN_REPORTS_PER_STEP = 20
/** A subject with slow demand is visited once in this time while no request comes, ms. */
const SKIP_MS = 1_000
/** Number of ticks within which every subject is checked for recent use. */
const SWEEP_TICKS = 240

export class SubjectRegistry {
  readonly #deps: LedgerDeps
  readonly #callDeps: CallDeps
  /** Unused subjects stay while their spend in open windows and open periods must stay known: a count that restarts would return spend. */
  readonly #entries = new Map<string, Entry>()
  /** Subjects with leases, permits, or changes to report. A tick visits only these. */
  readonly #active = new Set<Entry>()
  /** The remaining subjects of the present tick. */
  #walk: Iterator<Entry, undefined> = [].values()
  #perStep = MIN_PER_STEP
  #changesLeft = CHANGES_PER_TICK
  #sweep = this.#entries.values()
  #lostAt = -Infinity
  #number = 0
  #calls = 0
  readonly #ends = { answered: 0, refused: 0, failed: 0 }
  readonly #breaker: Breaker
  /** When the store last answered this process. */
  #heardAt: number
  /** Cancels the next tick, or the next step of the running one. */
  #cancelTick: Cancel | undefined

  constructor(deps: LedgerDeps) {
    const { store, clock, waitMs: timeoutMs, onEnd } = deps
    this.#deps = deps
    this.#breaker = new Breaker({ clock, ping: () => store.ping(), timeoutMs })
    this.#heardAt = clock.monotonic()
    this.#callDeps = {
      ...deps,
      breaker: this.#breaker,
      time: new StoreTime(clock.now() - clock.monotonic()),
      nextNumber: () => (this.#number += 1),
      onSend: () => this.#endSilence(clock.monotonic()),
      onCall: (uid) => this.#called(uid),
      onEnd: (how) => {
        this.#ends[how] += 1
        if (how === 'answered') this.heard(clock.monotonic())
        onEnd(how)
      },
      onLost: () => this.#lost(),
    }
  }

  /** Numbers of subjects, of calls, and of calls by how they ended. */
  get stats(): { readonly subjects: number; readonly calls: number; readonly ends: Readonly<Record<CallEnd, number>> } {
    return { subjects: this.#entries.size, calls: this.#calls, ends: this.#ends }
  }

  get breaker(): BreakerState {
    return this.#breaker.state
  }

  /** @returns undefined for an unknown subject */
  find(uid: string): Entry | undefined {
    return this.#entries.get(uid)
  }

  /** The books of a subject for the next use, with its newest limits. @param now monotonic ms */
  use(subject: LimitSubject, now: number): Entry {
    const entry = this.#entries.get(subject.uid) ?? this.#add(subject, now)
    entry.usedAt = now
    entry.visitAt = now
    entry.isDeleted = false
    entry.books.update(subject)
    if (!this.#active.has(entry)) this.#wake(entry, now)
    return entry
  }

  ended(entry: Entry, urgency: Urgency, now: number): void {
    entry.usedAt = now
    noteChange(entry, urgency, now)
    this.#activate(entry)
    if (urgency === 'now') entry.calls.flush()
  }

  /**
   * Ends the leases of a subject whose record refuses every request or has other limits. Unused units are returned at once, or with the next
   * ticks if hundreds of subjects change together. Running requests keep theirs. @param now monotonic ms
   */
  changed(uid: string, now: number): void {
    const entry = this.#entries.get(uid)
    if (!entry) return
    entry.books.endLeases()
    entry.visitAt = now
    entry.reportAt = Math.min(now, entry.reportAt ?? now)
    this.#activate(entry)
    if (this.#changesLeft > 0) entry.calls.flush()
    this.#changesLeft -= 1
  }

  /** As `changed`; the subject stays in memory only until the store knows everything about it. */
  deleted(uid: string, now: number): void {
    const entry = this.#entries.get(uid)
    if (!entry) return
    if (isSettled(entry) && isClosed(entry)) return this.#drop(entry) // a call would make new keys in the store
    entry.isDeleted = true
    this.changed(uid, now)
  }

  /** Makes every subject report its spend, admissions and running requests, as many at once as cost neither side a noticeable time. */
  reportAgain(): void {
    this.#repeatReports([...this.#entries.values()])
  }

  /** Records that the store has answered this process. @param now monotonic ms */
  heard(now: number): void {
    this.#endSilence(now)
    this.#heardAt = now
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

  /** After a silence in which the operator may have forgotten this process, every subject says so in its next call. */
  #endSilence(now: number): void {
    if (now - this.#heardAt <= AWAY_MS) return
    this.#heardAt = now
    for (const { calls } of this.#entries.values()) calls.setAway()
  }

  /** The subjects that are in use report again, since other processes admit calls as if their last minute were empty. */
  #lost(): void {
    const now = this.#deps.clock.monotonic()
    if (now - this.#lostAt < LOST_EVERY_MS) return
    this.#lostAt = now
    this.#repeatReports([...this.#entries.values()].filter(({ usedAt }) => now - usedAt < IDLE_MS))
  }

  #repeatReports(entries: readonly Entry[]): void {
    const now = this.#deps.clock.monotonic()
    for (const [at, entry] of entries.entries()) {
      entry.calls.repeatReports()
      entry.reportAt = now + TICK_MS * Math.floor(at / REPEATS_PER_TICK)
      this.#activate(entry)
      if (at < REPEATS_PER_TICK) entry.calls.flush()
    }
  }

  #add(subject: LimitSubject, now: number): Entry {
    const books = new SubjectBooks(subject, this.#deps)
    const calls = new SubjectCalls(books, this.#callDeps)
    const entry = { books, calls, usedAt: now, visitAt: now, reportAt: undefined, isDeleted: false, snapshot: undefined }
    this.#entries.set(subject.uid, entry)
    return entry
  }

  /** Makes up for the ticks that a quiet subject has missed: its demand may be over. */
  #wake(entry: Entry, now: number): void {
    entry.books.tick({ now, storeNow: entry.calls.storeNow(now) })
    this.#activate(entry)
  }

  #activate(entry: Entry): void {
    if (this.#active.has(entry)) return
    this.#active.add(entry)
    this.#cancelTick ??= this.#deps.clock.after(TICK_MS, () => this.#tick())
  }

  /** Notes that a call carries all pending changes. Its end, whether grants or a failure, needs a visit. */
  #called(uid: string): void {
    this.#calls += 1
    const entry = this.#entries.get(uid)
    if (entry) Object.assign(entry, { reportAt: undefined, visitAt: SOON })
  }

  #tick(): void {
    this.#changesLeft = CHANGES_PER_TICK
    this.#walk = [...this.#active].values()
    this.#perStep = Math.max(MIN_PER_STEP, Math.ceil(this.#active.size / STEPS_PER_TICK))
    this.#step(this.#deps.clock.monotonic())
  }

  /** Runs a part of the tick that began at `beganAt`. */
  #step(beganAt: number): void {
    const { clock } = this.#deps
    const now = clock.monotonic()
    let reports = Math.max(MIN_REPORTS_PER_STEP, Math.ceil((this.#perStep * TICK_MS) / LATER_MS))
    for (let count = 0; count < this.#perStep; count += 1) {
      const entry = this.#walk.next().value
      if (entry === undefined) return this.#endTick(beganAt, now)
      const { reportAt = Infinity } = entry
      const isReportDue = reportAt <= now && (reportAt === SOON || reports-- > 0)
      if (isReportDue || now >= entry.visitAt) this.#visit(entry, isReportDue, now)
    }
    this.#cancelTick = clock.after(STEP_MS, () => this.#step(beganAt))
  }

  #endTick(beganAt: number, now: number): void {
    for (let count = Math.ceil(this.#entries.size / SWEEP_TICKS); count > 0; count -= 1) {
      const { value: entry, done } = this.#sweep.next()
      if (done) this.#sweep = this.#entries.values()
      else if (!this.#active.has(entry) && now - entry.usedAt >= IDLE_MS) this.#rest(entry, now)
    }
    const isNeeded = this.#entries.size > 0
    this.#cancelTick = isNeeded ? this.#deps.clock.after(Math.max(STEP_MS, beganAt + TICK_MS - now), () => this.#tick()) : undefined
  }

  /** Ends what is over in the books, and calls the store if that is due. Nothing else happens to a subject between requests. */
  #visit(entry: Entry, isReportDue: boolean, now: number): void {
    const { books, calls } = entry
    if (isOver(entry)) return this.#drop(entry)
    noteChange(entry, books.tick({ now, storeNow: calls.storeNow(now) }), now)
    const isPostponed = !isReportDue && Boolean(entry.reportAt)
    if (books.isAskDue(now, TICK_MS) || (calls.isReportDue && !isPostponed)) return calls.flush()
    if (!calls.isBusy) this.#postpone(entry, now)
  }

  #postpone(entry: Entry, now: number): void {
    const { books, calls } = entry
    if (!books.isQuiet) entry.visitAt = books.maySkipTicks ? now + SKIP_MS : now
    else if (calls.isReportDue) entry.visitAt = Infinity
    else this.#active.delete(entry)
  }

  /** Shrinks an unused subject, and drops the subject if no count of it has to stay known. */
  #rest(entry: Entry, now: number): void {
    const { books, calls } = entry
    books.tick({ now, storeNow: calls.storeNow(now) })
    entry.snapshot = undefined
    if (isOver(entry) || (isSettled(entry) && books.isUnused)) this.#drop(entry)
    else if (books.balance?.isAskDue(now)) calls.flush()
  }

  #drop(entry: Entry): void {
    this.#entries.delete(entry.books.subject.uid)
    this.#active.delete(entry)
  }

  #flushAll(): boolean {
    let isLeft = false
    for (const { calls } of this.#entries.values()) {
      if (calls.isReportDue) calls.flush()
      isLeft ||= calls.isReportDue || calls.isBusy
    }
    return isLeft
  }
}

function noteChange(entry: Entry, urgency: Urgency | undefined, now: number): void {
  if (urgency === 'later') entry.reportAt ??= now + LATER_MS
  else if (urgency !== undefined) entry.reportAt = SOON
}

/** Whether a deleted subject needs no further call: the store has its reports, or has forgotten it. */
function isOver(entry: Entry): boolean {
  return entry.isDeleted && isClosed(entry) && (entry.calls.isUnseeded || isSettled(entry))
}

/** Whether the store has closed every period in which this process has spent something of the balance. */
function isClosed({ books }: Entry): boolean {
  return books.balance?.isUnused ?? true
}

/** Whether nothing of a subject is open, and the store knows everything about it. */
function isSettled({ books, calls }: Entry): boolean {
  return books.isIdle && !calls.isBusy && !calls.isReportDue
}
