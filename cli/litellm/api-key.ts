/** Converts one LiteLLM key to the manifest of one ApiKey. Pure. */
import { LABEL_VALUE } from '#api/metadata.ts'
import { windowOf } from './budget-window.ts'
import { amountOf, type Amount, countOf } from './decimal.ts'
import type { LiteLLMKey } from './litellm-key.ts'

/** The part of a manifest that this file makes. */
export interface KeySpec {
  readonly displayName?: string
  readonly state?: 'Suspended'
  readonly models: readonly string[]
  readonly expirationTime?: string
  readonly limits?: Readonly<Record<string, number>>
  readonly budgets?: readonly object[]
  readonly source: { readonly type: 'Hash'; readonly hash: { readonly sha256: string; readonly hint?: string } }
}

/** One ApiKey. */
export interface KeyManifest {
  readonly apiVersion: 'headgate.dev/v1alpha1'
  readonly kind: 'ApiKey'
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly labels: Readonly<Record<string, string>>
    readonly annotations: Readonly<Record<string, string>>
  }
  readonly spec: KeySpec
}

/** Prefix of labels and annotations about the origin of an ApiKey. */
const ORIGIN = 'import.headgate.dev'
const MAX_DISPLAY_NAME = 63

/** A part of the spec, and warnings about it. */
interface Part<Fields> {
  readonly fields: Fields
  readonly warnings: readonly string[]
}

/** The parts of a spec from limits of LiteLLM. */
export type LimitParts = Part<Pick<KeySpec, 'state' | 'limits' | 'budgets'>>

const LIMITS = [
  ['rpm_limit', 'requestsPerMinute', 1_000_000_000],
  ['tpm_limit', 'tokensPerMinute', 1_000_000_000_000],
  ['max_parallel_requests', 'maxConcurrentRequests', 1_000_000],
] as const

/** How the import treats earlier spend. */
export interface BudgetOptions {
  /** Whether a budget that never resets gets only its rest. */
  readonly subtractSpend: boolean
}

/** @returns the field of an unreadable limit, if any: without the limit the key would be unlimited */
export function unusableNumber(key: LiteLLMKey): string | undefined {
  const count = LIMITS.find(([field]) => key[field] !== undefined && countOf(key[field]) === undefined)?.[0]
  return count ?? (key.max_budget !== undefined && amountOf(key.max_budget) === undefined ? 'max_budget' : undefined)
}

/** The caller must have refused unreadable numbers before. */
export function limitParts(key: LiteLLMKey, options: BudgetOptions): LimitParts {
  const warnings: string[] = []
  const limits = Object.fromEntries(
    LIMITS.flatMap(([field, name, max]) => {
      const limit = limitOf(key[field], field, max)
      warnings.push(...limit.warnings)
      return limit.fields === undefined ? [] : [[name, limit.fields] as const]
    }),
  )
  const budget = budgetPart(key, options)
  const refusesAll = LIMITS.filter(([field]) => key[field] !== undefined && countOf(key[field]) === 0).map(([field]) => field)
  const state = key.blocked || refusesAll.length > 0 ? ({ state: 'Suspended' } as const) : {}
  if (key.blocked) warnings.push('blocked in LiteLLM: the ApiKey is Suspended; set state: Active to let it work')
  for (const field of refusesAll) warnings.push(`${field} is 0, which lets no request through: the ApiKey is Suspended`)
  return {
    fields: { ...state, ...(Object.keys(limits).length > 0 && { limits }), ...budget.fields },
    warnings: [...warnings, ...budget.warnings],
  }
}

/** A limit of 0 has no field: the state of the key expresses it. */
function limitOf(text: string | undefined, field: string, max: number): Part<number | undefined> {
  if (text === undefined) return { fields: undefined, warnings: [] }
  const count = countOf(text) ?? 0
  if (count === 0) return { fields: undefined, warnings: [] }
  if (count > max) return { fields: max, warnings: [`${field} is above ${max}, the largest limit, and is lowered to it`] }
  return { fields: count, warnings: [] }
}

