import { describe, expect, test } from 'vitest'
import { type BudgetWindowKind, isTimeZone, windowAt, windowsAt } from './budget-window.ts'

const at = (text: string): number => Date.parse(text)
const iso = (ms: number): string => new Date(ms).toISOString().replace(':00.000Z', 'Z')
function windowOf(kind: BudgetWindowKind, timeZone: string, instant: string): readonly [string, string] {
  const { startMs, endMs } = windowAt(kind, timeZone, at(instant))
  return [iso(startMs), iso(endMs)]
}

describe('the window of a budget', () => {
  test.each<[BudgetWindowKind, string, string, string, string]>([
    ['Day', 'UTC', '2026-11-23T12:00Z', '2026-11-23T00:00Z', '2026-11-24T00:00Z'],
    ['Week', 'UTC', '2026-11-29T23:59Z', '2026-11-23T00:00Z', '2026-11-30T00:00Z'],
    ['Week', 'UTC', '2026-11-30T00:00Z', '2026-11-30T00:00Z', '2026-12-07T00:00Z'],
    ['Month', 'UTC', '2024-02-29T23:59Z', '2024-02-01T00:00Z', '2024-03-01T00:00Z'],
    ['Month', 'Europe/Berlin', '2026-12-31T22:59Z', '2026-11-30T23:00Z', '2026-12-31T23:00Z'],
    ['Month', 'Europe/Berlin', '2026-12-31T23:00Z', '2026-12-31T23:00Z', '2027-01-31T23:00Z'],
    ['Day', 'Asia/Kathmandu', '2026-11-23T18:14Z', '2026-11-22T18:15Z', '2026-11-23T18:15Z'],
    ['Month', 'Asia/Kathmandu', '2026-11-30T18:15Z', '2026-11-30T18:15Z', '2026-12-31T18:15Z'],
  ])('#29358 %s in %s at %s is %s to %s', (kind, timeZone, instant, ...window) => {
    expect(windowOf(kind, timeZone, instant)).toEqual(window)
  })

  test.each<[string, string, string, string, string]>([
    ['Berlin loses an hour', 'Europe/Berlin', '2026-03-29T12:00Z', '2026-03-28T23:00Z', '2026-03-29T22:00Z'],
    ['Berlin gains an hour', 'Europe/Berlin', '2026-10-25T12:00Z', '2026-10-24T22:00Z', '2026-10-25T23:00Z'],
    ['Lord Howe loses half an hour', 'Australia/Lord_Howe', '2026-10-04T00:00Z', '2026-10-03T13:30Z', '2026-10-04T13:00Z'],
    ['Lord Howe gains half an hour', 'Australia/Lord_Howe', '2026-04-05T00:00Z', '2026-04-04T13:00Z', '2026-04-05T13:30Z'],
    ['Cairo has no midnight', 'Africa/Cairo', '2026-04-24T12:00Z', '2026-04-23T22:00Z', '2026-04-24T21:00Z'],
    ['Beirut has no midnight', 'Asia/Beirut', '2026-03-29T12:00Z', '2026-03-28T22:00Z', '2026-03-29T21:00Z'],
    ['Beirut has an hour twice before midnight', 'Asia/Beirut', '2026-10-24T22:00Z', '2026-10-24T22:00Z', '2026-10-25T22:00Z'],
    ['Apia had no 30th', 'Pacific/Apia', '2011-12-30T09:59Z', '2011-12-29T10:00Z', '2011-12-30T10:00Z'],
    ['Apia went on with the 31st', 'Pacific/Apia', '2011-12-30T10:00Z', '2011-12-30T10:00Z', '2011-12-31T10:00Z'],
    [
      "St. John's returned into Saturday, whose window was over",
      'America/St_Johns',
      '2010-11-07T02:40Z',
      '2010-11-07T02:30Z',
      '2010-11-08T03:30Z',
    ],
  ])('bifrost#2079 langwatch#6255 is a whole day where %s', (_what, timeZone, instant, ...window) => {
    expect(windowOf('Day', timeZone, instant)).toEqual(window)
  })

  test('of a lifetime begins at 0 and has no end, whatever the zone', () => {
    expect(windowAt('Lifetime', 'no zone', at('2026-11-23T12:00Z'))).toEqual({ startMs: 0, endMs: Infinity })
  })

  test('#9098 ends in the instant in which the next one begins, and is found again after others were asked for', () => {
    const zone = 'America/New_York'
    const first = windowAt('Month', zone, at('2026-01-31T12:00Z'))
    const second = windowAt('Month', zone, first.endMs)
    const third = windowAt('Month', zone, second.endMs)
    expect([second.startMs, third.startMs]).toEqual([first.endMs, second.endMs])
    expect(windowAt('Month', zone, first.startMs)).toEqual(first)
    expect(windowAt('Month', zone, first.endMs - 1)).toEqual(first)
    expect(windowAt('Day', zone, first.startMs).endMs).toBe(at('2026-01-02T05:00Z'))
  })

  test('and the next one are the same object for each instant in the window: requests do no calendar arithmetic', () => {
    const windows = windowsAt('Week', 'Asia/Tokyo', at('2026-11-23T12:00Z'))
    const [now, next] = windows
    for (const atMs of [now.startMs, now.startMs + 1, now.endMs - 1]) expect(windowsAt('Week', 'Asia/Tokyo', atMs)).toBe(windows)
    expect(windowAt('Week', 'Asia/Tokyo', now.endMs)).toEqual(next)
  })
})

describe('the name of a time zone', () => {
  test.each(['UTC', 'Europe/Berlin', 'Asia/Kathmandu', 'Asia/Calcutta', 'America/Argentina/Ushuaia', 'Etc/GMT+5', 'europe/berlin'])(
    '%s is one',
    (name) => expect(isTimeZone(name)).toBe(true),
  )

  test.each(['', 'Mars/Phobos', '+01:00', '-05:00', 'UTC+1', 'Europe/', '/Berlin', ' UTC', 'local', '../UTC', `A${'/a'.repeat(40)}`])(
    '%j is none',
    (name) => expect(isTimeZone(name)).toBe(false),
  )

  test('that is unknown has no windows', () => {
    expect(() => windowAt('Day', 'Mars/Phobos', 0)).toThrow(RangeError)
  })
})
