/** Rows of the table in `manifests.ts` about Plans, Accounts, and the account of an ApiKey. */
import { key, type Manifest, type ManifestRow, names, refused, type Spec } from './manifest-row.ts'

const GROUP = 'headgate.dev/v1alpha1'
const DAY = { name: 'day', amount: '5', unit: 'Currency', window: 'Day' }
const BUDGET_PLACES = ['perKey', 'perAccount'] as const

const plan = (spec: Spec): Manifest => ({ apiVersion: GROUP, kind: 'Plan', metadata: { name: 'pro' }, spec: { models: ['*'], ...spec } })
const account = (spec: Spec): Manifest => ({
  apiVersion: GROUP,
  kind: 'Account',
  metadata: { name: 'acme' },
  spec: { planRef: { name: 'pro' }, ...spec },
})

const good: readonly ManifestRow[] = [
  { name: 'a plan of models alone', manifest: plan({}), spec: { models: ['*'], maxKeys: 100 } },
  {
    name: 'a plan with every field',
    manifest: plan({
      displayName: 'Pro',
      models: ['llama', 'qwen-*'],
      perKey: {
        limits: { default: { requestsPerMinute: 60 }, ceiling: { requestsPerMinute: 120, maxConcurrentRequests: 8 } },
        ttlSeconds: { default: 60, ceiling: 315_360_000 },
        budgets: [DAY],
      },
      perAccount: { limits: { tokensPerMinute: 1 }, budgets: [DAY] },
      maxKeys: 100_000,
    }),
  },
  {
    name: 'an account on a plan alone',
    manifest: account({}),
    spec: { planRef: { name: 'pro' }, state: 'Active', billing: 'Unmetered' },
  },
  {
    name: 'an account with every field',
    manifest: account({
      displayName: 'ACME',
      owner: { email: 'team@acme.example', emailVerification: 'Pending' },
      state: 'Suspended',
      billing: 'Prepaid',
      namespaces: { matchLabels: { team: 'a' }, matchExpressions: [{ key: 'stage', operator: 'In', values: ['prod'] }] },
      limits: { requestsPerMinute: 1 },
      budgets: [DAY],
    }),
  },
  { name: 'a key of an account', manifest: key({ accountRef: { name: 'acme' } }) },
  { name: 'a key whose account stays', manifest: key({ accountRef: { name: 'acme' } }), previous: key({ accountRef: { name: 'acme' } }) },
]

const badPlans: readonly ManifestRow[] = [
  refused('a plan without models, which must not open all of them', 'spec.models', plan({ models: undefined })),
  refused('a plan of 257 models', 'spec.models', plan({ models: names(257) })),
  refused(
    'a plan of long names',
    'spec.models',
    plan({ models: names(200).map((name) => name.padEnd(60, 'x')) }),
    'spec.models#models-total',
  ),
  ...[0, 100_001, 1.5].map((maxKeys) => refused(`maxKeys of ${maxKeys}`, 'spec.maxKeys', plan({ maxKeys }))),
  refused('a ttl below a minute', 'spec.perKey.ttlSeconds.default', plan({ perKey: { ttlSeconds: { default: 59 } } })),
  refused(
    'a default ttl above its ceiling',
    'spec.perKey.ttlSeconds.default',
    plan({ perKey: { ttlSeconds: { default: 3600, ceiling: 60 } } }),
    'spec.perKey.ttlSeconds#default-below-ceiling',
  ),
  ...(['default', 'ceiling'] as const).map((which) =>
    refused(
      `a ${which} that limits nothing`,
      `spec.perKey.limits.${which}`,
      plan({ perKey: { limits: { [which]: {} } } }),
      `spec.perKey.limits.${which}#some-limit`,
    ),
  ),
  refused(
    'shared limits that limit nothing',
    'spec.perAccount.limits',
    plan({ perAccount: { limits: {} } }),
    'spec.perAccount.limits#some-limit',
  ),
  ...BUDGET_PLACES.flatMap((place) => badBudgets(`spec.${place}.budgets`, (budgets) => plan({ [place]: { budgets } }))),
]

const badAccounts: readonly ManifestRow[] = [
  refused('an account without a plan', 'spec.planRef', account({ planRef: undefined })),
  refused('a state of keys', 'spec.state', account({ state: 'Revoked' })),
  refused('an address without a domain', 'spec.owner.email', account({ owner: { email: 'acme' } })),
  refused('an address of 255 characters', 'spec.owner.email', account({ owner: { email: `${'a'.repeat(251)}@b.c` } })),
  refused('limits of an account that limit nothing', 'spec.limits', account({ limits: {} }), 'spec.limits#some-limit'),
  ...badBudgets('spec.budgets', (budgets) => account({ budgets })),
  refused(
    'an empty selector, which would admit every namespace',
    'spec.namespaces',
    account({ namespaces: {} }),
    'spec.namespaces#selector-not-empty',
  ),
  refused(
    'a malformed label of namespaces',
    'spec.namespaces.matchLabels',
    account({ namespaces: { matchLabels: { 'a b': 'c' } } }),
    'spec.namespaces.matchLabels#label-keys',
  ),
  refused(
    'a term of namespaces without values',
    'spec.namespaces.matchExpressions[0].values',
    account({ namespaces: { matchExpressions: [{ key: 'a', operator: 'In' }] } }),
    'spec.namespaces.matchExpressions[]#values-with-in',
  ),
]

const badKeys: readonly ManifestRow[] = [
  refused('an account with a name in upper case', 'spec.accountRef.name', key({ accountRef: { name: 'ACME' } })),
  ...[{ name: 'other' }, undefined].map((accountRef): ManifestRow => ({
    name: `the account becomes ${accountRef?.name ?? 'none'}`,
    manifest: key({ accountRef }),
    previous: key({ accountRef: { name: 'acme' } }),
    refused: 'spec.accountRef',
    rule: 'spec#account-immutable',
  })),
  {
    name: 'a key gets an account later',
    manifest: key({ accountRef: { name: 'acme' } }),
    previous: key({}),
    refused: 'spec.accountRef',
    rule: 'spec#account-immutable',
  },
]

function badBudgets(place: string, manifest: (budgets: readonly unknown[]) => Manifest): readonly ManifestRow[] {
  const one = (what: string, field: string, change: Spec, rule: string): ManifestRow =>
    refused(`${what} in ${place}`, `${place}[0].${field}`, manifest([{ ...DAY, ...change }]), `${place}[]#${rule}`)
  return [
    one('money with an exponent', 'amount', { amount: '1e3' }, 'amount-of-currency'),
    one('no money', 'amount', { unit: 'Currency', amount: '0.0' }, 'amount-above-zero'),
    one('half a token', 'amount', { unit: 'Tokens', amount: '1.5' }, 'amount-of-tokens'),
    one('a zone of a lifetime', 'timeZone', { window: 'Lifetime', timeZone: 'UTC' }, 'no-zone-of-lifetime'),
  ]
}

export const ACCOUNT_MANIFESTS: readonly ManifestRow[] = [...good, ...badPlans, ...badAccounts, ...badKeys]
