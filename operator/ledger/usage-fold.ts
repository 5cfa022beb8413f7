/** Takes the usage of each day that is over out of Redis, before Redis drops it. Walks over every key once an hour, some per turn. */
import type { UsageCounters } from '../../gateway/shared/ledger-call.ts'
import type { OperatorLedgerStore } from './ledger-store.ts'
import type { UsageArchive } from './usage-archive.ts'
import { closedDay, foldDay } from './usage-days.ts'
import type { UsageDay } from './usage-entry.ts'

/** Subjects per turn of a second: three round trips, and less than 2 ms of Redis. */
const PER_TURN = 500
/** Between the beginnings of two walks, ms. A day that is over stays in Redis for 24 hours. */
const EVERY_MS = 3_600_000

/** What a fold needs. */
export interface UsageFoldDeps {
  readonly store: Pick<OperatorLedgerStore, 'timeMs' | 'usage'>
  readonly archive: UsageArchive
  /** Whether there is an ApiKey of this uid, or may be. */
  readonly isKnown: (uid: string) => boolean
  /** Days of keys were taken over. */
  readonly onFolded: (days: number) => void
  /** Days of keys were dropped before their time. */
  readonly onDropped: (days: number) => void
}

/** One per operator; times are monotonic ms. */
export class UsageFold {
  readonly #deps: UsageFoldDeps
  /** Every ApiKey: one without budgets has usage too. */
  readonly #subjects = new Set<string>()
  #left: string[] = []
  #nextMs = Number.NEGATIVE_INFINITY

  constructor(deps: UsageFoldDeps) {
    this.#deps = deps
  }

  /** There is a key of this uid, or there was. */
  changed(uid: string): void {
    this.#subjects.add(uid)
  }

  /** A key is deleted for good, and what is kept of it goes. */
  deleted(uid: string): void {
    this.#subjects.delete(uid)
    this.#deps.archive.remove(uid)
  }

  /** One turn. @throws what the store throws: the same subjects have their turn again */
  async turn(nowMs: number): Promise<void> {
    if (this.#left.length === 0) this.#begin(nowMs)
    const uids = this.#left.slice(-PER_TURN)
    if (uids.length === 0) return
    const { store, archive, isKnown } = this.#deps
    const day = closedDay(await store.timeMs())
    const wanted = uids.filter((uid) => isKnown(uid) && !archive.isUnreadable(uid))
    await this.#fold(wanted, day)
    this.#left.length -= uids.length
  }

  #begin(nowMs: number): void {
    if (nowMs < this.#nextMs) return
    this.#nextMs = nowMs + EVERY_MS
    this.#left = [...this.#subjects]
  }

  async #fold(uids: readonly string[], day: UsageDay): Promise<void> {
    const { store, archive, onFolded } = this.#deps
    const open = uids.filter((uid) => (archive.get(uid)?.newest ?? -1) < day)
    const usage = await store.usage(open, day)
    const counters = new Map(open.map((uid, at) => [uid, usage[at] ?? []]))
    for (const uid of uids) this.#take(uid, day, counters.get(uid) ?? [])
    const folded = usage.filter(({ length }) => length > 0).length
    if (folded > 0) onFolded(folded)
  }

  /** The key may have been deleted while Redis was asked. */
  #take(uid: string, day: UsageDay, counters: readonly UsageCounters[]): void {
    const { archive, isKnown, onDropped } = this.#deps
    if (!isKnown(uid)) return
    const known = archive.get(uid)
    const { entry, dropped } = foldDay(known, { uid, day, counters })
    if (entry === undefined) archive.remove(uid)
    else if (entry !== known) archive.put(entry)
    if (dropped > 0) onDropped(dropped)
  }
}
