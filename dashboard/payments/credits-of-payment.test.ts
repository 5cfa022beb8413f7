import { describe, expect, test } from 'vitest'
import { formatSignedAmount } from '#contract/values/signed-micros.ts'
import { creditName, creditsOf, type Decision } from './credits-of-payment.ts'
import type { DisputeFact, Payment, RefundFact, SessionFact } from './payment.ts'

const EXPECTED = { installation: 'dashboard.example.net', currency: 'EUR', isLive: true }
const METADATA = { headgate_installation: 'dashboard.example.net', headgate_account: 'u-1', headgate_account_uid: 'uid-1' }
const SESSION: SessionFact = {
  ...{ id: 'cs_1', isLive: true, currency: 'eur', total: 5_000, beside: 0, state: 'paid', clientReference: 'uid-1', payment: 'pi_1' },
  metadata: METADATA,
}
const refund = (id: string, amount: number, more: Partial<RefundFact> = {}): RefundFact => ({
  ...{ id, amount, currency: 'eur', created: 100, returned: undefined, ...more },
})
const dispute = (id: string, amount: number, more: Partial<DisputeFact> = {}): DisputeFact => ({
  ...{ id, amount, currency: 'eur', withdrawn: 200, reinstated: undefined, ...more },
})
const decide = (more: Partial<SessionFact> = {}, rest: Partial<Payment> = {}, expected = EXPECTED): Decision =>
  creditsOf({ session: { ...SESSION, ...more }, refunds: [], disputes: [], ...rest }, expected)

/** `pi_1 50 TopUp` for each Credit. */
function movements(decision: Decision): readonly string[] {
  if (decision.kind !== 'credits') return [decision.kind]
  return decision.credits.map(({ reference, amount, type }) => `${reference} ${formatSignedAmount(amount)} ${type}`)
}

describe('a paid session', () => {
  test('is one Credit for the account of its metadata, named after the payment', () => {
    expect(decide()).toEqual({
      kind: 'credits',
      credits: [{ name: creditName('pi_1'), account: { name: 'u-1', uid: 'uid-1' }, amount: 50_000_000, type: 'TopUp', reference: 'pi_1' }],
    })
    expect(creditName('pi_1')).toMatch(/^stripe-[0-9a-f]{40}$/)
  })

  test('gives no credit for tax and shipping', () => {
    expect(movements(decide({ total: 5_950, beside: 950 }))).toEqual(['pi_1 50 TopUp'])
  })

  test('counts in the decimals of its currency', () => {
    const yen = { ...EXPECTED, currency: 'JPY' }
    expect(movements(decide({ currency: 'jpy' }, {}, yen))).toEqual(['pi_1 5000 TopUp'])
    expect(movements(decide({ currency: 'kwd' }, {}, { ...EXPECTED, currency: 'KWD' }))).toEqual(['pi_1 5 TopUp'])
  })
})

test.each(['open', 'processing', 'failed', 'expired'] as const)('a session that is %s gives nothing', (state) => {
  expect(decide({ state })).toEqual({ kind: 'unpaid' })
})

describe('money that is not of this installation gives nothing', () => {
  test.each<readonly [string, Partial<SessionFact>]>([
    ['of another program at the same account of the provider', { metadata: {} }],
    ['of another installation', { metadata: { ...METADATA, headgate_installation: 'staging.example.net' } }],
  ])('%s: without an alarm', (_, more) => {
    expect(decide(more)).toEqual({ kind: 'foreign' })
  })

  test.each<readonly [string, Partial<SessionFact>, RegExp]>([
    ['a test', { isLive: false }, /is a test/],
    ['another currency', { currency: 'usd' }, /USD.*EUR/],
    ['another account in the client reference', { clientReference: 'uid-2' }, /another account/],
    ['no client reference', { clientReference: undefined }, /another account/],
    ['no account', { metadata: { ...METADATA, headgate_account: '' } }, /no account/],
    ['a name that no Account can have', { metadata: { ...METADATA, headgate_account: 'U 1/x' } }, /no account/],
    ['no amount', { total: undefined }, /no amount/],
    ['an amount of nothing but tax', { total: 100, beside: 100 }, /no amount/],
    ['no payment', { payment: undefined }, /no amount/],
    ['more than a Credit may have', { total: 100_000_000_000 }, /larger amount/],
  ])('%s: with an alarm', (_, more, why) => {
    expect(decide(more)).toEqual({ kind: 'refused', why: expect.stringMatching(why) })
  })

  test('real money where this installation tests: with an alarm', () => {
    expect(decide({}, {}, { ...EXPECTED, isLive: false })).toMatchObject({ kind: 'refused' })
  })

  test('a refund in another currency: with an alarm', () => {
    expect(decide({}, { refunds: [refund('re_1', 100, { currency: 'usd' })] })).toMatchObject({ kind: 'refused' })
  })
})

