import { describe, expect, test } from 'vitest'
import { edited, entryFor, heldKey, issued, verifierOf } from '../../../test/support/observed-key.ts'
import type { ApiKeySpec } from '#api/apikey.ts'
import { entryOf, recordText, restricts } from './keyring-entry.ts'
import { nextStep } from './steps.ts'
import { urgencyOf } from './keyring-entry.ts'

type Limited = Pick<ApiKeySpec, 'limits' | 'budgets' | 'onStoreUnavailable'>
type Budget = NonNullable<ApiKeySpec['budgets']>[number]

const MONTH: Budget = { name: 'month', amount: '25.00', unit: 'Currency', window: 'Month', timeZone: 'Europe/Berlin', onExceeded: 'Block' }
const EVER: Budget = { name: 'ever', amount: '1000000', unit: 'Tokens', window: 'Lifetime', onExceeded: 'Audit' }
const verifiers = [verifierOf(1)]
const entryWith = (spec: Limited) => entryFor(heldKey(spec), verifiers)
const textWith = (spec: Limited): unknown => JSON.parse(recordText(entryWith(spec), 1) ?? '')

describe('the record of a key', () => {
  test('holds its limits, and its budgets in micro-units and tokens, by name', () => {
    expect(textWith({ limits: { requestsPerMinute: 60 }, budgets: [MONTH, EVER], onStoreUnavailable: 'LocalShare' })).toMatchObject({
      needs: ['limits'],
      limits: { requestsPerMinute: 60 },
      budgets: [
        { name: 'ever', unit: 'Tokens', amount: 1_000_000, window: 'Lifetime', timeZone: 'UTC', onExceeded: 'Audit' },
        { name: 'month', unit: 'Currency', amount: 25_000_000, window: 'Month', timeZone: 'Europe/Berlin', onExceeded: 'Block' },
      ],
      onStoreUnavailable: 'LocalShare',
    })
  })

  test('does not depend on the order of the budgets, so that another order causes no write', () => {
    expect(textWith({ budgets: [EVER, MONTH] })).toEqual(textWith({ budgets: [MONTH, EVER] }))
  })

  test('without limits has no field about limits', () => {
    expect(Object.keys(textWith({}) as object)).toEqual([
      'v',
      'rev',
      'uid',
      'name',
      'namespace',
      'state',
      'expiresMs',
      'generation',
      'models',
      'verifiers',
    ])
    expect(textWith({ budgets: [], onStoreUnavailable: 'FailClosed' })).toEqual(textWith({}))
  })

  test('loses limits that were removed from the manifest', () => {
    const former = entryWith({ limits: { requestsPerMinute: 1 }, budgets: [MONTH], onStoreUnavailable: 'LocalShare' })
    const wanted = entryOf(heldKey(), { verifiers, revision: 7, version: 1, former })
    expect(recordText(wanted, 1)).toBe(recordText(entryWith({}), 1))
  })

  test('keeps its budgets if an edit names a time zone that does not exist, and gets all other fields of the edit', () => {
    const former = entryWith({ budgets: [MONTH] })
    const typo = heldKey({
      models: ['a'],
      limits: { requestsPerMinute: 1 },
      budgets: [{ ...MONTH, amount: '99', timeZone: 'Europe/Atlantis' }],
    })
    const wanted = entryOf(typo, { verifiers, revision: 7, version: 1, former })
    expect(wanted).toMatchObject({ models: [['a']], limits: { requestsPerMinute: 1 }, budgets: former.budgets })
  })
})

const tightening: readonly (readonly [string, Limited, Limited])[] = [
  ['a first limit', {}, { limits: { requestsPerMinute: 1_000 } }],
  ['a lower limit', { limits: { tokensPerMinute: 10 } }, { limits: { tokensPerMinute: 9 } }],
  [
    'another limit beside a higher one',
    { limits: { requestsPerMinute: 1 } },
    { limits: { requestsPerMinute: 2, maxConcurrentRequests: 1 } },
  ],
  ['a budget', {}, { budgets: [MONTH] }],
  ['a lower amount', { budgets: [MONTH] }, { budgets: [{ ...MONTH, amount: '24.999999' }] }],
  ['a budget that blocks from now on', { budgets: [{ ...MONTH, onExceeded: 'Audit' }] }, { budgets: [MONTH] }],
  ['another unit', { budgets: [{ ...MONTH, amount: '25' }] }, { budgets: [{ ...MONTH, amount: '99', unit: 'Tokens' }] }],
  ['another window', { budgets: [MONTH] }, { budgets: [{ ...MONTH, window: 'Day' }] }],
  ['FailClosed again', { onStoreUnavailable: 'LocalShare' }, {}],
]

const loosening: readonly (readonly [string, Limited, Limited])[] = [
  ['a higher limit', { limits: { requestsPerMinute: 1 } }, { limits: { requestsPerMinute: 2 } }],
  ['a limit removed', { limits: { requestsPerMinute: 1, maxConcurrentRequests: 1 } }, { limits: { requestsPerMinute: 1 } }],
  ['a higher amount', { budgets: [MONTH] }, { budgets: [{ ...MONTH, amount: '26' }] }],
  ['the same amount in another form', { budgets: [MONTH] }, { budgets: [{ ...MONTH, amount: '25' }] }],
  ['a budget removed', { budgets: [MONTH, EVER] }, { budgets: [EVER] }],
  ['a budget that only audits', {}, { budgets: [EVER] }],
  ['a budget that no longer blocks', { budgets: [MONTH] }, { budgets: [{ ...MONTH, onExceeded: 'Audit' }] }],
  ['LocalShare', {}, { onStoreUnavailable: 'LocalShare' }],
]

describe('an edit of limits', () => {
  test.each(tightening)('is urgent if it tightens: %s', (_, from, to) => {
    expect(restricts(entryWith(from), entryWith(to))).toBe(true)
    expect(urgencyOf(heldKey(from), heldKey(to, { generation: 2 }))).toBe('urgent')
  })

  test('that lowers a limit is committed and projected before all other work; an edit that raises a limit waits for its turn', () => {
    const working = issued(heldKey({ limits: { requestsPerMinute: 60 } }))
    expect(nextStep(edited(working, { limits: { requestsPerMinute: 6 } }))).toMatchObject({ do: 'commit', level: 'urgent' })
    expect(nextStep(edited(working, { limits: { requestsPerMinute: 600 } }))).toMatchObject({ do: 'commit', level: 'change' })
  })

  test.each(loosening)('waits for its turn if it loosens: %s', (_, from, to) => {
    expect(restricts(entryWith(from), entryWith(to))).toBe(false)
    expect(urgencyOf(heldKey(from), heldKey(to, { generation: 2 }))).toBe('change')
  })
})
