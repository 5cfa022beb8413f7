/** Derives new spend, lost spend and the readings of a status from a read of one subject's budgets. Pure. */
import { isTimeZone, windowAt } from '#contract/values/budget-window.ts'
import { budgetField, budgetID, DAY_MS, LEDGER_CAPS } from '#contract/ledger/ledger-layout.ts'
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import type { Checkpoint, WindowField, WindowSpend } from './ledger-store.ts'
import type { Interval, SpendEntry } from '../shards/spend-entry.ts'
import type { BudgetReading } from './subject-ledger.ts'

/** Time for which a status shows a loss, ms. */
const UNCERTAIN_FOR_MS = DAY_MS
/** Two losses within this time count as one, ms. */
const SAME_LOSS_MS = 60_000
/**
 * All calls together hold at most the amount of a budget that blocks. A call that holds 4,096 tokens of output, because nothing bounds it, is
 * charged for a million at most: 245 times as much (decision 40). `gateway/limits/estimate.ts` has both numbers.
 */
const MAX_BELIEVED = 250
/** Longest window of each kind, ms: days of 25 h and months of 31 days, with an hour to spare. */
const LONGEST_MS: Readonly<Record<string, number>> = { Day: 1.1 * DAY_MS, Week: 7.1 * DAY_MS, Month: 31.1 * DAY_MS, Lifetime: Infinity }

export interface AskedWindow {
  readonly budget: BudgetRecord
  readonly field: WindowField
  readonly startMs: number
}

/** Lists the present windows, without budgets in a time zone that this build does not know: they must not stop all others. */
export function presentWindows(budgets: readonly BudgetRecord[], nowMs: number): readonly AskedWindow[] {
  const known = budgets.filter(({ timeZone }) => isTimeZone(timeZone))
  return known.map((budget) => {
    const { startMs } = windowAt(budget.window, budget.timeZone, nowMs)
    return { budget, field: budgetField(budgetID(budget), startMs), startMs }
  })
}

/** Whether the ledger has less than the known spend of a window. */
export function hasLostSpend(known: SpendEntry | undefined, asked: readonly AskedWindow[], windows: readonly WindowSpend[]): boolean {
  return asked.some(({ field }, at) => (windows[at]?.spent ?? 0) < (known?.spent.get(field) ?? 0))
}

/** Whether a window is of one of these budgets. */
export function isOf(field: WindowField, budgets: readonly BudgetRecord[]): boolean {
  return budgets.some((budget) => budgetID(budget) === idOf(field))
}

export interface Belief {
  /** The windows of the read; a count that is not believed is replaced by the known spend. */
  readonly windows: readonly WindowSpend[]
  /** Names of the budgets with a count that is not believed. */
  readonly heldBack: readonly string[]
}

/**
 * What the operator believes of a read. Every program that can write to Redis can store any number as the spend of a budget.
 * @param mostAmount the highest amount that a budget has had
 */
export function believed(
  known: SpendEntry | undefined,
  asked: readonly AskedWindow[],
  { windows, mostAmount }: { windows: readonly WindowSpend[]; mostAmount: (budget: BudgetRecord) => number },
): Belief {
  const heldBack: string[] = []
  const believedWindows = windows.map((window, at) => {
    const { budget, field } = asked[at] ?? {}
    const before = known?.spent.get(field ?? '') ?? 0
    if (budget?.onExceeded !== 'Block' || window.spent <= Math.max(before, MAX_BELIEVED * mostAmount(budget))) return window
    heldBack.push(budget.name)
    return { ...window, spent: before }
  })
  return { windows: believedWindows, heldBack }
}

/**
 * The known spend after a read: the highest spend ever seen in each window. Closed windows are dropped. An entry without windows stays, so
 * that this operator or the next one corrects a status that shows the last window.
 * @returns `known` itself if nothing has changed; undefined if there was never any spend
 */
export function knownAfter(
  known: SpendEntry | undefined,
  { uid, asked, windows, nowMs }: { uid: string; asked: readonly AskedWindow[]; windows: readonly WindowSpend[]; nowMs: number },
): SpendEntry | undefined {
  const present = asked.flatMap(({ field }, at): Checkpoint[] => {
    const spent = Math.max(known?.spent.get(field) ?? 0, windows[at]?.spent ?? 0)
    return spent > 0 ? [[field, spent]] : []
  })
  const budgets = asked.map(({ budget }) => budget)
  const others = [...(known?.spent ?? [])].filter(([field]) => !isOf(field, budgets) && !isOver(field, nowMs))
  const spent = [...present, ...others].slice(0, LEDGER_CAPS.reports).toSorted(([a], [b]) => (a < b ? -1 : 1))
  if (known !== undefined && isSame(known.spent, spent)) return known
  if (spent.length === 0 && known === undefined) return undefined
  return { uid, spent: new Map(spent), atMs: nowMs, uncertain: known?.uncertain }
}

/** @returns windows that no process reports any more: closed for a whole window, or of a removed budget */
export function forgettable(fields: readonly WindowField[], budgets: readonly BudgetRecord[], nowMs: number): readonly WindowField[] {
  return fields.filter((field) => (kindOf(field) === 'Lifetime' ? !isOf(field, budgets) : isOver(field, nowMs, 2)))
}

/** Adds a loss to an entry. Losses that follow each other count as one. */
export function withLoss(known: SpendEntry, { fromMs, toMs }: Interval): SpendEntry {
  const former = known.uncertain
  const isSameLoss = former !== undefined && fromMs - former.toMs <= SAME_LOSS_MS && toMs >= former.fromMs
  return { ...known, uncertain: { fromMs: isSameLoss ? Math.min(former.fromMs, fromMs) : fromMs, toMs } }
}

/** @returns the period that a status shows now */
export function shownLoss({ uncertain }: Pick<SpendEntry, 'uncertain'>, nowMs: number): Interval | undefined {
  return uncertain !== undefined && nowMs - uncertain.toMs < UNCERTAIN_FOR_MS ? uncertain : undefined
}

/** The readings of a status. Holds of dead processes count as spent. */
export function readingsOf(asked: readonly AskedWindow[], windows: readonly WindowSpend[]): readonly BudgetReading[] {
  return asked.map(({ budget, startMs }, at) => {
    const { spent, unsettled } = windows[at] ?? { spent: 0, unsettled: 0 }
    return { budget: budget.name, unit: budget.unit, window: budget.window, spent: spent + unsettled, windowStartMs: startMs }
  })
}

function isSame(known: ReadonlyMap<WindowField, number>, spent: readonly Checkpoint[]): boolean {
  return known.size === spent.length && spent.every(([field, amount]) => known.get(field) === amount)
}

/** `name:unit:window` of `name:unit:window:start`. */
function idOf(field: WindowField): string {
  return field.slice(0, field.lastIndexOf(':'))
}

function kindOf(field: WindowField): string {
  return field.split(':')[2] ?? ''
}

/** Whether a window has ended. @param windows number of window lengths that must have passed since its start */
export function isOver(field: WindowField, nowMs: number, windows = 1): boolean {
  const startMs = Number(field.slice(field.lastIndexOf(':') + 1))
  return !(startMs + windows * (LONGEST_MS[kindOf(field)] ?? 0) >= nowMs)
}
