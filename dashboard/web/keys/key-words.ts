/** What the pages say about a key in a few words. Pure. */
import type { KeyView, LimitName, PlanView } from '../../server/page-data/keys.ts'
import { day, shortDay } from '../times.ts'
import { whole } from '../money.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Younger uses are told by the hour, older ones by the day. */
const HOURS_SHOWN = 12

/** Exact to the hour: `Within the hour`, `3 h ago`, `Yesterday`, `21 Nov`, `Never used`. */
export function lastUsedWords(lastUsedAt: string | undefined, now: Date): string {
  if (lastUsedAt === undefined) return 'Never used'
  const time = new Date(lastUsedAt)
  const hours = Math.max(0, Math.floor((now.getTime() - time.getTime()) / HOUR_MS))
  if (hours < HOURS_SHOWN) return hours === 0 ? 'Within the hour' : `${hours} h ago`
  const days = Math.floor(now.getTime() / DAY_MS) - Math.floor(time.getTime() / DAY_MS)
  if (days <= 1) return days === 0 ? `${hours} h ago` : 'Yesterday'
  return time.getUTCFullYear() === now.getUTCFullYear() ? shortDay(time) : day(time)
}

/** `Last used 21 Nov`, `Last used within the hour`, `Never used`. */
export function lastUsedFact(lastUsedAt: string | undefined, now: Date): string {
  const words = lastUsedWords(lastUsedAt, now)
  return lastUsedAt === undefined ? words : `Last used ${words.charAt(0).toLowerCase()}${words.slice(1)}`
}

export function expiryWords(expiresAt: string | undefined): string {
  return expiresAt === undefined ? 'Never' : day(new Date(expiresAt))
}

/** `All 6 of the plan`, `2 models`, the name of a single one. */
export function modelsWords({ models }: Pick<KeyView, 'models'>, plan: PlanView | undefined): string {
  const [first, ...others] = models
  if (isAllOfPlan(models)) return plan === undefined ? 'All of the plan' : `All ${plan.models.length} of the plan`
  return others.length === 0 ? (first ?? 'None') : `${models.length} models`
}

export function isAllOfPlan(models: readonly string[]): boolean {
  return models.includes('*')
}

const SHORT_NAMES: Readonly<Record<LimitName, string>> = {
  requestsPerMinute: 'RPM',
  tokensPerMinute: 'TPM',
  maxConcurrentRequests: 'at a time',
}
const THOUSAND = 1000

/** `60 RPM`, `100k TPM`: for a narrow column. */
export function shortLimit(limit: LimitName, value: number): string {
  const isShort = value >= 10 * THOUSAND && value % THOUSAND === 0
  return `${isShort ? `${whole(value / THOUSAND)}k` : whole(value)} ${SHORT_NAMES[limit]}`
}

/** Models of the plan that the key may call, by name. Entries of an allow-list may have a `*` at one end. */
export function callableModels(models: readonly string[], plan: PlanView): PlanView['models'] {
  return plan.models.filter(({ name }) => models.some((entry) => admits(entry, name)))
}

function admits(entry: string, name: string): boolean {
  if (entry.endsWith('*')) return name.startsWith(entry.slice(0, -1))
  return entry.startsWith('*') ? name.endsWith(entry.slice(1)) : entry === name
}
