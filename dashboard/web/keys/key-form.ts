/** The form of a key: from what is typed to what the server takes, and what the form says before. Pure. */
import type { BudgetWindow, KeyForm, KeyView, LimitName, Owner, PlanView } from '../../server/page-data/keys.ts'
import type { Check } from '../components/use-form.ts'
import { whole } from '../money.ts'
import { day, dayAndTime } from '../times.ts'
import { plainNumber } from '../typed-number.ts'
import { daysOf } from './limit-rows.ts'

/** The fields by name. The names are those of `KeyForm`, so that a refusal of the server lands at its field. */
export type KeyField = 'name' | 'models' | 'budget' | 'window' | 'requestsPerMinute' | 'tokensPerMinute' | 'expires' | 'expiresAt'
export type KeyValues = Readonly<Record<KeyField, string>>

/** Values of the field `expires`: `date` goes on with the field `expiresAt`, a day. */
export const EXPIRES = { never: 'never', inDays: ['30', '90'], date: 'date' } as const
const WINDOWS: readonly BudgetWindow[] = ['Day', 'Week', 'Month', 'Lifetime']
const ALL = '*'
const BETWEEN = '\n'
const MAX_NAME = 63
const AMOUNT = /^(0|[1-9]\d{0,8})(\.\d{1,6})?$/
const WHOLE = /^[1-9]\d*$/
const MOST: Readonly<Record<'requestsPerMinute' | 'tokensPerMinute', number>> = { requestsPerMinute: 1e9, tokensPerMinute: 1e12 }
const SECOND_MS = 1000
const DAY_MS = 86_400_000
/** Name of the one budget that the form sets. */
const OWN_BUDGET = 'own'

export const NEW_KEY: KeyValues = {
  ...{ name: '', models: ALL, budget: '', window: 'Month', requestsPerMinute: '', tokensPerMinute: '' },
  ...{ expires: EXPIRES.never, expiresAt: '' },
}

/** The present values of a key, for the form that edits them. */
export function valuesOf(key: KeyView): KeyValues {
  const budget = key.budgets.find(({ owner, name, isShared }) => owner === 'key' && name === OWN_BUDGET && !isShared)
  return {
    name: key.name,
    models: modelsText(key.models),
    budget: budget?.amount ?? '',
    window: budget?.window ?? NEW_KEY.window,
    requestsPerMinute: askedOf(key, 'requestsPerMinute'),
    tokensPerMinute: askedOf(key, 'tokensPerMinute'),
    expires: key.ownExpiresAt === undefined ? EXPIRES.never : EXPIRES.date,
    expiresAt: key.ownExpiresAt === undefined ? '' : key.ownExpiresAt.slice(0, '2026-11-24'.length),
  }
}

/** What the key itself asks for; '' where plan or account set the number. */
function askedOf({ limits }: KeyView, name: LimitName): string {
  const limit = limits.find((one) => one.limit === name)
  const asked = limit?.owner === 'key' ? limit.value : limit?.asked
  return asked === undefined ? '' : String(asked)
}

export function modelsText(models: readonly string[]): string {
  return models.includes(ALL) ? ALL : models.join(BETWEEN)
}

export function modelsIn(text: string): readonly string[] {
  return text.split(BETWEEN).filter((name) => name !== '')
}

/** @param former the key that is edited: an end that was not changed stays exact */
export function formOf(values: KeyValues, now: Date, former?: KeyView): KeyForm {
  const { name, models, budget, requestsPerMinute, tokensPerMinute } = values
  const window = WINDOWS.find((one) => one === values.window) ?? 'Month'
  const expiresAt = endOf(values, now, former)
  return {
    name: name.trim(),
    models: modelsIn(models),
    ...(budget.trim() !== '' && { budget: { amount: plainNumber(budget), window } }),
    ...(requestsPerMinute.trim() !== '' && { requestsPerMinute: Number(plainNumber(requestsPerMinute)) }),
    ...(tokensPerMinute.trim() !== '' && { tokensPerMinute: Number(plainNumber(tokensPerMinute)) }),
    ...(expiresAt !== undefined && { expiresAt }),
  }
}

/** RFC 3339. A chosen day counts to its end. @returns undefined for a key without an end */
export function endOf({ expires, expiresAt }: Pick<KeyValues, 'expires' | 'expiresAt'>, now: Date, former?: KeyView): string | undefined {
  if (expires === EXPIRES.never) return undefined
  if (expires !== EXPIRES.date) return rfc3339(new Date(now.getTime() + Number(expires) * DAY_MS))
  if (former?.ownExpiresAt?.startsWith(expiresAt) && expiresAt !== '') return former.ownExpiresAt
  return `${expiresAt}T23:59:59Z`
}

function rfc3339(time: Date): string {
  return `${time.toISOString().slice(0, '2026-11-24T12:03:00'.length)}Z`
}

