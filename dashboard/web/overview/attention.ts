/** What needs the attention of a person: keys that are stopped, and those that will be soon. Pure. */
import type { BudgetView, BudgetWindow, Keys, KeyView, PlanView } from '../../server/page-data/keys.ts'
import { budgetAmount, resetTime } from '../budget-words.ts'
import type { StateLook } from '../components/state.tsx'
import { longDay, utcDay } from '../days.ts'
import { problemWords } from '../keys/key-banner.ts'
import { clockTime } from '../times.ts'

export interface Concern {
  /** Different for each concern. */
  readonly id: string
  /** Name of the key, or `All keys`. */
  readonly name: string
  /** Page of the key; '' for all keys. */
  readonly path: string
  readonly text: string
  readonly state: { readonly look: StateLook; readonly word: string }
  /** What the page of the key offers against it; '' where the person can do nothing there. */
  readonly action: '' | 'Raise budget' | 'Extend' | 'Open'
}

const DAY_MS = 86_400_000
const SOON_DAYS = 7
const WARN_PERCENT = 80
const FULL_PERCENT = 100
const NOW: Readonly<Record<BudgetWindow, string>> = { Lifetime: 'in all', Day: 'today', Week: 'this week', Month: 'this month' }
/** Keys whose calls are refused by the person's own decision, or that have ended: nothing is wrong with them. */
const IDLE: ReadonlySet<KeyView['state']> = new Set(['Revoked', 'Revoking', 'Expired', 'Suspended', 'Suspending'])

/** @returns what stops calls before what will stop them */
export function concernsOf(keys: Keys['keys'], plan: Pick<PlanView, 'budgets' | 'currency'>, now: Date): readonly Concern[] {
  const facts: Facts = { currency: plan.currency, now }
  const shared = plan.budgets
    .filter(({ isShared }) => isShared)
    .flatMap((budget) => budgetConcern({ id: '', name: 'All keys' }, budget, facts))
  const own = keys
    .filter(({ state }) => !IDLE.has(state))
    .flatMap((key) => [
      ...problemConcern(key),
      ...key.budgets.filter(({ isShared }) => !isShared).flatMap((budget) => budgetConcern(key, budget, facts)),
      ...expiryConcern(key, now),
    ])
  return [...shared, ...own].toSorted((a, b) => Number(b.state.look === 'danger') - Number(a.state.look === 'danger'))
}

export function keyPath(id: string): string {
  return `/keys/${encodeURIComponent(id)}`
}

interface Facts {
  readonly currency: string
  readonly now: Date
}

function problemConcern({ id, name, state, problem }: KeyView): readonly Concern[] {
  if (state !== 'NotAccepted') return []
  return [
    {
      id: `${id}/problem`,
      name,
      path: keyPath(id),
      text: problemWords(problem),
      state: { look: 'danger', word: 'Not accepted' },
      action: 'Open',
    },
  ]
}

function expiryConcern({ id, name, expiresAt }: KeyView, now: Date): readonly Concern[] {
  const left = expiresAt === undefined ? Infinity : Date.parse(expiresAt) - now.getTime()
  if (expiresAt === undefined || left <= 0 || left > SOON_DAYS * DAY_MS) return []
  const end = new Date(expiresAt)
  const days = Math.ceil(left / DAY_MS)
  return [
    {
      ...{ id: `${id}/expiry`, name, path: keyPath(id), action: 'Extend' },
      text: `On ${longDay(utcDay(end))}, ${clockTime(end)}. Then calls answer 401.`,
      state: { look: 'warn', word: days === 1 ? 'Expires within a day' : `Expires in ${days} days` },
    },
  ]
}

/** @param whose `id` is '' for all keys */
function budgetConcern({ id, name }: Pick<KeyView, 'id' | 'name'>, budget: BudgetView, { currency, now }: Facts): readonly Concern[] {
  const { percent = 0, used = '0', amount, window, isAudit, owner } = budget
  if (isAudit || percent < WARN_PERCENT) return []
  const isFull = percent >= FULL_PERCENT
  const spent = `${budgetAmount(budget, used, currency)} of ${budgetAmount(budget, amount, currency)} ${NOW[window]}.`
  const who = owner === 'key' ? '' : ' Your administrator sets this budget.'
  return [
    {
      id: `${id}/${owner}/${budget.name}`,
      name,
      path: id === '' ? '' : keyPath(id),
      text: `${spent} ${isFull ? stoppedWords(budget) : forecast(budget, now)}${who}`.trimEnd(),
      state: isFull ? { look: 'danger', word: 'Budget used up' } : { look: 'warn', word: `Budget at ${Math.floor(percent)} %` },
      action: owner === 'key' ? 'Raise budget' : '',
    },
  ]
}

function stoppedWords(budget: BudgetView): string {
  const reset = resetTime(budget)
  return reset === undefined ? 'Calls answer 402 until the budget is raised.' : `Calls answer 402 until ${reset}.`
}

/** When the budget is used up at the pace of its window until now. @returns '' if the window ends before */
function forecast({ percent = 0, window, resetsAt }: BudgetView, now: Date): string {
  if (resetsAt === undefined || percent <= 0) return ''
  const start = startOf(window, new Date(resetsAt))
  const end = start + ((now.getTime() - start) * FULL_PERCENT) / percent
  if (end >= Date.parse(resetsAt)) return ''
  return `At this pace it is used up on ${longDay(utcDay(new Date(end)))}.`
}

/** Start of the window that ends here, ms since 1970. */
function startOf(window: BudgetWindow, end: Date): number {
  if (window === 'Month') return Date.UTC(end.getUTCFullYear(), end.getUTCMonth() - 1, end.getUTCDate(), end.getUTCHours())
  return end.getTime() - (window === 'Week' ? SOON_DAYS : 1) * DAY_MS
}