describe('money that is taken back', () => {
  test('partial refunds each take their amount', () => {
    const refunds = [refund('re_1', 1_000), refund('re_2', 1_500, { created: 101 })]
    expect(movements(decide({}, { refunds }))).toEqual(['pi_1 50 TopUp', 're_1 -10 Refund', 're_2 -15 Refund'])
  })

  test('a refund that failed gives its amount again, and leaves it for the next one', () => {
    const refunds = [refund('re_1', 5_000, { returned: 100 }), refund('re_2', 5_000, { created: 101 })]
    expect(movements(decide({}, { refunds }))).toEqual([
      ...['pi_1 50 TopUp', 're_1 -50 Refund', 're_1:failed 50 Refund', 're_2 -50 Refund'],
    ])
  })

  test('a dispute that was only opened takes nothing', () => {
    expect(movements(decide({}, { disputes: [dispute('du_1', 5_000, { withdrawn: undefined })] }))).toEqual(['pi_1 50 TopUp'])
  })

  test('a lost dispute takes the payment, and a won one gives the same amount again', () => {
    expect(movements(decide({}, { disputes: [dispute('du_1', 5_000)] }))).toEqual(['pi_1 50 TopUp', 'du_1:withdrawn -50 Dispute'])
    expect(movements(decide({}, { disputes: [dispute('du_1', 5_000, { reinstated: 250 })] }))).toEqual([
      ...['pi_1 50 TopUp', 'du_1:withdrawn -50 Dispute', 'du_1:reinstated 50 Dispute'],
    ])
  })

  test('no more than the payment: a dispute over all of it after a refund takes the rest', () => {
    const rest = { refunds: [refund('re_1', 2_000)], disputes: [dispute('du_1', 5_000)] }
    expect(movements(decide({}, rest))).toEqual(['pi_1 50 TopUp', 're_1 -20 Refund', 'du_1:withdrawn -30 Dispute'])
    const late = { disputes: [dispute('du_1', 5_000)], refunds: [refund('re_1', 5_000, { created: 300 })] }
    expect(movements(decide({}, late))).toEqual(['pi_1 50 TopUp', 'du_1:withdrawn -50 Dispute'])
  })

  test('a refund after a won dispute takes its amount', () => {
    const rest = { disputes: [dispute('du_1', 5_000, { reinstated: 250 })], refunds: [refund('re_1', 5_000, { created: 300 })] }
    expect(movements(decide({}, rest)).at(-1)).toBe('re_1 -50 Refund')
  })

  test('a refund that fails after a dispute has taken the rest gives nothing, since the bank has all of the payment', () => {
    const before = { refunds: [refund('re_1', 2_000)], disputes: [dispute('du_1', 5_000)] }
    const after = { ...before, refunds: [refund('re_1', 2_000, { returned: 300 })] }
    expect(movements(decide({}, after))).toEqual(movements(decide({}, before)))
    const won = { ...after, disputes: [dispute('du_1', 5_000, { reinstated: 400 })] }
    expect(movements(decide({}, won))).toEqual([...movements(decide({}, before)), 'du_1:reinstated 50 Dispute'])
  })

  test('a refund that fails after a dispute over a part gives what the dispute has left', () => {
    const facts = { refunds: [refund('re_1', 4_000, { returned: 300 })], disputes: [dispute('du_1', 3_000)] }
    expect(movements(decide({}, facts))).toEqual([
      ...['pi_1 50 TopUp', 're_1 -40 Refund', 'du_1:withdrawn -10 Dispute', 're_1:failed 20 Refund'],
    ])
  })

  test('what is known later never changes an earlier Credit', () => {
    const refunds = [refund('re_1', 1_000), refund('re_2', 4_500, { created: 101 })]
    const before = movements(decide({}, { refunds }))
    const after = movements(decide({}, { refunds: refunds.toReversed(), disputes: [dispute('du_1', 5_000)] }))
    expect(after.slice(0, before.length)).toEqual(before)
  })
})
