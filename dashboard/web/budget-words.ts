/** What the pages say about a budget. Pure. */
import type { BudgetView, BudgetWindow } from '../server/page-data/keys.ts'
import { money, whole } from './money.ts'

const WINDOWS: Readonly<Record<BudgetWindow, string>> = { Lifetime: 'in all', Day: 'a day', Week: 'a week', Month: 'a month' }

/** `a month`: follows an amount. */
export function windowWords(window: BudgetWindow): string {
  return WINDOWS[window]
}

/** The window that counts now: `today`, `this week`, `November`, `in all`. @param now in the zone of the budget */
export function presentWindow({ window, timeZone }: Pick<BudgetView, 'window' | 'timeZone'>, now: Date): string {
  switch (window) {
    case 'Lifetime':
      return 'in all'
    case 'Day':
      return 'today'
    case 'Week':
      return 'this week'
    case 'Month':
      return new Intl.DateTimeFormat('en-US', { month: 'long', timeZone }).format(now)
  }
}

/** An amount of a budget: `€25.00`, `40,000 tokens`. */
export function budgetAmount({ unit }: Pick<BudgetView, 'unit'>, amount: string, currency: string | undefined): string {
  return unit === 'Currency' ? money(amount, currency) : `${whole(amount)} tokens`
}

/** `1 Dec 00:00 UTC`, in the zone of the budget. @returns undefined for a budget that never starts again */
export function resetTime({ resetsAt, timeZone }: Pick<BudgetView, 'resetsAt' | 'timeZone'>): string | undefined {
  if (resetsAt === undefined) return undefined
  const form: Intl.DateTimeFormatOptions = {
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    timeZone,
  }
  const parts = new Intl.DateTimeFormat('en-US', form).formatToParts(new Date(resetsAt))
  const part = (type: Intl.DateTimeFormatPartTypes): string => parts.find((one) => one.type === type)?.value ?? ''
  return `${part('day')} ${part('month')} ${part('hour')}:${part('minute')} ${timeZone}`
}
