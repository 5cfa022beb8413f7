/** The limits in force, with who sets each and why. Pure. */
import type { KeyView, LimitName, Owner, PlanView } from '../../server/page-data/keys.ts'
import { whole } from '../money.ts'
import { dayAndTime } from '../times.ts'
import { callableModels, isAllOfPlan } from './key-words.ts'

export interface LimitRow {
  readonly title: string
  readonly value: string
  /** undefined: nobody sets it. */
  readonly owner?: Owner
  readonly why: string
}

const NAMES: Readonly<Record<LimitName, string>> = {
  requestsPerMinute: 'Requests per minute',
  tokensPerMinute: 'Tokens per minute',
  maxConcurrentRequests: 'Calls at a time',
}
const LIMITS: readonly LimitName[] = ['requestsPerMinute', 'tokensPerMinute', 'maxConcurrentRequests']
const SECOND_MS = 1000
const DAY_SECONDS = 86_400
/** An end that the plan sets is this near to the creation and the plan's time. */
const NEAR_MS = 60 * SECOND_MS

/** @param plan undefined while it is not known */
export function limitRows(key: KeyView, plan: PlanView | undefined): readonly LimitRow[] {
  return [modelsRow(key, plan), ...LIMITS.map((limit) => rateRow(limit, key, plan)), expiryRow(key, plan)]
}

function modelsRow({ models }: KeyView, plan: PlanView | undefined): LimitRow {
  const title = 'Models'
  if (plan === undefined) return { title, value: models.join(', '), owner: 'key', why: '' }
  const names = callableModels(models, plan).map(({ name }) => name)
  const value = names.length === 0 ? 'None' : names.join(', ')
  if (isAllOfPlan(models)) return { title, value, owner: 'plan', why: 'All of the plan, and those that join it later' }
  const missing = models.length - names.length
  if (missing <= 0) return { title, value, owner: 'key', why: models.length === 1 ? 'It is in the plan' : 'All are in the plan' }
  return { title, value, owner: 'key', why: `This key asks for ${models.join(', ')}; the plan has fewer by these names` }
}

function rateRow(limit: LimitName, key: KeyView, plan: PlanView | undefined): LimitRow {
  const title = NAMES[limit]
  const own = key.limits.find((one) => one.limit === limit)
  const ofPlan = plan?.limits.find((one) => one.limit === limit)
  if (own === undefined) return { title, ...sharedLimit(plan, ofPlan) }
  const beside = ofPlan?.shared === undefined ? '' : `all keys together have ${whole(ofPlan.shared)}`
  const reason = plan === undefined && own.owner === 'key' ? '' : reasonOf(own, ofPlan)
  return { title, value: whole(own.value), owner: own.owner, why: [reason, beside].filter(Boolean).join('; ') }
}

/** The limit of a key that has none of its own. */
function sharedLimit(plan: PlanView | undefined, ofPlan: PlanView['limits'][number] | undefined): Omit<LimitRow, 'title'> {
  if (plan === undefined) return { value: 'Not known', why: '' }
  const { shared, sharedOwner } = ofPlan ?? {}
  if (shared === undefined) return { value: 'Not limited', why: 'Neither key nor plan nor account sets one' }
  return { value: whole(shared), ...(sharedOwner && { owner: sharedOwner }), why: 'For all keys together' }
}

function reasonOf({ owner, value, asked }: KeyView['limits'][number], ofPlan: PlanView['limits'][number] | undefined): string {
  if (asked !== undefined) return `This key asks for ${whole(asked)}; the ${owner}’s ceiling is ${whole(value)}`
  if (owner !== 'key') return 'Not set on this key'
  const { default: usual, ceiling } = ofPlan ?? {}
  if (ceiling === undefined) return usual === undefined ? 'The plan sets none' : `Plan: ${whole(usual)} if not set`
  return usual === undefined || usual === ceiling
    ? `Plan: at most ${whole(ceiling)}`
    : `Plan: ${whole(usual)} if not set, at most ${whole(ceiling)}`
}

function expiryRow({ expiresAt, createdAt }: KeyView, plan: PlanView | undefined): LimitRow {
  const title = 'Expires'
  const { default: usual, ceiling } = plan?.ttl ?? {}
  const allowed = ceiling === undefined ? 'The plan sets no ceiling' : `The plan allows ${daysOf(ceiling)}`
  const why = plan === undefined ? '' : allowed
  if (expiresAt === undefined) return { title, value: 'Never', owner: 'key', why }
  const isOfPlan = [usual, ceiling].some(
    (seconds) => seconds !== undefined && Math.abs(Date.parse(createdAt) + seconds * SECOND_MS - Date.parse(expiresAt)) <= NEAR_MS,
  )
  return { title, value: dayAndTime(new Date(expiresAt)), owner: isOfPlan ? 'plan' : 'key', why }
}

/** `365 days`, `12 h` */
export function daysOf(seconds: number): string {
  const days = seconds / DAY_SECONDS
  if (days >= 1) return `${whole(Math.floor(days))} ${Math.floor(days) === 1 ? 'day' : 'days'}`
  return `${Math.max(1, Math.round(seconds / 3600))} h`
}
