/** The keys and the plan of the fake dashboard: a small world in which gateways acknowledge changes when a test says so. */
import type { BudgetView, KeyForm, Keys, KeyView, NewKey, PlanView } from '../../dashboard/server/page-data/keys.ts'
import type { Refusal } from '../../dashboard/server/page-data/people.ts'

/** Value of each key that the fake makes. */
export const KEY_VALUE = 'sk-hg1w4ThisValueIsAnExampleAndOpensNothing0000000000000000000q8Zc'
const HINT = 'sk-hg1w4…q8Zc'
const GATEWAYS = 3
const OVERLAP = /"overlapSeconds":(\d+)/

export const PLAN: PlanView = {
  name: 'team',
  displayName: 'Team',
  most: 20,
  models: [
    { name: 'bge-m3', price: { input: '0.02', output: '0' } },
    { name: 'gpt-oss-120b', price: { input: '0.40', cachedInput: '0.10', output: '0.60' } },
    { name: 'llama-3.1-8b', price: { input: '0.06', cachedInput: '0.02', output: '0.09' } },
    { name: 'llama-3.3-70b', price: { input: '0.55', cachedInput: '0.14', output: '0.80' } },
    { name: 'mistral-small-24b', price: { input: '0.15', cachedInput: '0.04', output: '0.25' } },
    { name: 'qwen-2.5-coder-32b' },
  ],
  limits: [
    { limit: 'requestsPerMinute', ceiling: 120, default: 60 },
    { limit: 'tokensPerMinute', ceiling: 100_000, default: 40_000 },
    { limit: 'maxConcurrentRequests', ceiling: 8, default: 8 },
  ],
  budgets: [
    budget({ name: 'each', owner: 'plan', window: 'Day', amount: '5' }),
    budget({ name: 'all', owner: 'account', amount: '300', isShared: true }),
  ],
  ttl: undefined,
  currency: 'EUR',
}

export function budget(more: Partial<BudgetView>): BudgetView {
  return {
    ...{ name: 'own', owner: 'key', unit: 'Currency', window: 'Month', amount: '25', used: '18.4', percent: 73 },
    ...{ resetsAt: '2026-12-01T00:00:00Z', timeZone: 'UTC', isAudit: false, isShared: false },
    ...more,
  }
}

/** A key that works, with these differences. */
export function keyView(more: Partial<KeyView>): KeyView {
  return {
    ...{ id: 'k-1', name: 'checkout-bot production', hint: 'sk-hg1b7…Qm4T', state: 'Active', isManaged: false, wanted: 'Active' },
    models: ['llama-3.3-70b', 'llama-3.1-8b'],
    limits: [
      { limit: 'requestsPerMinute', value: 60, owner: 'key' },
      { limit: 'tokensPerMinute', value: 100_000, owner: 'plan', asked: 200_000 },
      { limit: 'maxConcurrentRequests', value: 8, owner: 'plan' },
    ],
    budgets: [budget({}), budget({ name: 'each', owner: 'plan', window: 'Day', amount: '5', used: '0.61', percent: 12 })],
    createdAt: '2026-08-04T10:00:00Z',
    lastUsedAt: '2026-11-20T08:00:00Z',
    programmed: { ready: GATEWAYS, total: GATEWAYS },
    ...more,
  }
}

/** One key of each state that a list can have. */
export const KEYS_OF_ALL_STATES: readonly KeyView[] = [
  keyView({}),
  keyView({
    id: 'k-2',
    name: 'docs-search',
    models: ['*'],
    expiresAt: '2099-06-01T00:00:00Z',
    budgets: [budget({ used: '43.78', amount: '50', percent: 87 })],
  }),
  keyView({ id: 'k-3', name: 'nightly-eval', state: 'BudgetUsedUp', budgets: [budget({ used: '20', amount: '20', percent: 100 })] }),
  keyView({ id: 'k-4', name: 'maya-laptop', state: 'Suspended', wanted: 'Suspended', budgets: [] }),
  keyView({ id: 'k-5', name: 'batch-summaries', state: 'Activating', programmed: { ready: 1, total: 3 }, lastUsedAt: undefined }),
  keyView({ id: 'k-6', name: 'old-eval', state: 'Expired', expiresAt: '2026-11-20T08:00:00Z' }),
  keyView({ id: 'k-7', name: 'too-many', state: 'NotAccepted', problem: { reason: 'TooManyKeys', message: 'no' }, programmed: undefined }),
  keyView({ id: 'k-8', name: 'being-replaced', formerValueUntil: '2099-11-25T12:03:00Z' }),
  keyView({ id: 'k-9', name: 'leaked', state: 'Revoked', wanted: 'Revoked' }),
]

