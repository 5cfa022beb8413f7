/** Rows of the table in `manifests.ts` about limits and budgets of an ApiKey. */
import { type Manifest, type ManifestRow, names, type Spec } from './manifest-row.ts'

const DAY = { name: 'day', amount: '5', unit: 'Currency', window: 'Day' }

function key(spec: Spec): Manifest {
  return { apiVersion: 'headgate.dev/v1alpha1', kind: 'ApiKey', metadata: { name: 'checkout-bot' }, spec: { models: ['*'], ...spec } }
}
const limited = (limits: unknown): Manifest => key({ limits })
const budgeted = (change: Spec): Manifest => key({ budgets: [{ ...DAY, ...change }] })

const goodLimits: readonly ManifestRow[] = [
  { name: 'one limit is enough', manifest: limited({ maxConcurrentRequests: 1 }) },
  {
    name: 'the largest limits',
    manifest: limited({ requestsPerMinute: 1e9, tokensPerMinute: 1e12, maxConcurrentRequests: 1e6 }),
  },
  {
    name: 'a budget blocks unless it says otherwise',
    manifest: key({ budgets: [DAY] }),
    spec: { state: 'Active', models: ['*'], budgets: [{ ...DAY, onExceeded: 'Block' }] },
  },
  {
    name: 'four budgets, every window, both units and both kinds of excess',
    manifest: key({
      limits: { requestsPerMinute: 60, tokensPerMinute: 40_000, maxConcurrentRequests: 8 },
      budgets: [
        { name: 'month', amount: '25.00', unit: 'Currency', window: 'Month', timeZone: 'Europe/Berlin', onExceeded: 'Block' },
        { name: 'week', amount: '0', unit: 'Currency', window: 'Week', timeZone: 'America/Argentina/Buenos_Aires' },
        { name: 'day', amount: '999999999.999999', unit: 'Currency', window: 'Day', timeZone: 'Etc/GMT+12', onExceeded: 'Audit' },
        { name: 'ever', amount: '999999999999999', unit: 'Tokens', window: 'Lifetime' },
      ],
      onStoreUnavailable: 'LocalShare',
    }),
  },
  { name: 'a time zone that only the operator can check', manifest: budgeted({ timeZone: 'Europe/Atlantis' }) },
  { name: 'no budgets', manifest: key({ budgets: [] }) },
  { name: 'a null limit is an absent one', manifest: limited({ requestsPerMinute: 5, tokensPerMinute: null }) },
]

const badLimits: readonly ManifestRow[] = [
  ...[{}, { requestsPerMinute: null }].map((limits) => ({
    name: `limits that limit nothing: ${JSON.stringify(limits)}`,
    manifest: limited(limits),
    refused: 'spec.limits',
    rule: 'spec.limits#some-limit',
  })),
  ...['requestsPerMinute', 'tokensPerMinute', 'maxConcurrentRequests'].flatMap((field) =>
    [0, -1, 1.5, 1e13, '60'].map((value) => ({
      name: `${field} of ${JSON.stringify(value)}`,
      manifest: limited({ [field]: value }),
      refused: `spec.limits.${field}`,
    })),
  ),
  { name: 'a limit per hour', manifest: limited({ requestsPerHour: 1, requestsPerMinute: 1 }), refused: 'spec.limits.requestsPerHour' },
  ...['NaN', '1e309', '-1', '+1', '1,5', '0x10', '1.', '.5', '01', ' 1', '1 ', '1.0000001', '1000000000', 'Infinity'].map((amount) => ({
    name: `${JSON.stringify(amount)} of money`,
    manifest: budgeted({ amount }),
    refused: 'spec.budgets[0].amount',
    rule: 'spec.budgets[]#amount-of-currency',
  })),
  ...['NaN', '1e309', '-1', '1.5', '0', '00', '1000000000000000'].map((amount) => ({
    name: `${JSON.stringify(amount)} tokens`,
    manifest: budgeted({ unit: 'Tokens', amount }),
    refused: 'spec.budgets[0].amount',
    rule: 'spec.budgets[]#amount-of-tokens',
  })),
  ...['', '1'.repeat(20), 25, null].map((amount) => ({
    name: `an amount of ${JSON.stringify(amount)}`,
    manifest: budgeted({ amount }),
    refused: 'spec.budgets[0].amount',
  })),
  { name: 'two budgets of one name', manifest: key({ budgets: [DAY, { ...DAY, window: 'Week' }] }), refused: 'spec.budgets[1]' },
  { name: 'five budgets', manifest: key({ budgets: names(5).map((name) => ({ ...DAY, name })) }), refused: 'spec.budgets' },
  ...['name', 'amount', 'unit', 'window'].map((field) => ({
    name: `a budget without ${field}`,
    manifest: budgeted({ [field]: undefined }),
    refused: `spec.budgets[0].${field}`,
  })),
  { name: 'a budget named in upper case', manifest: budgeted({ name: 'Day' }), refused: 'spec.budgets[0].name' },
  { name: 'a budget with a name of 33 characters', manifest: budgeted({ name: 'd'.repeat(33) }), refused: 'spec.budgets[0].name' },
  { name: 'an unknown unit', manifest: budgeted({ unit: 'Dollars' }), refused: 'spec.budgets[0].unit' },
  { name: 'an unknown window', manifest: budgeted({ window: 'Hour' }), refused: 'spec.budgets[0].window' },
  { name: 'an unknown consequence', manifest: budgeted({ onExceeded: 'Warn' }), refused: 'spec.budgets[0].onExceeded' },
  ...['+01:00', 'Europe/', '/Berlin', 'Europe Berlin', '', 'x'.repeat(65)].map((timeZone) => ({
    name: `the time zone ${JSON.stringify(timeZone.slice(0, 14))} (${timeZone.length})`,
    manifest: budgeted({ timeZone }),
    refused: 'spec.budgets[0].timeZone',
  })),
  {
    name: 'a time zone for a window that never restarts',
    manifest: budgeted({ window: 'Lifetime', timeZone: 'UTC' }),
    refused: 'spec.budgets[0].timeZone',
    rule: 'spec.budgets[]#no-zone-of-lifetime',
  },
  { name: 'an unknown policy for a lost Redis', manifest: key({ onStoreUnavailable: 'Open' }), refused: 'spec.onStoreUnavailable' },
]

const changedLimits: readonly ManifestRow[] = [
  { name: 'limits and budgets are removed', manifest: key({}), previous: key({ limits: { requestsPerMinute: 1 }, budgets: [DAY] }) },
  {
    name: 'a budget gets another amount, window and unit',
    manifest: budgeted({ amount: '7', window: 'Week', unit: 'Tokens' }),
    previous: budgeted({}),
  },
]

export const LIMIT_MANIFESTS: readonly ManifestRow[] = [...goodLimits, ...badLimits, ...changedLimits]
