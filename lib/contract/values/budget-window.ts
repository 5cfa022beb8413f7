/**
 * Windows of budgets: calendar days, weeks and months of a time zone, as instants. The Temporal API computes them, and a cache keeps them,
 * because most requests need the same window as the previous request (decision 24).
 */
import { Temporal } from 'temporal-polyfill'

/** How often a budget resets. `Lifetime` never resets. */
export type BudgetWindowKind = 'Lifetime' | 'Day' | 'Week' | 'Month'

/** One window, from its first instant to that of the next one; ms since 1970. */
export interface BudgetWindow {
  readonly startMs: number
  /** First instant after the window; Infinity for a window without an end. */
  readonly endMs: number
}

/** The window of an instant and the one after it. A window without an end is both. */
export type BudgetWindows = readonly [present: BudgetWindow, next: BudgetWindow]

type CalendarKind = Exclude<BudgetWindowKind, 'Lifetime'>

const FOREVER: BudgetWindow = Object.freeze({ startMs: 0, endMs: Infinity })
const LIFETIME: BudgetWindows = [FOREVER, FOREVER]
const LENGTHS: Readonly<Record<CalendarKind, Temporal.DurationLike>> = { Day: { days: 1 }, Week: { weeks: 1 }, Month: { months: 1 } }
/** Form of a zone's name such as `Europe/Berlin` or `UTC`. Offsets such as `+01:00` are not names. */
export const TIME_ZONE_NAME = '^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$'
const ZONE_NAME = new RegExp(TIME_ZONE_NAME)
const MAX_ZONE_NAME = 64
/** Maximum number of cached zones and kinds. There are about 600 zones, and names may be in any case. */
const MAX_REMEMBERED = 2_000

const zones = new Map<string, boolean>()
/** The last used windows by zone. Thousands of budgets share them. */
const remembered: Readonly<Record<CalendarKind, Map<string, BudgetWindows>>> = { Day: new Map(), Week: new Map(), Month: new Map() }

/**
 * Finds the window of an instant and the next one. A day begins with its first instant in the zone (00:00, or later if the clocks skip midnight), a week on
 * Monday, a month on the 1st. Windows have no gaps between them: a day that the clocks enter twice begins with the first time.
 * @param timeZone a name that `isTimeZone` accepts; ignored for `Lifetime`
 * @param atMs ms since 1970
 * @throws RangeError for an unknown zone
 */
export function windowsAt(kind: BudgetWindowKind, timeZone: string, atMs: number): BudgetWindows {
  if (kind === 'Lifetime') return LIFETIME
  const ofKind = remembered[kind]
  const known = ofKind.get(timeZone)
  if (known !== undefined && isIn(known[0], atMs)) return known
  const present = computed(kind, timeZone, atMs)
  const windows: BudgetWindows = [present, computed(kind, timeZone, present.endMs)]
  if (known === undefined && ofKind.size >= MAX_REMEMBERED) ofKind.clear()
  ofKind.set(timeZone, windows)
  return windows
}

/** Finds the window of an instant; see `windowsAt`. */
export function windowAt(kind: BudgetWindowKind, timeZone: string, atMs: number): BudgetWindow {
  return windowsAt(kind, timeZone, atMs)[0]
}

/** Whether an instant lies in a window. */
export function isIn({ startMs, endMs }: BudgetWindow, atMs: number): boolean {
  return atMs >= startMs && atMs < endMs
}

/** Whether a text names a time zone of this program's IANA database. */
export function isTimeZone(text: string): boolean {
  if (text.length > MAX_ZONE_NAME || !ZONE_NAME.test(text)) return false
  const known = zones.get(text)
  if (known !== undefined) return known
  const found = isInDatabase(text)
  if (zones.size >= MAX_REMEMBERED) zones.clear() // invented names must not fill the memory
  zones.set(text, found)
  return found
}

function isInDatabase(text: string): boolean {
  try {
    Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(text)
    return true
  } catch {
    return false // the library throws for unknown names
  }
}

/** Clocks may return into a finished day (St. John's left Sunday 00:01 for Saturday 23:01). A window that has begun does not end again. */
function computed(kind: CalendarKind, timeZone: string, atMs: number): BudgetWindow {
  const length = LENGTHS[kind]
  const today = Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(timeZone).toPlainDate()
  let first = firstDay(kind, today)
  let startMs = beginOf(first, timeZone)
  let endMs = beginOf(first.add(length), timeZone)
  while (endMs <= atMs) {
    first = first.add(length)
    startMs = endMs
    endMs = beginOf(first.add(length), timeZone)
  }
  return { startMs, endMs }
}

function firstDay(kind: CalendarKind, day: Temporal.PlainDate): Temporal.PlainDate {
  if (kind === 'Day') return day
  return kind === 'Week' ? day.subtract({ days: day.dayOfWeek - 1 }) : day.with({ day: 1 })
}

/** Finds the first instant of a day. @returns ms since 1970 */
function beginOf(day: Temporal.PlainDate, timeZone: string): number {
  return day.toZonedDateTime(timeZone).epochMilliseconds
}
