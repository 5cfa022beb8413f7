/** Rows of the table in `manifests.ts` about Credits, and the billing of an Account. */
import { type Manifest, type ManifestRow, refused, type Spec } from './manifest-row.ts'

const GROUP = 'headgate.dev/v1alpha1'
const NAME = 'stripe-3b5d1c0f'
const SPEC = { accountRef: { name: 'acme' }, amount: '25.00', type: 'TopUp' }

const credit = (spec: Spec = {}): Manifest => ({
  apiVersion: GROUP,
  kind: 'Credit',
  metadata: { name: NAME },
  spec: { ...SPEC, ...spec },
})
const account = (spec: Spec): Manifest => ({
  apiVersion: GROUP,
  kind: 'Account',
  metadata: { name: 'acme' },
  spec: { planRef: { name: 'pro' }, ...spec },
})

const AMOUNTS = ['1', '0.000001', '-0.000001', '999999999.999999', '-999999999.999999', '100', '10.10']
const TYPES = ['TopUp', 'Grant', 'Refund', 'Dispute', 'Adjustment']
const FULL = { reference: 'pi_3Nk', time: '2026-11-01T00:00:00Z' }

const good: readonly ManifestRow[] = [
  { name: 'a top-up, without any default', manifest: credit(), spec: SPEC },
  {
    name: 'a credit with every field',
    manifest: credit({ accountRef: { name: 'acme', uid: '6f1c1f8e-0b0b-4a53-9d8e-0c7a3f1f2b11' }, ...FULL, reference: '🙂'.repeat(128) }),
  },
  ...AMOUNTS.map((amount) => ({ name: `an amount of ${amount}`, manifest: credit({ amount }) })),
  ...TYPES.map((type) => ({ name: `a credit of type ${type}`, manifest: credit({ type }) })),
  { name: 'a credit that is applied again', manifest: credit(FULL), previous: credit(FULL) },
  {
    name: 'a credit whose time is written in another zone',
    manifest: credit({ time: '2026-11-01T01:00:00+01:00' }),
    previous: credit({ time: '2026-11-01T00:00:00Z' }),
  },
  { name: 'a prepaid account', manifest: account({ billing: 'Prepaid' }) },
  { name: 'an account that becomes prepaid', manifest: account({ billing: 'Prepaid' }), previous: account({}) },
]

const NO_AMOUNTS = ['+1', '-', '--1', '1e3', 'NaN', '.5', '1.', '01', '-01', '1,5', ' 1', '1000000000', '1.0000001', '$5']

const badAmounts: readonly ManifestRow[] = [
  ...NO_AMOUNTS.map((amount) =>
    refused(`an amount of ${JSON.stringify(amount)}`, 'spec.amount', credit({ amount }), 'spec.amount#signed-amount'),
  ),
  ...['0', '-0', '0.00', '-0.000000'].map((amount) =>
    refused(`an amount of ${amount}, which would change nothing`, 'spec.amount', credit({ amount }), 'spec.amount#amount-not-zero'),
  ),
  refused('an amount as a number', 'spec.amount', credit({ amount: 25 })),
  refused('an amount of 18 characters', 'spec.amount', credit({ amount: '-999999999.9999999' })),
  refused('an empty amount', 'spec.amount', credit({ amount: '' })),
  refused('a credit without an amount', 'spec.amount', credit({ amount: undefined })),
]

const badFields: readonly ManifestRow[] = [
  refused('a credit without an account', 'spec.accountRef', credit({ accountRef: undefined })),
  refused('a credit for a name in upper case', 'spec.accountRef.name', credit({ accountRef: { name: 'ACME' } })),
  refused('a uid with a space', 'spec.accountRef.uid', credit({ accountRef: { name: 'acme', uid: 'a b' } })),
  refused('a credit without a type', 'spec.type', credit({ type: undefined })),
  refused('a type that is none', 'spec.type', credit({ type: 'Chargeback' })),
  refused('a reference of 129 characters', 'spec.reference', credit({ reference: 'x'.repeat(129) })),
  refused('a time without a zone', 'spec.time', credit({ time: '2026-11-01T00:00:00' })),
  refused('a time after the year 9999', 'spec.time', credit({ time: '9999-12-31T23:59:59-01:00' }), 'spec.time#four-digit-year'),
  refused('another billing', 'spec.billing', account({ billing: 'Postpaid' })),
]

const CHANGES: ReadonlyArray<readonly [what: string, change: Spec]> = [
  ['another account', { accountRef: { name: 'globex' } }],
  ['a uid', { accountRef: { name: 'acme', uid: '6f1c1f8e-0b0b-4a53-9d8e-0c7a3f1f2b11' } }],
  ['another amount', { amount: '26.00' }],
  ['the same amount in other digits', { amount: '25' }],
  ['another type', { type: 'Grant' }],
  ['another reference', { reference: 'pi_other' }],
  ['no reference', { reference: undefined }],
  ['another time', { time: '2026-11-01T00:00:01Z' }],
  ['no time', { time: undefined }],
]

const changed: readonly ManifestRow[] = CHANGES.map(([what, change]) => ({
  name: `a credit gets ${what}`,
  manifest: credit({ ...FULL, ...change }),
  previous: credit(FULL),
  refused: 'spec',
  rule: 'spec#credit-immutable',
}))

export const CREDIT_MANIFESTS: readonly ManifestRow[] = [...good, ...badAmounts, ...badFields, ...changed]
