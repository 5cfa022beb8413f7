/** An account in use, for the pictures of the documents: keys, usage and ledger that agree with each other. Its days end today. */
import type { Movement } from '../../dashboard/server/page-data/billing.ts'
import type { BudgetView, KeyView } from '../../dashboard/server/page-data/keys.ts'
import type { Me } from '../../dashboard/server/page-data/people.ts'
import type { UsageRow } from '../../dashboard/server/page-data/usage.ts'
import type { FakeDashboard } from './fake-dashboard.ts'
import { budget, keyView, PLAN } from './fake-keys.ts'
import { billing, dayBefore } from './fake-money.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** What is kept by day. */
const DAYS = 35
const MICROS = 1_000_000
const PER_MILLION = 1_000_000

/** Prices in micro-units for a million tokens: input, from the cache, output. */
const MODELS = [
  { name: 'llama-3.3-70b', prices: [550_000, 140_000, 800_000] },
  { name: 'qwen-2.5-coder-32b', prices: [300_000, 80_000, 450_000] },
  { name: 'gpt-oss-120b', prices: [400_000, 100_000, 600_000] },
  { name: 'mistral-small-24b', prices: [150_000, 40_000, 250_000] },
  { name: 'llama-3.1-8b', prices: [60_000, 20_000, 90_000] },
  { name: 'bge-m3', prices: [20_000, 20_000, 0] },
] as const

interface Pictured {
  readonly id: string
  readonly name: string
  readonly hint: string
  /** Models by their place in `MODELS`; of a key with all of them, those that it calls. */
  readonly models: readonly number[]
  readonly hasAll?: boolean
  /** Input tokens of a working day, in thousands; 0 for a key without calls. */
  readonly pace: number
  /** Of its own, each month. */
  readonly budget: string
  /** Since the last call. Default: less than one. */
  readonly hours?: number
  readonly more?: Partial<KeyView>
}

const ago = (ms: number): string => new Date(Date.now() - ms).toISOString()
const PICTURED: readonly Pictured[] = [
  { id: 'k-1', name: 'checkout-bot production', hint: 'sk-hg1b7…Qm4T', models: [0, 4], pace: 1_050, budget: '25' },
  { id: 'k-2', name: 'docs-search', hint: 'sk-hg1Kd…9sVe', models: [0, 2, 5], hasAll: true, pace: 2_600, budget: '50' },
  {
    id: 'k-3',
    name: 'nightly-eval',
    hint: 'sk-hg12c…Lx0a',
    models: [1, 2, 3],
    pace: 1_500,
    budget: '',
    hours: 9,
    more: { state: 'BudgetUsedUp' },
  },
  { id: 'k-4', name: 'support-triage staging', hint: 'sk-hg1vT…c7Rw', models: [3, 4], pace: 1_500, budget: '15', hours: 3 },
  {
    ...{ id: 'k-5', name: 'ci-smoke-tests', hint: 'sk-hg1Zp…u2Nd', models: [4], pace: 420, budget: '5', hours: 26 },
    more: { expiresAt: new Date(Date.now() + 5 * DAY_MS - HOUR_MS).toISOString() },
  },
  {
    ...{ id: 'k-6', name: 'maya-laptop', hint: 'sk-hg1eW…Hj6B', models: [0, 1], hasAll: true, pace: 0, budget: '10' },
    more: { state: 'Suspended', wanted: 'Suspended', lastUsedAt: ago(40 * DAY_MS) },
  },
  {
    ...{ id: 'k-7', name: 'batch-summaries', hint: 'sk-hg18f…t3Yk', models: [0, 3], pace: 0, budget: '25' },
    more: { state: 'Activating', lastUsedAt: undefined, programmed: { ready: 1, total: 3 } },
  },
  {
    ...{ id: 'k-8', name: 'old-worker', hint: 'sk-hg1Rr…m0Xq', models: [4], pace: 0, budget: '5' },
    more: { state: 'Revoked', wanted: 'Revoked', lastUsedAt: ago(70 * DAY_MS) },
  },
]

/** Share of a working day, in percent: less on week-ends, and never twice the same. */
function share(day: string, key: number): number {
  const weekday = new Date(day).getUTCDay()
  const date = Number(day.slice(-2))
  return (weekday === 0 || weekday === 6 ? 30 : 85) + ((date * 13 + key * 29) % 41)
}

function rowOf({ id, name, pace }: Pictured, day: string, place: number, index: number): UsageRow {
  const { name: model = '', prices: [input, cached, output] = [0, 0, 0] } = MODELS[place] ?? {}
  const inputTokens = Math.floor((pace * 1000 * share(day, Number(id.slice(2)) + index)) / 100 / (index + 1))
  const cachedInputTokens = place === 5 ? 0 : Math.floor((inputTokens * 2) / 5)
  const outputTokens = place === 5 ? 0 : Math.floor(inputTokens / 6)
  const cost = (inputTokens - cachedInputTokens) * input + cachedInputTokens * cached + outputTokens * output
  const requests = Math.floor(inputTokens / 2_400)
  const rate = requests % 7
  return {
    ...{ day, model, key: id, keyName: name, requests, failed: requests % 3, refused: rate },
    ...{ refusals: { model: 0, rate, budget: 0, other: 0 }, inputTokens, cachedInputTokens, outputTokens },
    ...{ cost: decimal(Math.floor(cost / PER_MILLION)), estimated: 0 },
  }
}

