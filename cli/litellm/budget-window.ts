/** Converts LiteLLM's `budget_duration` to a calendar window. Pure. */

/** Windows of a budget; key = window, in rising length. */
export type Window = 'Day' | 'Week' | 'Month' | 'Lifetime'

/** The window for a duration. */
export interface WindowChoice {
  readonly window: Window
  /** Undefined: LiteLLM resets at the same moments. Otherwise the difference. */
  readonly note?: string
}

/** `_BUDGET_DURATION_WORD_ALIASES` in litellm/litellm_core_utils/duration_parser.py */
const WORDS: Readonly<Record<string, string>> = { hourly: '1h', daily: '24h', weekly: '7d', monthly: '30d' }

/** Durations that LiteLLM resets at midnight, on Monday and on the first (`get_next_standardized_reset_time` there). */
const CALENDAR: Readonly<Record<string, Window>> = { '1d': 'Day', '24h': 'Day', '7d': 'Week', '1w': 'Week', '30d': 'Month', '1mo': 'Month' }

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800, mo: 2_592_000 }
const LENGTHS: ReadonlyArray<readonly [Window, number]> = [
  ['Day', 86_400],
  ['Week', 604_800],
  ['Month', 2_419_200], // the shortest month: a window must not be shorter than the duration
]

/** Gives a duration without its own window the next longer one: the key may then spend less than before, never more. */
export function windowOf(duration: string | undefined): WindowChoice {
  if (duration === undefined) return { window: 'Lifetime' }
  const text = WORDS[duration.trim().toLowerCase()] ?? duration.trim()
  const calendar = CALENDAR[text]
  if (calendar !== undefined) return { window: calendar }
  const seconds = secondsOf(text)
  if (seconds === undefined)
    return { window: 'Lifetime', note: `budget_duration ${JSON.stringify(text.slice(0, 16))} is not a duration; the budget never resets` }
  const longer = LENGTHS.find(([, length]) => seconds <= length)?.[0] ?? 'Lifetime'
  const when = longer === 'Lifetime' ? 'the budget never resets' : `the budget is per ${longer.toLowerCase()}`
  return { window: longer, note: `budget_duration ${text} has no calendar window, so ${when}: the key may spend less than before` }
}

function secondsOf(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d+)(mo|[smhdw])$/.exec(text) ?? []
  const length = SECONDS[unit]
  return count === undefined || length === undefined ? undefined : Number(count) * length
}
