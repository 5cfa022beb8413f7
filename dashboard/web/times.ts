/** Times as the pages write them: always UTC, and always saying so. Pure. */

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const DAY_MS = 86_400_000
const two = (number: number): string => String(number).padStart(2, '0')

/** `12:03 UTC` */
export function clockTime(time: Date): string {
  return `${two(time.getUTCHours())}:${two(time.getUTCMinutes())} UTC`
}

/** `24 Nov 2026` */
export function day(time: Date): string {
  return `${time.getUTCDate()} ${MONTHS[time.getUTCMonth()] ?? ''} ${time.getUTCFullYear()}`
}

/** `24 Nov` */
export function shortDay(time: Date): string {
  return `${time.getUTCDate()} ${MONTHS[time.getUTCMonth()] ?? ''}`
}

/** `24 Nov 2026, 12:03 UTC` */
export function dayAndTime(time: Date): string {
  return `${day(time)}, ${clockTime(time)}`
}

/** How long ago: `Today, 12:03 UTC`, `Yesterday, 21:40 UTC`, `16 Nov 2026, 08:12 UTC`. @param now the present */
export function recently(time: Date, now: Date): string {
  const days = Math.floor(now.getTime() / DAY_MS) - Math.floor(time.getTime() / DAY_MS)
  const name = days === 0 ? 'Today' : days === 1 ? 'Yesterday' : day(time)
  return `${name}, ${clockTime(time)}`
}
