/** What the page of a key says above all else: why calls are refused, and the way on. Pure. */
import type { BudgetView, KeyView } from '../../server/page-data/keys.ts'
import { resetTime } from '../budget-words.ts'
import { dayAndTime } from '../times.ts'

export interface KeyBanner {
  readonly look: 'info' | 'warn' | 'danger'
  readonly title: string
  readonly text: string
  /** The page of the way on. */
  readonly link?: { readonly to: string; readonly words: string }
}

const FULL_PERCENT = 100

/** @returns undefined where nothing needs to be said */
export function bannerOf(key: KeyView): KeyBanner | undefined {
  switch (key.state) {
    case 'NotAccepted':
      return { look: 'danger', title: 'This key is not accepted', text: problemWords(key.problem) }
    case 'BudgetUsedUp':
      return budgetBanner(key)
    case 'BalanceUsedUp':
      return {
        ...{ look: 'danger', title: 'Calls answer 402: the balance is used up', text: 'All keys of the account wait for a top-up.' },
        link: { to: '/billing', words: 'Top up' },
      }
    case 'AccountSuspended':
      return { look: 'danger', title: 'Calls answer 401: your account is suspended', text: 'Ask your administrator to resume the account.' }
    case 'Expired':
      return { look: 'warn', title: 'Calls answer 401: the key has expired', text: expiredWords(key) }
    default:
      return undefined
  }
}

function expiredWords({ expiresAt }: KeyView): string {
  const ended = expiresAt === undefined ? '' : `It ended on ${dayAndTime(new Date(expiresAt))}. `
  return `${ended}With a later end, the same value works again.`
}

function budgetBanner({ budgets }: KeyView): KeyBanner {
  const full = usedUpBudget(budgets)
  const reset = full === undefined ? undefined : resetTime(full)
  const start = reset === undefined ? '' : `It starts again on ${reset}. `
  const whose = full?.isShared === true ? 'the budget of all keys' : 'this key’s budget'
  const wayOn = full?.owner === 'key' ? 'To go on now, raise the budget.' : `Your ${full?.owner ?? 'plan'} sets it: ask your administrator.`
  return { look: 'danger', title: `Calls answer 402: ${whose} is used up`, text: `${start}${wayOn}` }
}

/** The budget that stops the key. The key's own one counts first, because the person can raise it. */
export function usedUpBudget(budgets: readonly BudgetView[]): BudgetView | undefined {
  const full = budgets.filter(({ percent = 0, isAudit }) => percent >= FULL_PERCENT && !isAudit)
  return full.find(({ owner }) => owner === 'key') ?? full[0]
}

const PROBLEMS: Readonly<Record<string, string>> = {
  TooManyKeys: 'Your plan allows no more keys. Revoke one that is not used, or ask your administrator.',
  EmailNotVerified: 'Verify your email first. The key is then issued by itself.',
}

/** Known reasons in words for the person, others as the cluster tells them. */
export function problemWords(problem: KeyView['problem']): string {
  if (problem === undefined) return 'The cluster gives no reason. Ask your administrator.'
  return PROBLEMS[problem.reason] ?? sentence(problem.message === '' ? problem.reason : problem.message)
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}
