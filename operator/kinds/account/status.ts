/** Derives the status of an Account. Pure. */
import { ACCOUNT_CONDITIONS, type AccountCondition } from '#api/account-conditions.ts'
import type { AccountStatus } from '#api/account.ts'
import { conditionList, findCondition } from '#api/condition-list.ts'
import { budgetsWithoutZone } from '#api/key-policy.ts'
import { rfc3339 } from '#contract/values/rfc3339.ts'
import { type OwnedBudget, sharedPolicy, type SubjectPolicy } from '#policy/effective.ts'
import { uidOf } from '#kube/port.ts'
import { beginsBooks, REOPEN_ANNOTATION } from '../../accounts/claim.ts'
import { programmedCount, programmedOf } from '../../accounts/record-state.ts'
import { effectiveStatus } from '../effective-status.ts'
import { exhaustedBudgets, type ShownStatus, untilWhen, usageStatus } from '../usage-status.ts'
import { balanceStatus, isExhausted, type ShownBalance } from './balance.ts'
import type { ObservedAccount } from './observed.ts'

type ConditionFor<Type extends AccountCondition['type']> = Extract<AccountCondition, { type: Type }>

export function statusOf(observed: ObservedAccount): AccountStatus {
  const { account, record, keyCount, activeKeyCount, now } = observed
  const generation = account.metadata.generation ?? 0
  const counts = programmedCount(record) ?? account.status?.programmed
  const policy = policyOf(observed)
  const effective = policy && effectiveStatus(policy)
  return {
    observedGeneration: generation,
    keyCount,
    activeKeyCount,
    ...(effective && { effective }),
    ...shownUsage(observed),
    ...shownBalance(observed),
    ...(counts && { programmed: counts }),
    conditions: conditionList(ACCOUNT_CONDITIONS, conditionsOf(observed), { previous: account.status?.conditions, generation, nowMs: now }),
  }
}

/** What all keys of the account share; undefined for an account that is not accepted. */
export function policyOf({ former, plan }: Pick<ObservedAccount, 'former' | 'plan'>): SubjectPolicy | undefined {
  return former && sharedPolicy(former, plan)
}

function shownUsage(observed: ObservedAccount): ShownStatus {
  return usageStatus(observed.account.status, policyOf(observed)?.budgets ?? [], observed.usage)
}

/** Only the owner of the books has their balance. */
function shownBalance(observed: ObservedAccount): ShownBalance {
  return balanceStatus(observed, observed.claim === 'Owned' ? observed.balance : undefined)
}

function conditionsOf(observed: ObservedAccount): AccountCondition[] {
  const accepted: ConditionFor<'Accepted'> = { type: 'Accepted', ...acceptedOf(observed) }
  const programmed: ConditionFor<'Programmed'> = { type: 'Programmed', ...programmedOf(observed.record, 'account') }
  const exhausted = exhaustedOf(observed)
  const balance = balanceExhausted(observed)
  const list: AccountCondition[] = [readyOf(observed, { accepted, programmed, exhausted: balance ?? exhausted }), accepted, programmed]
  for (const condition of [balance, exhausted, keyLimit(observed), spendHeldBack(observed), spendUncertain(observed)])
    if (condition) list.push(condition)
  return list
}

/** The annotation works as long as it is there, so a later loss of books would not be noticed. */
const BEGUN = `The manifest is applied, and the annotation ${REOPEN_ANNOTATION} has done its work. Remove it: while it is there, damage to the books is ignored.`

type Accepted = Omit<ConditionFor<'Accepted'>, 'type'>

function acceptedOf(observed: ObservedAccount): Accepted {
  const { account, claim, book } = observed
  const owner = book?.owner ?? ''
  switch (claim) {
    case 'NameUsed':
      return {
        reason: 'NameUsed',
        message: `The name belongs to the Account with uid ${owner}, which was deleted, and so does its spend. To continue it, set the annotation ${REOPEN_ANNOTATION}: ${owner}. Otherwise choose another name.`,
      }
    case 'Missing':
      return {
        reason: 'BooksMissing',
        message: `The books of the account are gone, so its spend is unknown. Restore the Secrets hg-balances-*, or set the annotation ${REOPEN_ANNOTATION}: new-${uidOf(account)} to begin at zero.`,
      }
    case 'Damaged':
      return {
        reason: 'BooksDamaged',
        message: `A part of the books was damaged or lost, so the spend or the Credits of the account may be incomplete. Restore the Secrets hg-balances-* and hg-credits-*, or set the annotation ${REOPEN_ANNOTATION}: new-${uidOf(account)} to go on with what is left.`,
      }
    case 'Unreadable':
      return { reason: 'BooksUnreadable', message: 'A newer version of Headgate wrote the books of the account. Update the operator.' }
    default:
      return (
        manifestRefused(observed) ??
        opening(observed) ?? { reason: 'Accepted', message: beginsBooks(account) ? BEGUN : 'The manifest is applied.' }
      )
  }
}