function decimal(micros: number): string {
  const digits = String(Math.abs(micros)).padStart(7, '0')
  return `${micros < 0 ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`
}

/** Micro-units of the costs. The texts have all six decimals. */
function sumOf(rows: readonly UsageRow[]): number {
  return rows.reduce((sum, { cost }) => sum + Number(cost.replace('.', '')), 0)
}

function rowsOfAccount(): readonly UsageRow[] {
  const days = Array.from({ length: DAYS }, (_, index) => dayBefore(DAYS - 1 - index))
  const keys = PICTURED.filter(({ pace }) => pace > 0)
  return days.flatMap((day) => keys.flatMap((key) => key.models.map((place, index) => rowOf(key, day, place, index))))
}

const ofMonth = (rows: readonly UsageRow[]): readonly UsageRow[] => rows.filter(({ day }) => day.startsWith(dayBefore(0).slice(0, 7)))

function viewOf(
  { id, name, hint, models, hasAll = false, budget: amount, hours = 0.5, more = {} }: Pictured,
  rows: readonly UsageRow[],
): KeyView {
  const spent = sumOf(ofMonth(rows).filter(({ key }) => key === id))
  const limit = amount === '' ? String(Math.floor(spent / MICROS)) : amount // used up
  const resetsAt = `${nextMonth()}T00:00:00Z`
  const own = budget({ amount: limit, used: decimal(spent), percent: percentOf(spent, limit), resetsAt })
  const today = sumOf(rows.filter(({ day, key }) => key === id && day === dayBefore(0)))
  const each = { ...budget(EACH), used: decimal(today), percent: percentOf(today, EACH.amount) }
  return keyView({
    ...{ id, name, hint, models: hasAll ? ['*'] : models.map((place) => MODELS[place]?.name ?? ''), lastUsedAt: ago(hours * HOUR_MS) },
    budgets: [own, each, sharedBudget(rows)],
    ...more,
  })
}

/** Of each key, by the plan. */
const EACH = {
  ...({ name: 'each', owner: 'plan', window: 'Day', amount: '5', used: '0', percent: 0 } as const),
  resetsAt: `${dayBefore(-1)}T00:00:00Z`,
}

/** Of all keys together. */
function sharedBudget(rows: readonly UsageRow[]): BudgetView {
  const spent = sumOf(ofMonth(rows))
  const used = { used: decimal(spent), percent: percentOf(spent, '300'), resetsAt: `${nextMonth()}T00:00:00Z` }
  return budget({ name: 'all', owner: 'account', amount: '300', isShared: true, ...used })
}

function percentOf(micros: number, amount: string): number {
  return Math.floor((micros * 100) / Math.max(1, Math.round(Number(amount) * MICROS)))
}

function nextMonth(): string {
  const now = new Date()
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)).toISOString().slice(0, 10)
}

function movementsOf(rows: readonly UsageRow[]): readonly Omit<Movement, 'balance'>[] {
  const spend = [...Map.groupBy(rows, ({ day }) => day)].map(([time, ofDay]) => ({
    ...({ time, type: 'Spend', id: '', reference: '' } as const),
    amount: decimal(-sumOf(ofDay)),
  }))
  const credit = (days: number, type: Movement['type'], reference: string, amount: string): Omit<Movement, 'balance'> => ({
    ...{ time: `${dayBefore(days)}T10:24:00Z`, type, id: reference, reference, amount },
  })
  const credits = [
    credit(40, 'Grant', 'Welcome credit', '10.000000'),
    credit(39, 'TopUp', 'pi_3QxR7tKf', '100.000000'),
    credit(3, 'TopUp', 'pi_3QzB1mWd', '50.000000'),
  ]
  return [...spend, ...credits].toSorted((a, b) => (a.time < b.time ? -1 : 1))
}

/** The person whose account it is. */
const PERSON: Pick<Me['person'], 'name' | 'email'> = { name: 'Maya Okafor', email: 'maya@fernwood.example' }

/** Puts the account into a fake dashboard. */
export function arrangeAccount(server: FakeDashboard): void {
  server.reset()
  const rows = rowsOfAccount()
  const { me } = server
  server.me = {
    ...me,
    person: { ...me.person, ...PERSON },
    installation: { ...me.installation, apiURL: 'https://models.fernwood.example' },
  }
  server.keys.list = PICTURED.map((key) => viewOf(key, rows))
  server.keys.plan = {
    ...PLAN,
    budgets: [budget(EACH), sharedBudget(rows)],
    models: MODELS.map(({ name, prices: [input, cachedInput, output] }) => modelOf(name, input, cachedInput, output)),
  }
  server.money.rows = rows
  server.money.billing = billing({ spentThisMonth: decimal(sumOf(ofMonth(rows))) }, movementsOf(rows))
}

/** The same person before the first top-up. */
export function arrangeNewAccount(server: FakeDashboard): void {
  server.keys.list = []
  server.money.reset()
}

function modelOf(name: string, input: number, cachedInput: number, output: number): (typeof PLAN)['models'][number] {
  const price = { input: decimal(input), cachedInput: decimal(cachedInput), output: decimal(output) }
  return { name, price, contextTokens: name === 'bge-m3' ? 8192 : 131_072 }
}