type Answer = object | Refusal | undefined

export class FakeKeys {
  list: readonly KeyView[] = []
  plan: PlanView = PLAN
  /** Whether gateways wait with a change until `acknowledge`. */
  isHeld = false
  readonly #attempts = new Map<string, string>()

  reset(): void {
    Object.assign(this, { list: [], plan: PLAN, isHeld: false })
    this.#attempts.clear()
  }

  /** So many gateways have the newest change of every key. */
  acknowledge(ready = GATEWAYS): void {
    this.list = this.list.map((key) => settled({ ...key, programmed: { ready, total: GATEWAYS } }))
  }

  /** @returns undefined for a route that is not of keys */
  answer(route: string, body: string): Answer {
    const [method, path = ''] = route.split(' ')
    const [, , room, id, change] = path.split('/')
    if (room === 'plan') return this.plan
    if (room !== 'keys') return undefined
    if (id === undefined) return method === 'GET' ? this.#keys() : this.#create(JSON.parse(body) as KeyForm & { attempt: string })
    const key = this.list.find((one) => one.id === id)
    if (key === undefined) return refusal('not-found', 'There is nothing here.')
    return method === 'GET' ? key : this.#change(key, change ?? 'edit', body)
  }

  #keys(): Keys {
    return { keys: this.list, used: this.list.filter(({ wanted }) => wanted !== 'Revoked').length, most: 20 }
  }

  #create({ attempt, ...form }: KeyForm & { attempt: string }): NewKey | Refusal {
    const made = this.#attempts.get(attempt)
    if (made !== undefined) return refusal('conflict', 'Already created. Its value cannot be shown again.', { key: made })
    const id = `k-new-${this.#attempts.size}`
    this.#attempts.set(attempt, id)
    const key = this.#moved(
      {
        ...keyView({ id, hint: HINT, lastUsedAt: undefined }),
        ...fieldsOf(form),
        state: 'Activating',
        createdAt: new Date().toISOString(),
      },
      0,
    )
    this.list = [key, ...this.list]
    return { key, value: KEY_VALUE }
  }

  #change(key: KeyView, change: string, body: string): KeyView | NewKey {
    const changed = this.#moved({ ...key, ...changeOf(change, body) }, 0)
    this.list = this.list.map((one) => (one.id === key.id ? changed : one))
    return change === 'replace' ? { key: changed, value: KEY_VALUE } : changed
  }

  #moved(key: KeyView, ready: number): KeyView {
    return this.isHeld
      ? { ...key, programmed: { ready, total: GATEWAYS } }
      : settled({ ...key, programmed: { ready: GATEWAYS, total: GATEWAYS } })
  }
}

function fieldsOf({ name, models, expiresAt }: KeyForm): Pick<KeyView, 'name' | 'models' | 'expiresAt'> {
  return { name, models, expiresAt }
}

function changeOf(change: string, body: string): Partial<KeyView> {
  switch (change) {
    case 'suspend':
      return { wanted: 'Suspended', state: 'Suspending' }
    case 'resume':
      return { wanted: 'Active', state: 'Activating' }
    case 'revoke':
      return { wanted: 'Revoked', state: 'Revoking' }
    case 'replace':
      return { hint: HINT, formerValueUntil: OVERLAP.exec(body)?.[1] === '0' ? undefined : '2099-11-25T12:03:00Z' }
    case 'end-former':
      return { formerValueUntil: undefined }
    default:
      return fieldsOf(JSON.parse(body) as KeyForm)
  }
}

const SETTLED: Readonly<Partial<Record<KeyView['state'], KeyView['state']>>> = {
  Suspending: 'Suspended',
  Activating: 'Active',
  Revoking: 'Revoked',
}

/** The state after the last gateway. */
function settled(key: KeyView): KeyView {
  return key.programmed?.ready === GATEWAYS ? { ...key, state: SETTLED[key.state] ?? key.state } : key
}

function refusal(code: Refusal['error']['code'], message: string, fields: Readonly<Record<string, string>> = {}): Refusal {
  return { error: { code, message, fields, requestID: 'req_7' } }
}
