/** Adds each closed day of usage to a subject once, and drops old days. Pure. */
import type { UsageCounters } from '#contract/ledger/ledger-call.ts'
import { DAY_MS } from '#contract/ledger/ledger-layout.ts'
import { encodeUsage } from '#contract/usage/ledger-usage.ts'
import { type UsageDay, type UsageDays, usageDaysOf, type UsageEntry, usageEntryOf } from './usage-entry.ts'

/** Number of kept days: a month, and some days for an export. */
export const KEPT_DAYS = 35
/** Most characters of one subject: room for 32 models on each day. The bound also holds for a forged ledger. */
export const MAX_SUBJECT_CHARACTERS = 40_000
/** Time from the end of a day to its read, ms: the clock of Redis may be set back by some seconds. */
const CLOSED_AFTER_MS = 600_000

/** The usage of one subject on one closed day, from Redis. */
export interface ClosedDay {
  readonly uid: string
  readonly day: UsageDay
  /** Empty if there was no usage. */
  readonly counters: readonly UsageCounters[]
}

/** The result of `foldDay`. */
export interface FoldedDay {
  /** `known` itself if nothing has changed; undefined if no day is kept. */
  readonly entry: UsageEntry | undefined
  /** Number of days that were dropped early. */
  readonly dropped: number
}

/** @param nowMs time of the store @returns the last day that can no longer change */
export function closedDay(nowMs: number): UsageDay {
  return Math.floor((nowMs - CLOSED_AFTER_MS) / DAY_MS) - 1
}

/** Adds a day unless it was added before, and drops old days. */
export function foldDay(known: UsageEntry | undefined, closed: ClosedDay): FoldedDay {
  const { uid, day, counters } = closed
  const newest = known?.newest ?? -1
  const isNew = counters.length > 0 && day > newest
  if (!isNew && !isOver(known, day)) return { entry: known, dropped: 0 }
  const days = recentDays(known, day)
  if (isNew) days.set(day, counters)
  return days.size === 0 ? { entry: undefined, dropped: 0 } : withinBounds(uid, isNew ? day : newest, days)
}

function recentDays(known: UsageEntry | undefined, day: UsageDay): Map<UsageDay, readonly UsageCounters[]> {
  const days = known ? [...usageDaysOf(known)] : []
  return new Map(days.filter(([at]) => at > day - KEPT_DAYS))
}

/** Drops the oldest days of several subjects that do not fit together, from all subjects alike. */
export function withoutOldestDays(entries: readonly UsageEntry[], excess: number): { changed: readonly UsageEntry[]; dropped: number } {
  const days = entries.map(usageDaysOf)
  const last = lastDayToDrop(days, excess)
  const changed: UsageEntry[] = []
  let dropped = 0
  for (const [at, { uid, newest, oldest = Infinity }] of entries.entries()) {
    if (oldest > last) continue
    const all = [...(days[at] ?? [])]
    const kept = all.filter(([day]) => day > last)
    changed.push(usageEntryOf(uid, newest, new Map(kept)))
    dropped += all.length - kept.length
  }
  return { changed, dropped }
}

/** Whether an entry has an old day. An entry without days is kept until its last day is no longer read. */
function isOver(known: UsageEntry | undefined, day: UsageDay): boolean {
  if (known === undefined) return false
  return known.oldest === undefined ? known.newest < day : known.oldest <= day - KEPT_DAYS
}

function withinBounds(uid: string, newest: UsageDay, days: Map<UsageDay, readonly UsageCounters[]>): FoldedDay {
  let entry = usageEntryOf(uid, newest, days)
  let dropped = 0
  while (entry.text.length > MAX_SUBJECT_CHARACTERS && entry.oldest !== undefined) {
    days.delete(entry.oldest)
    dropped += 1
    entry = usageEntryOf(uid, newest, days)
  }
  return { entry, dropped }
}

/** @returns the last day to drop, so that at least `excess` characters are dropped */
function lastDayToDrop(all: readonly UsageDays[], excess: number): UsageDay {
  const sizes = new Map<UsageDay, number>()
  for (const days of all) {
    for (const [day, counters] of days) sizes.set(day, (sizes.get(day) ?? 0) + charactersOf(counters))
  }
  let left = excess
  for (const [day, characters] of [...sizes].toSorted(([a], [b]) => a - b)) {
    left -= characters
    if (left <= 0) return day
  }
  return Infinity
}

/** Characters of a day, fewer than in its text, so that at least the excess is dropped. */
function charactersOf(counters: readonly UsageCounters[]): number {
  return counters.reduce((sum, one) => sum + encodeUsage(one).length, 0)
}
