import { describe, expect, test } from 'vitest'
import { type AccountRecord, decodeAccountRecord, encodeAccountRecord } from './account-record.ts'

const ACCOUNT: AccountRecord = {
  kind: 'account',
  version: 1,
  revision: 1,
  uid: 'a1',
  name: 'acme',
  generation: 1,
  state: 'Active',
  plan: 'p1',
  ledger: 'spend-of-acme',
}
const PREPAID: AccountRecord = { ...ACCOUNT, balance: { credits: '25000000', billing: 'Prepaid' } }

const needsOf = (record: AccountRecord): unknown => (JSON.parse(encodeAccountRecord(record)) as { needs?: unknown }).needs

describe('the record of an account', () => {
  test.each(['0', '-1', '9007199254740993', '-9007199254740993', '9'.repeat(30)])('carries credits of %s without a rounding', (credits) => {
    const record: AccountRecord = { ...ACCOUNT, balance: { credits, billing: 'Prepaid' } }
    expect(decodeAccountRecord(encodeAccountRecord(record))).toEqual(record)
  })

  test('without a balance, as an earlier version wrote it, is read as such', () => {
    expect(decodeAccountRecord(encodeAccountRecord(ACCOUNT))).toEqual(ACCOUNT)
    expect(encodeAccountRecord(ACCOUNT)).not.toContain('balance')
  })

  test.each([[25], ['25.00'], ['1e3'], ['-0'], ['01'], ['9'.repeat(31)], [undefined]])('with credits of %j is damaged', (credits) => {
    const text = JSON.stringify({ ...(JSON.parse(encodeAccountRecord(PREPAID)) as object), balance: { credits, billing: 'Prepaid' } })
    expect(() => decodeAccountRecord(text)).toThrow(/credits/)
  })

  test('of a prepaid account is not for a gateway that knows no balances: it would admit calls beyond the balance', () => {
    expect(needsOf(PREPAID)).toEqual(['balances'])
  })

  test.each<readonly [string, AccountRecord]>([
    ['suspended', { ...PREPAID, state: 'Suspended' }],
    ['deleted', { ...PREPAID, state: 'Deleted' }],
    ['unmetered', { ...ACCOUNT, balance: { credits: '0', billing: 'Unmetered' } }],
    ['from before balances', ACCOUNT],
  ])('that is %s is for every gateway', (_, record) => {
    expect(needsOf(record)).toBeUndefined()
  })
})