function budgetPart(key: LiteLLMKey, { subtractSpend }: BudgetOptions): Part<Pick<KeySpec, 'budgets'>> {
  if (key.max_budget === undefined) return { fields: {}, warnings: [] }
  const amount = amountOf(key.max_budget) ?? { text: '0.00' }
  const { window, note } = windowOf(key.budget_duration)
  const left = window === 'Lifetime' && subtractSpend ? amountLeft(amount, key.spend) : amount
  const budgets = [{ name: NAMES[window], amount: left.text, unit: 'Currency', window }]
  return {
    fields: { budgets },
    warnings: [...amountNotes(left), ...(note === undefined ? [] : [note]), ...spendNotes(key, window, subtractSpend)],
  }
}

const NAMES = { Day: 'day', Week: 'week', Month: 'month', Lifetime: 'lifetime' } as const

function amountNotes({ change }: Amount): readonly string[] {
  return change === undefined ? [] : [`max_budget cannot be written exactly and was ${change}`]
}

function spendNotes({ spend }: LiteLLMKey, window: string, subtractSpend: boolean): readonly string[] {
  const spent = spend === undefined ? undefined : amountOf(spend)
  if (spent === undefined || /^[0.]*$/.test(spent.text)) return []
  if (window !== 'Lifetime')
    return [`spend: ${spent.text} of this window were spent in LiteLLM; the budget starts at zero now, and again at the end of the window`]
  return subtractSpend
    ? [`spend: ${spent.text} were subtracted from the budget, which never resets`]
    : [`spend: ${spent.text} were spent in LiteLLM, and the budget starts at zero; --subtract-spend writes the rest`]
}

/** Computes in millionths: exact, whatever the amounts. */
function amountLeft(amount: Amount, spend: string | undefined): Amount {
  const spent = spend === undefined ? undefined : amountOf(spend)
  if (spent === undefined) return amount
  const left = millionths(amount.text) - millionths(spent.text)
  const text = String(left < 0n ? 0n : left).padStart(7, '0')
  return amountOf(`${text.slice(0, -6)}.${text.slice(-6)}`) ?? amount
}

function millionths(text: string): bigint {
  const [whole = '0', decimals = ''] = text.split('.')
  return BigInt(whole + decimals.padEnd(6, '0').slice(0, 6))
}

/** All parts of a manifest. */
export interface ManifestParts {
  readonly name: string
  readonly namespace: string
  readonly key: LiteLLMKey
  readonly sha256: string
  readonly hint: string | undefined
  readonly models: readonly string[]
  readonly limits: LimitParts['fields']
  readonly expirationTime: string | undefined
}

export function manifestOf({ name, namespace, key, sha256, hint, models, limits, expirationTime }: ManifestParts): KeyManifest {
  const displayName = key.key_alias === undefined ? undefined : Array.from(key.key_alias).slice(0, MAX_DISPLAY_NAME).join('')
  return {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'ApiKey',
    metadata: { name, namespace, labels: labelsOf(key), annotations: annotationsOf(key) },
    spec: {
      ...(displayName !== undefined && { displayName }),
      ...(limits.state && { state: limits.state }),
      models,
      ...(limits.limits && { limits: limits.limits }),
      ...(limits.budgets && { budgets: limits.budgets }),
      ...(expirationTime !== undefined && { expirationTime }),
      source: { type: 'Hash', hash: { sha256, ...(hint !== undefined && { hint }) } },
    },
  }
}

/** A label to select the keys of a team: `kubectl get apikeys -l import.headgate.dev/team-id=...` */
function labelsOf({ team_id: team }: LiteLLMKey): Record<string, string> {
  const isLabel = team !== undefined && team.length <= 63 && new RegExp(LABEL_VALUE).test(team)
  return { [`${ORIGIN}/from`]: 'litellm', ...(isLabel && { [`${ORIGIN}/team-id`]: team }) }
}

function annotationsOf({ key_alias: alias, team_id: team, user_id: user }: LiteLLMKey): Record<string, string> {
  const entries = { 'key-alias': alias, 'team-id': team, 'user-id': user }
  return Object.fromEntries(
    Object.entries(entries).flatMap(([name, text]) => (text === undefined ? [] : [[`${ORIGIN}/${name}`, text.slice(0, 1024)]])),
  )
}
