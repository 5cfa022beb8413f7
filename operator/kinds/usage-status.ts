/** Derives the parts of a status about use from the readings of the ledger. Display only: nothing durable depends on them. Pure. */
import { rfc3339 } from '#contract/values/rfc3339.ts'
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import { formatAmount } from '#contract/values/micros.ts'
import type { ApiKeyStatus } from '#api/apikey.ts'
import type { UsageStatus } from '#api/limits.ts'
import type { SubjectUsage } from '../books/subject-ledger.ts'

const HOUR_MS = 3_600_000
const FULL = 100
/** The column holds 8 characters: more per cent are shown as more than this. An amount may be lowered to a millionth of what was spent. */
const MAX_SHOWN = 9_999
/** Per cent at which an Event is written, once per window; the highest threshold first. */
const THRESHOLDS = [FULL, 80] as const

export type ShownStatus = Pick<ApiKeyStatus, 'usage' | 'lastUsedTime'>

/** The parts of the status about use. Without a reading, as after a start of the operator, the present parts stay. */
export function usageStatus(
  status: ApiKeyStatus | undefined,
  budgets: readonly BudgetRecord[],
  usage: SubjectUsage | undefined,
): ShownStatus {
  const entries = budgets.flatMap((budget) => entryOf(budget, status, usage) ?? [])
  const lastUsedTime = usage?.lastUsedMs === undefined ? status?.lastUsedTime : toHour(usage.lastUsedMs)
  return { ...(entries.length > 0 && { usage: entries }), ...(lastUsedTime !== undefined && { lastUsedTime }) }
}

/** @returns the budgets that refuse requests, as the status shows them */
export function exhaustedBudgets(budgets: readonly BudgetRecord[], shown: ShownStatus): readonly BudgetRecord[] {
  const isUsedUp = ({ name }: BudgetRecord): boolean =>
    (shown.usage ?? []).some(({ budget, percent }) => budget === name && percent >= FULL)
  return budgets.filter((budget) => budget.onExceeded === 'Block' && isUsedUp(budget))
}

/** Thresholds that were reached since the last status, one per budget: the highest. */
export function newlyReached(
  before: ShownStatus | undefined,
  after: ShownStatus,
): ReadonlyArray<{ readonly budget: string; readonly percent: number }> {
  return (after.usage ?? []).flatMap((entry) => {
    const announced = sameWindow(before?.usage, entry)?.announcedPercent ?? 0
    return entry.announcedPercent > announced ? [{ budget: entry.budget, percent: entry.announcedPercent }] : []
  })
}

export interface Weight {
  /** Exhausted: a blocking budget is newly used up. None: the change is too small for a write. */
  readonly kind: 'Exhausted' | 'Changed' | 'None'
  readonly size: number
}

export function weigh(before: ShownStatus, after: ShownStatus, budgets: readonly BudgetRecord[]): Weight {
  const isBlocking = (name: string): boolean => budgets.some((one) => one.name === name && one.onExceeded === 'Block')
  const moves = (after.usage ?? []).map((entry) => moveOf(sameWindow(before.usage, entry), entry))
  const size = Math.max(0, ...moves)
  const isExhausted = (after.usage ?? []).some((entry) => isNewlyUsedUp(sameWindow(before.usage, entry), entry) && isBlocking(entry.budget))
  if (isExhausted) return { kind: 'Exhausted', size }
  const isOther = before.lastUsedTime !== after.lastUsedTime || (before.usage ?? []).length !== (after.usage ?? []).length
  return { kind: size >= 1 || isOther ? 'Changed' : 'None', size }
}

/** The change in per cent. A new window counts as the largest change, even with little spend. */
function moveOf(before: UsageStatus | undefined, after: UsageStatus): number {
  return before === undefined ? FULL : Math.abs(after.percent - before.percent)
}

function isNewlyUsedUp(before: UsageStatus | undefined, { percent }: UsageStatus): boolean {
  return percent >= FULL && (before === undefined || before.percent < FULL)
}

function entryOf(budget: BudgetRecord, status: ApiKeyStatus | undefined, usage: SubjectUsage | undefined): UsageStatus | undefined {
  const former = status?.usage?.find((entry) => entry.budget === budget.name)
  if (usage === undefined) return former
  const reading = usage.budgets.find((one) => one.budget === budget.name && one.unit === budget.unit && one.window === budget.window)
  if (reading === undefined) return undefined
  const { spent, windowStartMs } = reading
  const percent = percentOf(spent, budget.amount)
  const entry = {
    budget: budget.name,
    ...(budget.window === 'Lifetime' ? {} : { windowStartTime: rfc3339(windowStartMs) }),
    used: formatAmount(spent, budget.unit),
    remaining: formatAmount(Math.max(0, budget.amount - spent), budget.unit),
    percent,
    announcedPercent: THRESHOLDS.find((threshold) => percent >= threshold) ?? 0,
  }
  const announced = sameWindow(status?.usage, entry)?.announcedPercent ?? 0
  return { ...entry, announcedPercent: Math.max(entry.announcedPercent, announced) }
}

function sameWindow(entries: readonly UsageStatus[] | undefined, { budget, windowStartTime }: UsageStatus): UsageStatus | undefined {
  return entries?.find((entry) => entry.budget === budget && entry.windowStartTime === windowStartTime)
}

/** Rounds down, so that 100 means that nothing is left. A budget of 0 is used up. */
function percentOf(spent: number, amount: number): number {
  return amount === 0 ? FULL : Math.min(Number.MAX_SAFE_INTEGER, Number((BigInt(spent) * BigInt(FULL)) / BigInt(amount)))
}

function toHour(ms: number): string {
  return rfc3339(Math.floor(ms / HOUR_MS) * HOUR_MS)
}

export function usedColumn({ usage = [] }: ShownStatus): string | undefined {
  if (usage.length === 0) return undefined
  const percent = Math.max(...usage.map((entry) => entry.percent))
  return percent > MAX_SHOWN ? `>${MAX_SHOWN}%` : `${percent}%`
}

/** The end of a sentence: the time until which an exhausted budget refuses requests. */
export function untilWhen({ window, timeZone }: BudgetRecord): string {
  return window === 'Lifetime' ? 'until its amount is raised' : `until the next ${window} begins (${timeZone}), or its amount is raised`
}
