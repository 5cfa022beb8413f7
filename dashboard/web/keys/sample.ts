/** A key and a plan, for tests. */
import type { KeyView, PlanView } from '../../server/page-data/keys.ts'

export const KEY: KeyView = {
  id: 'k-1',
  name: 'checkout-bot production',
  hint: 'sk-hg1b7…Qm4T',
  state: 'Active',
  wanted: 'Active',
  isManaged: false,
  models: ['llama-3.3-70b', 'llama-3.1-8b'],
  limits: [
    { limit: 'requestsPerMinute', value: 60, owner: 'key' },
    { limit: 'tokensPerMinute', value: 100_000, owner: 'plan', asked: 200_000 },
  ],
  budgets: [
    {
      ...{ name: 'own', owner: 'key', unit: 'Currency', window: 'Month', amount: '25', used: '18.4', percent: 73 },
      ...{ resetsAt: '2026-12-01T00:00:00Z', timeZone: 'UTC', isAudit: false, isShared: false },
    },
  ],
  createdAt: '2026-08-04T10:00:00Z',
  programmed: { ready: 3, total: 3 },
}

export const PLAN: PlanView = {
  name: 'team',
  displayName: 'Team',
  most: 20,
  models: [
    { name: 'bge-m3', price: { input: '0.02', output: '0' } },
    { name: 'llama-3.1-8b', price: { input: '0.06', cachedInput: '0.02', output: '0.09' } },
    { name: 'llama-3.3-70b', price: { input: '0.55', cachedInput: '0.14', output: '0.80' } },
  ],
  limits: [
    { limit: 'requestsPerMinute', ceiling: 120, default: 60 },
    { limit: 'tokensPerMinute', ceiling: 100_000, default: 40_000 },
    { limit: 'maxConcurrentRequests', shared: 8, sharedOwner: 'plan' },
  ],
  budgets: [],
  ttl: undefined,
  currency: 'EUR',
}