function manifestRefused({ account, planSpec, former }: ObservedAccount): Accepted | undefined {
  const { planRef, budgets } = account.spec
  if (planSpec === undefined) {
    const effect =
      (former?.plan ?? null) === null ? 'Until then its keys answer 401.' : 'Until then its former plan holds, and no new key is issued.'
    return { reason: 'PlanNotFound', message: `There is no Plan ${planRef.name}. ${effect}` }
  }
  const [budget] = budgetsWithoutZone({ budgets })
  if (budget === undefined) return undefined
  const message = `spec.budgets[${budget.name}].timeZone is ${budget.timeZone ?? ''}, and there is no such time zone. Write an IANA name such as Europe/Berlin. Until then the former budgets hold.`
  return { reason: 'InvalidTimeZone', message }
}

function opening({ claim, isMarked, bookRefusal }: ObservedAccount): Accepted | undefined {
  if (claim === 'Owned' && isMarked) return undefined
  const why = bookRefusal === undefined ? '' : ` They cannot be written (${bookRefusal}); the operator tries again by itself.`
  return { reason: 'Pending', message: `The books of the account are being opened.${why}` }
}

interface Others {
  readonly accepted: ConditionFor<'Accepted'>
  readonly programmed: ConditionFor<'Programmed'>
  readonly exhausted: ConditionFor<'BudgetExhausted' | 'BalanceExhausted'> | undefined
}

/** Reasons of Ready that imply that every gateway had the account. */
const WORKED: ReadonlySet<string | undefined> = new Set(['Ready', 'BudgetExhausted', 'BalanceExhausted'])

/** Ready does not flap: an account that held on every gateway stays Ready while an edit is on its way. */
function readyOf({ account }: ObservedAccount, { accepted, programmed, exhausted }: Others): ConditionFor<'Ready'> {
  if (accepted.reason !== 'Accepted') return { type: 'Ready', reason: 'NotAccepted', message: accepted.message }
  if (account.spec.state === 'Suspended')
    return { type: 'Ready', reason: 'Suspended', message: 'spec.state is Suspended. Set it to Active to let the same keys work again.' }
  const worked = WORKED.has(findCondition(account.status?.conditions, 'Ready')?.reason)
  if (programmed.reason !== 'Programmed' && !worked) return { type: 'Ready', reason: 'NotProgrammed', message: programmed.message }
  if (exhausted) return { type: 'Ready', reason: exhausted.reason, message: exhausted.message }
  return { type: 'Ready', reason: 'Ready', message: 'The account holds on every gateway.' }
}

/** Events repeat the message, so it has no amount of the account. */
function balanceExhausted(observed: ObservedAccount): ConditionFor<'BalanceExhausted'> | undefined {
  if (!isExhausted(observed, shownBalance(observed))) return undefined
  const message = 'Less than 0.01 is left of the balance. At 0 the keys of the account answer 402, until a Credit is booked.'
  return { type: 'BalanceExhausted', reason: 'BalanceExhausted', message }
}

function exhaustedOf(observed: ObservedAccount): ConditionFor<'BudgetExhausted'> | undefined {
  const budgets: readonly OwnedBudget[] = policyOf(observed)?.budgets ?? []
  const exhausted = exhaustedBudgets(budgets, shownUsage(observed))
  if (exhausted.length === 0) return undefined
  const sentences = exhausted.map((budget) => `Budget ${budget.name} is used up: requests answer 402 ${untilWhen(budget)}.`)
  return { type: 'BudgetExhausted', reason: 'BudgetExhausted', message: sentences.join(' ') }
}

function keyLimit({ planSpec, activeKeyCount }: ObservedAccount): ConditionFor<'KeyLimitReached'> | undefined {
  if (planSpec === undefined || activeKeyCount < planSpec.maxKeys) return undefined
  const message = `The account has ${activeKeyCount} keys, and its plan allows ${planSpec.maxKeys}. Revoke keys that are not used.`
  return { type: 'KeyLimitReached', reason: 'KeyLimitReached', message }
}

function spendHeldBack({ heldBack, isBalanceDoubted }: ObservedAccount): ConditionFor<'SpendHeldBack'> | undefined {
  const sentences = [
    ...heldBack.map(
      (name) => `Redis counts more spend for budget ${name} than calls can have caused. Give the budget another name: it starts at zero.`,
    ),
    ...(isBalanceDoubted ? [BALANCE_DOUBTED] : []),
  ]
  if (sentences.length === 0) return undefined
  const message = `${sentences.join(' ')} First find who can write to Redis. The operator does not make the count durable.`
  return { type: 'SpendHeldBack', reason: 'SpendHeldBack', message }
}

/** Events repeat the message, so it has no amount of the account. */
const BALANCE_DOUBTED =
  'Redis counts more spend for the account than its Credits can pay. If the account was Unmetered before, give it a Credit of type Grant for its spend; else a Credit of type Adjustment lets it spend again.'

function spendUncertain({ spendLoss }: ObservedAccount): ConditionFor<'SpendUncertain'> | undefined {
  if (spendLoss === undefined) return undefined
  const period = `${rfc3339(spendLoss.fromMs)} and ${rfc3339(spendLoss.toMs)}`
  const message = `Redis lost the spend between ${period}. The operator restored it from the last checkpoint and from the memory of the gateway pods.`
  return { type: 'SpendUncertain', reason: 'SpendUncertain', message }
}
