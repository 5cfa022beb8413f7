import { windowAt } from '#contract/values/budget-window.ts'
import type { WindowAt } from './ledger.ts'

/** The calendar of budgets, as ledgers ask for it: a window without an end ends at Infinity. */
export const endlessWindowAt: WindowAt = (window, timeZone, atMs) => {
  const { startMs, endMs = Infinity } = windowAt(window, timeZone, atMs)
  return { startMs, endMs }
}
