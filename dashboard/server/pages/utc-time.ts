/** Times as people read them: `24 Nov 2026, 12:03 UTC`. */

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** @param precision `seconds` where the time leads to a line of a log */
export function utcTime(at: Date, precision: 'minutes' | 'seconds' = 'minutes'): string {
  const clock = at.toISOString().slice(11, precision === 'seconds' ? 19 : 16)
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()] ?? ''} ${at.getUTCFullYear()}, ${clock} UTC`
}

/** `1 minute`, `5 minutes`, for a sentence. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
