/** UTC days and months as the server writes them, `2026-11-24` and `2026-10`: ranges of them, and how people read them. Pure. */

import { clockTime } from './times.ts'

const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December']
const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const DAY_MS = 86_400_000

export interface DayRange {
  readonly from: string
  readonly to: string
}

export function utcDay(time: Date): string {
  return time.toISOString().slice(0, 10)
}

/** @param days negative: before */
export function daysAfter(day: string, days: number): string {
  return utcDay(new Date(Date.parse(day) + days * DAY_MS))
}

/** The days that end with this one. @param count with the last day */
export function daysUntil(last: string, count: number): DayRange {
  return { from: daysAfter(last, 1 - count), to: last }
}

/** Every day of a range, the oldest first. */
export function daysOf({ from, to }: DayRange): readonly string[] {
  const count = Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1
  return Array.from({ length: Math.max(count, 0) }, (_, index) => daysAfter(from, index))
}

/** The first and the last day of a month. */
export function monthRange(month: string): DayRange {
  const [year, number] = month.split('-').map(Number)
  return { from: `${month}-01`, to: utcDay(new Date(Date.UTC(year ?? 0, number ?? 0, 0))) }
}

/** Every month of a range, the oldest first. */
export function monthsOf(range: DayRange): readonly string[] {
  return [...new Set(daysOf(range).map((day) => day.slice(0, 7)))]
}

/** `24 Nov` */
export function shortDay(day: string): string {
  return `${Number(day.slice(8, 10))} ${monthName(day).slice(0, 3)}`
}

/** `24 November` */
export function longDay(day: string): string {
  return `${Number(day.slice(8, 10))} ${monthName(day)}`
}

/** `Tue 24 Nov` */
export function dayName(day: string): string {
  return `${weekday(day)} ${shortDay(day)}`
}

/** `Tue` */
export function weekday(day: string): string {
  return WEEKDAYS[new Date(day).getUTCDay()] ?? ''
}

/** `November` */
export function monthName(dayOrMonth: string): string {
  return MONTHS[Number(dayOrMonth.slice(5, 7)) - 1] ?? ''
}

/** `26 October to 24 November`, with the year where a day is not of this year. @param today decides what needs a year */
export function rangeText({ from, to }: DayRange, today: string): string {
  return from === to ? withYear(longDay(to), to, today) : `${withYear(longDay(from), from, today)} to ${withYear(longDay(to), to, today)}`
}

/** Adds the year to the words about a day or month, unless the year is this one. */
export function withYear(words: string, dayOrMonth: string, today: string): string {
  const year = dayOrMonth.slice(0, 4)
  return year === today.slice(0, 4) ? words : `${words} ${year}`
}

/** `12:03 UTC` of today, else `24 Nov 2026, 12:03 UTC`. @param time RFC 3339 */
export function momentText(time: string, today: string): string {
  const clock = clockTime(new Date(time))
  const day = utcDay(new Date(time))
  return day === today ? clock : `${shortDay(day)} ${day.slice(0, 4)}, ${clock}`
}
