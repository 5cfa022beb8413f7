/** Which closed days are kept of the usage of a subject, and how a day is added once. Pure. */
import type { UsageCounters } from '../../gateway/shared/ledger-call.ts'
import { DAY_MS } from '../../gateway/shared/ledger-layout.ts'
import { encodeUsage } from '../../gateway/shared/ledger-usage.ts'
import { type UsageDay, type UsageDays, usageDaysOf, type UsageEntry, usageEntryOf } from './usage-entry.ts'

/** Days that are kept: a month, and some days in which somebody may read it. */
export const KEPT_DAYS = 35
/** Most of one subject: 32 models on each of the days. What a forged ledger says cannot be larger either. */
export const MAX_SUBJECT_CHARACTERS = 40_000
/** A day is read so long after its end, ms: the clock of Redis may be set back by some seconds. */
const CLOSED_AFTER_MS = 600_000

/** What Redis holds of one subject and one day that is over. */
export interface ClosedDay {
  readonly uid: string
  readonly day: UsageDay
  /** Empty: nothing was used. */
  readonly counters: readonly UsageCounters[]
}

/** What follows. */
export interface FoldedDay {
  /** `known` itself if nothing has changed; undefined: nothing is kept. */
  readonly entry: UsageEntry | undefined
  /** Days that were dropped before their time. */
  readonly dropped: number
}

/** @param nowMs time of the store @returns the last day to which nothing is added any more */
export function closedDay(nowMs: number): UsageDay {
  return Math.floor((nowMs - CLOSED_AFTER_MS) / DAY_MS) - 1
}

/** Adds a day unless it was added before, and drops days that are too old. */
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

/** Of several subjects that have no room together: drops the oldest days, of all of them alike. */
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

/** An entry without days is kept until its last day is no longer read. */
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

/** The day up to which everything goes, so that so many characters go. */
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

/** Less than the day takes in its text, so that at least the excess goes. */
function charactersOf(counters: readonly UsageCounters[]): number {
  return counters.reduce((sum, one) => sum + encodeUsage(one).length, 0)
}
