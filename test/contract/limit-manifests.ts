/** Rows of the table in `manifests.ts` about limits and budgets of an ApiKey. */
import { key, type Manifest, type ManifestRow, names, refused, type Spec } from './manifest-row.ts'

const DAY = { name: 'day', amount: '5', unit: 'Currency', window: 'Day' }

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
        { name: 'week', amount: '0.000001', unit: 'Currency', window: 'Week', timeZone: 'America/Argentina/Buenos_Aires' },
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
  ...[{}, { requestsPerMinute: null }].map((limits) =>
    refused(`limits that limit nothing: ${JSON.stringify(limits)}`, 'spec.limits', limited(limits), 'spec.limits#some-limit'),
  ),
  ...['requestsPerMinute', 'tokensPerMinute', 'maxConcurrentRequests'].flatMap((field) =>
    [0, -1, 1.5, 1e13, '60'].map((value) =>
      refused(`${field} of ${JSON.stringify(value)}`, `spec.limits.${field}`, limited({ [field]: value })),
    ),
  ),
  refused('a limit per hour', 'spec.limits.requestsPerHour', limited({ requestsPerHour: 1, requestsPerMinute: 1 })),
  ...['NaN', '1e309', '-1', '+1', '1,5', '0x10', '1.', '.5', '01', ' 1', '1 ', '1.0000001', '1000000000', 'Infinity'].map((amount) =>
    refused(`${JSON.stringify(amount)} of money`, 'spec.budgets[0].amount', budgeted({ amount }), 'spec.budgets[]#amount-of-currency'),
  ),
  ...['NaN', '1e309', '-1', '1.5', '0', '00', '1000000000000000'].map((amount) =>
    refused(
      `${JSON.stringify(amount)} tokens`,
      'spec.budgets[0].amount',
      budgeted({ unit: 'Tokens', amount }),
      'spec.budgets[]#amount-of-tokens',
    ),
  ),
  ...['', '1'.repeat(20), 25, null].map((amount) =>
    refused(`an amount of ${JSON.stringify(amount)}`, 'spec.budgets[0].amount', budgeted({ amount })),
  ),
  ...['0', '0.00', '0.000000'].map((amount) =>
    refused(`${amount} of money`, 'spec.budgets[0].amount', budgeted({ amount, unit: 'Currency' }), 'spec.budgets[]#amount-above-zero'),
  ),
  refused('two budgets of one name', 'spec.budgets[1]', key({ budgets: [DAY, { ...DAY, window: 'Week' }] })),
  refused('five budgets', 'spec.budgets', key({ budgets: names(5).map((name) => ({ ...DAY, name })) })),
  ...['name', 'amount', 'unit', 'window'].map((field) =>
    refused(`a budget without ${field}`, `spec.budgets[0].${field}`, budgeted({ [field]: undefined })),
  ),
  refused('a budget named in upper case', 'spec.budgets[0].name', budgeted({ name: 'Day' })),
  refused('a budget with a name of 33 characters', 'spec.budgets[0].name', budgeted({ name: 'd'.repeat(33) })),
  refused('an unknown unit', 'spec.budgets[0].unit', budgeted({ unit: 'Dollars' })),
  refused('an unknown window', 'spec.budgets[0].window', budgeted({ window: 'Hour' })),
  refused('an unknown consequence', 'spec.budgets[0].onExceeded', budgeted({ onExceeded: 'Warn' })),
  ...['+01:00', 'Europe/', '/Berlin', 'Europe Berlin', '', 'x'.repeat(65)].map((timeZone) =>
    refused(
      `the time zone ${JSON.stringify(timeZone.slice(0, 14))} (${timeZone.length})`,
      'spec.budgets[0].timeZone',
      budgeted({ timeZone }),
    ),
  ),
  refused(
    'a time zone for a window that never restarts',
    'spec.budgets[0].timeZone',
    budgeted({ window: 'Lifetime', timeZone: 'UTC' }),
    'spec.budgets[]#no-zone-of-lifetime',
  ),
  refused('an unknown policy for a lost Redis', 'spec.onStoreUnavailable', key({ onStoreUnavailable: 'Open' })),
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
