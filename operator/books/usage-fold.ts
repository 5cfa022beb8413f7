/** Takes over the usage of each closed day from Redis, before Redis drops the day. Walks over every key once an hour, some per turn. */
import type { UsageCounters } from '#contract/ledger/ledger-call.ts'
import type { OperatorLedgerStore } from './ledger-store.ts'
import type { UsageArchive } from './usage-archive.ts'
import { closedDay, foldDay } from './usage-days.ts'
import type { UsageDay } from './usage-entry.ts'

/** Subjects per turn of a second: three round trips, and less than 2 ms of CPU in Redis. */
const PER_TURN = 500
/** Time between the starts of two walks, ms. A closed day stays in Redis for 24 hours. */
const EVERY_MS = 3_600_000

/** Dependencies of the fold. */
export interface UsageFoldDeps {
  readonly store: Pick<OperatorLedgerStore, 'timeMs' | 'usage'>
  readonly archive: UsageArchive
  /** Whether an ApiKey with this uid exists or may exist. */
  readonly isKnown: (uid: string) => boolean
  /** Called with the number of days of keys that were taken over. */
  readonly onFolded: (days: number) => void
  /** Called with the number of days of keys that were dropped early. */
  readonly onDropped: (days: number) => void
}

/** The fold of an operator. Times are monotonic ms. */
export class UsageFold {
  readonly #deps: UsageFoldDeps
  /** The uids of all ApiKeys: an ApiKey without budgets has usage too. */
  readonly #subjects = new Set<string>()
  #left: string[] = []
  #nextMs = Number.NEGATIVE_INFINITY

  constructor(deps: UsageFoldDeps) {
    this.#deps = deps
  }

  /** Adds a key that exists or existed. */
  changed(uid: string): void {
    this.#subjects.add(uid)
  }

  /** Drops the usage of a deleted key. */
  deleted(uid: string): void {
    this.#subjects.delete(uid)
    this.#deps.archive.remove(uid)
  }

  /** Runs one turn. @throws errors of the store; the next turn then takes the same subjects */
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

  /** Folds one day, unless the key was deleted during the read of Redis. */
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