export function keyChecks(now: () => Date): Partial<Record<KeyField, Check<KeyField>>> {
  return {
    name: nameError,
    models: (models) => (modelsIn(models).length === 0 ? 'Tick at least one model, or choose all of the plan.' : undefined),
    budget: budgetError,
    requestsPerMinute: (text) => rateError(text, MOST.requestsPerMinute),
    tokensPerMinute: (text) => rateError(text, MOST.tokensPerMinute),
    expiresAt: (_, values) => dateError(values, now()),
  }
}

function nameError(name: string): string | undefined {
  if (name.trim() === '') return 'Give the key a name.'
  return Array.from(name.trim()).length > MAX_NAME ? `Use at most ${MAX_NAME} characters.` : undefined
}

function budgetError(text: string): string | undefined {
  if (text.trim() === '') return undefined
  const amount = plainNumber(text)
  if (!AMOUNT.test(amount)) return 'Write an amount like 25.00.'
  return /[1-9]/.test(amount) ? undefined : 'Write an amount above 0, or nothing for no budget.'
}

function rateError(text: string, most: number): string | undefined {
  if (text.trim() === '') return undefined
  const number = plainNumber(text)
  if (!WHOLE.test(number)) return 'A whole number, 1 or more.'
  return Number(number) > most ? `At most ${whole(most)}.` : undefined
}

function dateError({ expires, expiresAt }: KeyValues, now: Date): string | undefined {
  if (expires !== EXPIRES.date) return undefined
  const end = Date.parse(`${expiresAt}T23:59:59Z`)
  if (Number.isNaN(end)) return 'Choose a day.'
  return end <= now.getTime() ? 'Choose a day in the future.' : undefined
}

/** A sentence about a field, with who sets the number. */
export interface FieldNote {
  readonly text: string
  readonly owner?: Owner
}

export type RateName = 'requestsPerMinute' | 'tokensPerMinute'

/** What holds where the field stays empty, and the most that the key may have. */
export function rateHint(limit: RateName, plan: PlanView): readonly FieldNote[] {
  const { default: usual, ceiling, shared, sharedOwner } = plan.limits.find((one) => one.limit === limit) ?? {}
  const empty = usual === undefined ? 'Empty: no limit of its own.' : `Empty: ${whole(usual)}.`
  const own: FieldNote = ceiling === undefined ? { text: empty } : { text: `${empty} Ceiling ${whole(ceiling)}`, owner: 'plan' }
  if (shared === undefined) return [own]
  return [own, { text: `All keys together ${whole(shared)}`, ...(sharedOwner && { owner: sharedOwner }) }]
}

/** For a number above the plan's ceiling: the key is accepted, and the ceiling holds. */
export function rateNotice(limit: RateName, text: string, plan: PlanView): FieldNote | undefined {
  const ceiling = plan.limits.find((one) => one.limit === limit)?.ceiling
  const asked = Number(plainNumber(text))
  if (ceiling === undefined || text.trim() === '' || !(asked > ceiling)) return undefined
  return { text: `Above the ceiling: ${whole(ceiling)} will hold.`, owner: 'plan' }
}

/** The first choice of `expires`: what a key without an end of its own gets. */
export function neverWords({ ttl }: Pick<PlanView, 'ttl'>): string {
  if (ttl?.default !== undefined) return `As the plan sets (${daysOf(ttl.default)})`
  return ttl?.ceiling === undefined ? 'Never' : `As long as the plan allows (${daysOf(ttl.ceiling)})`
}

/** When the key will end. */
export function expiryHint(values: KeyValues, plan: PlanView, now: Date): string {
  const end = dateError(values, now) === undefined ? endOf(values, now) : undefined
  const ceiling = plan.ttl?.ceiling
  const allowed = ceiling === undefined ? 'The plan sets no ceiling.' : `The plan allows ${daysOf(ceiling)}.`
  if (end === undefined) return allowed
  const when = values.expires === EXPIRES.date ? `At the end of ${day(new Date(end))}, UTC.` : `On ${dayAndTime(new Date(end))}.`
  return `${when} ${allowed}`
}

/** For an end behind the plan's: the plan's holds. @param createdAt when the key begins */
export function expiryNotice(
  values: KeyValues,
  plan: PlanView,
  { now, createdAt }: { readonly now: Date; readonly createdAt: Date },
): FieldNote | undefined {
  const ceiling = plan.ttl?.ceiling
  const end = dateError(values, now) === undefined ? endOf(values, now) : undefined
  if (ceiling === undefined || end === undefined) return undefined
  const last = createdAt.getTime() + ceiling * SECOND_MS
  return Date.parse(end) > last
    ? { text: `Behind what the plan allows: ${dayAndTime(new Date(last))} will hold.`, owner: 'plan' }
    : undefined
}
