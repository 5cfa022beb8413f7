/** Windows against a walk through the years, minute by minute, by the dates that the runtime's own formatter shows. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type BudgetWindowKind, windowAt } from './budget-window.ts'

const SEED = Number(process.env.WINDOWS_SEED ?? Date.now() % 2 ** 31)
/** Years of a zone that are walked through, besides the known hard ones; all 30 zones by 10 years are 300. */
const YEARS = Number(process.env.WINDOWS_YEARS ?? 2)
process.stdout.write(`windows: seed ${SEED}, ${YEARS} years\n`)

const ZONES = [
  'UTC',
  'Europe/Berlin',
  'Europe/London',
  'Europe/Dublin',
  'Europe/Istanbul',
  'Europe/Moscow',
  'Asia/Kathmandu',
  'Asia/Kolkata',
  'Asia/Beirut',
  'Asia/Amman',
  'Asia/Gaza',
  'Asia/Tehran',
  'Asia/Tokyo',
  'Asia/Pyongyang',
  'Africa/Cairo',
  'Africa/Casablanca',
  'Africa/Juba',
  'America/New_York',
  'America/St_Johns',
  'America/Sao_Paulo',
  'America/Asuncion',
  'America/Havana',
  'America/Caracas',
  'America/Nuuk',
  'America/Santiago',
  'Antarctica/Troll',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Pacific/Chatham',
  'Pacific/Kiritimati',
]
const HARD: ReadonlyArray<readonly [zone: string, year: number]> = [
  ['Europe/Berlin', 2026],
  ['Africa/Cairo', 2026],
  ['Asia/Beirut', 2026],
  ['Australia/Lord_Howe', 2026],
  ['Pacific/Apia', 2011],
  ['America/St_Johns', 2010],
  ['America/Sao_Paulo', 2018],
  ['Asia/Kathmandu', 1986],
]
const KINDS = ['Day', 'Week', 'Month'] as const satisfies readonly BudgetWindowKind[]
const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
/** The walk begins and ends this far outside of the year, so that it sees the beginning of each counted month. */
const MARGIN_MS = 62 * DAY_MS

test.each(HARD)('windows of %s in %i are those of a walk minute by minute', (zone, year) => {
  expectWindows(zone, year)
})

test('windows of other zones and years are, too', () => {
  const zoneYear = fc.tuple(fc.constantFrom(...ZONES), fc.integer({ min: 2017, max: 2026 }))
  fc.assert(
    fc.property(zoneYear, ([zone, year]) => expectWindows(zone, year)),
    { seed: SEED, numRuns: YEARS, endOnFailure: true },
  )
}, 3_600_000)

function expectWindows(zone: string, year: number): void {
  const starts = walk(zone, year)
  for (const kind of KINDS) {
    const found = starts[kind]
    expect(found.length).toBeGreaterThan(11)
    for (const [i, startMs] of found.entries()) {
      const endMs = found[i + 1]
      if (i === 0 || endMs === undefined) continue // the walk entered the first one in the middle, and left the last one early
      for (const atMs of [startMs, endMs - 1, Math.floor((startMs + endMs) / 2)])
        expect(windowAt(kind, zone, atMs), `${kind} ${zone} ${new Date(atMs).toISOString()}`).toEqual({ startMs, endMs })
    }
  }
}

/** The minutes in which a later day, week or month begins than was ever reached before: ms since 1970, by kind. */
function walk(zone: string, year: number): Readonly<Record<(typeof KINDS)[number], readonly number[]>> {
  const starts = { Day: [] as number[], Week: [] as number[], Month: [] as number[] }
  const reached = { Day: -Infinity, Week: -Infinity, Month: -Infinity }
  const localDay = dayReader(zone)
  const endMs = Date.UTC(year + 1, 0) + MARGIN_MS
  let [lastDay, lastStamps] = [Number.NaN, stampsOf(0)]
  for (let atMs = Date.UTC(year, 0) - MARGIN_MS; atMs < endMs; atMs += MINUTE_MS) {
    const day = localDay(atMs)
    if (day === lastDay) continue
    ;[lastDay, lastStamps] = [day, stampsOf(day)]
    for (const kind of KINDS) {
      if (lastStamps[kind] <= reached[kind]) continue
      reached[kind] = lastStamps[kind]
      starts[kind].push(atMs)
    }
  }
  return starts
}

/** Numbers that rise from day to day, week to week and month to month. @param day days since 1970-01-01, a Thursday */
function stampsOf(day: number): Record<(typeof KINDS)[number], number> {
  const date = new Date(day * DAY_MS)
  return { Day: day, Week: Math.floor((day + 3) / 7), Month: date.getUTCFullYear() * 12 + date.getUTCMonth() }
}

/** Reads the local date of an instant as days since 1970. */
function dayReader(timeZone: string): (atMs: number) => number {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' })
  const days = new Map<string, number>()
  return (atMs) => {
    const text = format.format(atMs)
    const known = days.get(text)
    if (known !== undefined) return known
    const day = Date.parse(`${text}T00:00Z`) / DAY_MS
    days.set(text, day)
    return day
  }
}
