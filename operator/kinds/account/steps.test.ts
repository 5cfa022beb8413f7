import { describe, expect, test } from 'vitest'
import type { AccountRecord } from '#contract/records/account-record.ts'
import { restricts } from './steps.ts'

type Balance = NonNullable<AccountRecord['balance']>

const record = (balance?: Balance): AccountRecord => ({
  ...{ kind: 'account', version: 1, revision: 1, uid: 'uid-1', name: 'acme', generation: 1, state: 'Active', plan: null, ledger: 'l' },
  ...(balance && { balance }),
})
const prepaid = (credits: string): AccountRecord => record({ credits, billing: 'Prepaid' })
const unmetered = (credits: string): AccountRecord => record({ credits, billing: 'Unmetered' })

describe('a record of an account', () => {
  test.each<[string, AccountRecord, AccountRecord]>([
    ['less credit, even by the smallest amount', prepaid('0'), prepaid('-1')],
    ['less credit beyond 2^53', prepaid('9007199254740993'), prepaid('9007199254740992')],
    ['a balance for an account that had none', unmetered('5'), prepaid('5')],
    ['a balance for an account of a former build', record(), prepaid('5')],
  ])('with %s goes out before all others', (_, former, wanted) => {
    expect(restricts(former, wanted)).toBe(true)
  })

  test.each<[string, AccountRecord, AccountRecord]>([
    ['more credit', prepaid('-1'), prepaid('0')],
    ['the same credit', prepaid('5'), prepaid('5')],
    ['no balance any more', prepaid('5'), unmetered('5')],
    ['less credit of an account that pays afterwards', unmetered('5'), unmetered('-5')],
  ])('with %s refuses nothing more', (_, former, wanted) => {
    expect(restricts(former, wanted)).toBe(false)
  })
})
