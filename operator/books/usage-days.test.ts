import { describe, expect, test } from 'vitest'
import { DAY_MS, LEDGER_CAPS, MAX_AMOUNT, OTHER_MODELS } from '#contract/ledger/ledger-layout.ts'
import { closedDay, foldDay, KEPT_DAYS, MAX_SUBJECT_CHARACTERS, withoutOldestDays } from './usage-days.ts'
import { usageDaysOf, type UsageEntry } from './usage-entry.ts'

const TODAY = 20_500
const used = (requests: number, model = 'm') => ({
  ...{ model, requests, input: 10, output: 5, cached: 0 },
  ...{ cost: 7, estimated: 0, unpriced: 0 },
})
const fold = (known: UsageEntry | undefined, day: number, ...counters: ReturnType<typeof used>[]) =>
  foldDay(known, { uid: 'u', day, counters })
const requestsOf = (entry: UsageEntry | undefined) =>
  [...(entry ? usageDaysOf(entry) : [])].map(([day, counters]) => [day, counters.map(({ requests }) => requests)])

/** Days in a row, with one request on the first day, two on the second, and so on. */
function daysUntil(last: number, count: number): UsageEntry | undefined {
  let entry: UsageEntry | undefined
  for (let at = 1; at <= count; at += 1) entry = fold(entry, last - count + at, used(at)).entry
  return entry
}

describe('a day', () => {
  test('is closed ten minutes after its end, since the clock of Redis may be set back', () => {
    expect(closedDay(TODAY * DAY_MS + 599_999)).toBe(TODAY - 2)
    expect(closedDay(TODAY * DAY_MS + 600_000)).toBe(TODAY - 1)
    expect(closedDay((TODAY + 1) * DAY_MS - 1)).toBe(TODAY - 1)
  })

  test('counts once, even if it is folded twice', () => {
    const { entry } = fold(undefined, TODAY, used(3), used(4, 'n'))
    expect(requestsOf(entry)).toEqual([[TODAY, [3, 4]]])
    expect(fold(entry, TODAY, used(3), used(4, 'n')).entry).toBe(entry)
  })

  test('before the last folded day does not count, so that no order of days counts a day twice', () => {
    const { entry } = fold(undefined, TODAY, used(3))
    expect(fold(entry, TODAY - 1, used(1)).entry).toBe(entry)
  })

  test('without usage adds nothing', () => {
    expect(fold(undefined, TODAY)).toEqual({ entry: undefined, dropped: 0 })
    const { entry } = fold(undefined, TODAY, used(3))
    expect(fold(entry, TODAY + 1).entry).toBe(entry)
  })

  test(`is kept for ${KEPT_DAYS} days, with or without later use, and then dropped`, () => {
    const full = daysUntil(TODAY, KEPT_DAYS + 5)
    expect(requestsOf(full).map(([day]) => day)).toEqual(Array.from({ length: KEPT_DAYS }, (_, at) => TODAY - KEPT_DAYS + 1 + at))
    const idle = fold(full, TODAY + KEPT_DAYS - 1).entry
    expect(requestsOf(idle)).toEqual([[TODAY, [KEPT_DAYS + 5]]])
    expect(fold(idle, TODAY + KEPT_DAYS)).toEqual({ entry: undefined, dropped: 0 })
  })
})

describe('usage without room', () => {
  test('of one key loses its oldest days, which are counted', () => {
    const largest = (model: string) => ({
      ...{ model: model.padStart(36, '0'), requests: MAX_AMOUNT, input: MAX_AMOUNT, output: MAX_AMOUNT, cached: MAX_AMOUNT },
      ...{ cost: MAX_AMOUNT, estimated: MAX_AMOUNT, unpriced: MAX_AMOUNT },
    })
    const counters = Array.from({ length: LEDGER_CAPS.usageModels }, (_, at) => largest(String(at)))
    let entry: UsageEntry | undefined
    let dropped = 0
    for (let day = TODAY - KEPT_DAYS + 1; day <= TODAY; day += 1) {
      const folded = foldDay(entry, { uid: 'u', day, counters: [...counters, largest(OTHER_MODELS)] })
      entry = folded.entry
      dropped += folded.dropped
    }
    const days = [...usageDaysOf(entry!).keys()]
    expect(entry!.text.length).toBeLessThanOrEqual(MAX_SUBJECT_CHARACTERS)
    expect([days.at(-1), days.length > 5, days.length + dropped]).toEqual([TODAY, true, KEPT_DAYS])
  })

  test('of several keys loses the oldest days of all keys, and those days are not folded again', () => {
    const entries = [daysUntil(TODAY, 10)!, daysUntil(TODAY - 5, 3)!, fold(undefined, TODAY - 20, used(1)).entry!]
    const length = (some: readonly UsageEntry[]) => some.reduce((sum, { text }) => sum + text.length, 0)
    const { changed, dropped } = withoutOldestDays(entries, 60)
    expect(changed.map(requestsOf)).toEqual([requestsOf(daysUntil(TODAY, 10)).slice(3), requestsOf(daysUntil(TODAY - 5, 3)).slice(1), []])
    expect([dropped, length(entries) - length(changed) >= 60]).toEqual([5, true])
    const empty = changed[2]!
    expect(fold(empty, TODAY - 20, used(1)).entry).toBe(empty)
    expect(fold(empty, TODAY - 19).entry, 'its last day is over').toBeUndefined()
  })

  test('is dropped completely if even the newest day has no room', () => {
    const entry = daysUntil(TODAY, 3)!
    const { changed, dropped } = withoutOldestDays([entry], 1_000_000)
    expect([changed.map(requestsOf), changed[0]?.newest, dropped]).toEqual([[[]], TODAY, 3])
  })
})
