import { describe, expect, it } from 'vitest'
import type { KeyState, KeyView } from '../../server/page-data/keys.ts'
import { isMoving, proofOf, stateWords } from './key-state.ts'
import { KEY } from './sample.ts'

const NOW = new Date('2026-11-24T12:00:00Z')
const key = (more: Partial<KeyView>): KeyView => ({ ...KEY, ...more })

describe('the state of a key', () => {
  it.each([
    ['2026-12-01T12:00:01Z', 'Active', 'ok'],
    ['2026-12-01T12:00:00Z', 'Expires in 7 days', 'warn'],
    ['2026-11-29T11:00:00Z', 'Expires in 5 days', 'warn'],
    ['2026-11-25T12:00:01Z', 'Expires in 2 days', 'warn'],
    ['2026-11-25T12:00:00Z', 'Expires in 24 h', 'warn'],
    ['2026-11-24T12:10:00Z', 'Expires in 1 h', 'warn'],
  ])('with its end on %s is "%s"', (expiresAt, word, look) => {
    expect(stateWords(key({ expiresAt }), NOW)).toMatchObject({ word, look })
  })

  it('Expired says when', () => {
    expect(stateWords(key({ state: 'Expired', expiresAt: '2026-11-20T08:00:00Z' }), NOW)).toEqual({ look: 'off', word: 'Expired 20 Nov' })
  })

  it('with a used-up budget says when the budget starts again', () => {
    const budget = { name: 'own', owner: 'key', unit: 'Currency', window: 'Month', amount: '20', percent: 100 } as const
    const used = { ...budget, resetsAt: '2026-12-01T00:00:00Z', timeZone: 'UTC', isAudit: false, isShared: false }
    expect(stateWords(key({ state: 'BudgetUsedUp', budgets: [used] }), NOW)).toMatchObject({ word: 'Budget used up', note: 'Resets 1 Dec' })
    expect(stateWords(key({ state: 'BudgetUsedUp', budgets: [] }), NOW).note).toBeUndefined()
  })

  it('with a former value says until when that value works', () => {
    expect(stateWords(key({ formerValueUntil: '2026-11-25T12:03:00Z' }), NOW).note).toBe('Old value until 25 Nov')
  })
})

describe('the proof', () => {
  const proof = (state: KeyState, ready: number) => proofOf(key({ state, programmed: { ready, total: 3 } }))

  it('says "Revoked on 3/3 gateways" only when it is so', () => {
    expect([proof('Revoking', 2)?.words, proof('Revoked', 3)?.words]).toEqual(['Revoked on 2/3 gateways', 'Revoked on 3/3 gateways'])
  })

  it('of a key that is being revoked shows calls on the gateways that have not acknowledged', () => {
    expect(proof('Revoking', 2)?.isOpen).toEqual({ ready: false, others: true })
  })

  it('of a new key shows no calls on the gateways that do not know the key', () => {
    expect(proof('Activating', 1)).toMatchObject({ words: 'Active on 1/3 gateways', isOpen: { ready: true, others: false } })
  })

  it('of an edit does not say that the key is active on fewer gateways', () => {
    expect(proof('Active', 2)?.words).toBe('The newest change holds on 2/3 gateways')
  })

  it.each<KeyState>(['NotAccepted', 'Expired', 'BudgetUsedUp', 'BalanceUsedUp', 'AccountSuspended'])(
    'of a key that is %s is absent',
    (state) => {
      expect(proof(state, 3)).toBeUndefined()
    },
  )

  it('is absent before the operator has seen the key, and without gateways', () => {
    expect(proofOf(key({ programmed: undefined }))).toBeUndefined()
    expect(proofOf(key({ programmed: { ready: 0, total: 0 } }))).toBeUndefined()
  })
})

it.each<[KeyState, number, boolean]>([
  ['Activating', 0, true],
  ['Revoking', 2, true],
  ['Active', 2, true],
  ['Active', 3, false],
  ['Revoked', 3, false],
  ['Expired', 2, false],
])('a key that is %s on %i of 3 gateways is read again every second: %s', (state, ready, isRead) => {
  expect(isMoving(key({ state, programmed: { ready, total: 3 } }))).toBe(isRead)
})
