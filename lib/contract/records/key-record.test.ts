import { describe, expect, test } from 'vitest'
import { hashCredential } from '../values/credential.ts'
import { UnknownVersion } from './format.ts'
import { decodeKeyRecord, encodeKeyRecord, type KeyRecord } from './key-record.ts'
import type { BudgetRecord } from './limits-record.ts'

const RECORD: KeyRecord = {
  version: 1,
  revision: 4711,
  uid: '3f0c…',
  namespace: 'shop',
  name: 'checkout-bot',
  state: 'Active',
  expiresMs: 1_798_761_600_000,
  generation: 7,
  models: [['llama-3.1-8b', 'qwen-*'], ['*']],
  verifiers: [{ id: '4fT9', hash: hashCredential('sk-1234567890abcdefghij'), expiresMs: null }],
}
const MONTH: BudgetRecord = {
  name: 'month',
  unit: 'Currency',
  amount: 25_000_000,
  window: 'Month',
  timeZone: 'Europe/Berlin',
  onExceeded: 'Block',
}
/** The same with limits and a budget. */
const LIMITED: KeyRecord = {
  ...RECORD,
  limits: { requestsPerMinute: 60, tokensPerMinute: 40_000, maxConcurrentRequests: 8 },
  budgets: [MONTH],
  onStoreUnavailable: 'LocalShare',
}
/** The same record as text. */
const WIRE = JSON.parse(encodeKeyRecord(RECORD)) as { readonly verifiers: readonly object[] }
const [WIRE_MONTH] = (JSON.parse(encodeKeyRecord(LIMITED)) as { readonly budgets: readonly object[] }).budgets

describe('key records', () => {
  test.each<[string, Partial<KeyRecord>, boolean]>([
    ['one limit', { limits: { maxConcurrentRequests: 1 }, budgets: undefined }, true],
    ['a budget that blocks', { limits: undefined }, true],
    ['budgets that only audit: nothing is refused', { limits: undefined, budgets: [{ ...MONTH, onExceeded: 'Audit' }] }, false],
    ['only a policy for a lost Redis', { limits: undefined, budgets: undefined }, false],
    ['limits of a suspended key: every reader must refuse it', { state: 'Suspended' }, false],
    ['limits of a revoked key', { state: 'Revoked' }, false],
  ])('with %s need a reader that holds limits: %#', (_, change, isNeedy) => {
    const text = encodeKeyRecord({ ...LIMITED, ...change })
    expect((JSON.parse(text) as { needs?: unknown }).needs).toEqual(isNeedy ? ['limits'] : undefined)
    expect(encodeKeyRecord(decodeKeyRecord(text)), 'a second writer says the same').toBe(text)
  })

  test('of a key that was limited and is suspended lose the need that they were read with', () => {
    const read = decodeKeyRecord(encodeKeyRecord(LIMITED))
    expect(encodeKeyRecord({ ...read, state: 'Suspended' })).not.toContain('needs')
  })

  test('of a later build are read without the fields that this one does not know', () => {
    const later = { ...WIRE, note: 'x', verifiers: [{ ...WIRE.verifiers[0], hint: 'y' }] }
    expect(decodeKeyRecord(JSON.stringify(later))).toEqual(RECORD)
  })

  test('for another build are not damaged', () => {
    expect(() => decodeKeyRecord(JSON.stringify({ ...WIRE, v: 2, verifiers: 'another shape' }))).toThrow(new UnknownVersion('version 2'))
    expect(() => decodeKeyRecord(JSON.stringify({ ...WIRE, needs: ['limits2'] }))).toThrow(new UnknownVersion('needs limits2'))
  })

  test('are written in the version that is asked for', () => {
    expect(encodeKeyRecord(RECORD, 2)).toBe(encodeKeyRecord(RECORD).replace('"v":1', '"v":2'))
  })

  test.each([
    ['another version', { v: 2 }],
    ['a need that this version does not know, since it may restrict the key', { needs: ['limits2'], limits: { requestsPerMinute: 1 } }],
    ['no allow-list', { models: [] }],
    ['an empty allow-list, which would admit nothing or everything', { models: [[]] }],
    ['an unknown state', { state: 'Paused' }],
    ['a hash of another form', { verifiers: [{ id: 'a', hash: 'short', expiresMs: null }] }],
    ['a time in words', { expiresMs: '2027-01-01' }],
    ['a limit of zero', { limits: { requestsPerMinute: 0 } }],
    ['half a request', { limits: { requestsPerMinute: 0.5 } }],
    ['money that is not an integer', { budgets: [{ ...WIRE_MONTH, amount: 0.1 }] }],
    ['money that doubles do not hold exactly', { budgets: [{ ...WIRE_MONTH, amount: 1e15 }] }],
    ['a debt', { budgets: [{ ...WIRE_MONTH, amount: -1 }] }],
    ['money in quotes', { budgets: [{ ...WIRE_MONTH, amount: '25' }] }],
    ['an unknown window', { budgets: [{ ...WIRE_MONTH, window: 'Hour' }] }],
    ['five budgets', { budgets: [1, 2, 3, 4, 5].map(() => WIRE_MONTH) }],
  ])('with %s are refused whole', (_, change) => {
    expect(() => decodeKeyRecord(JSON.stringify({ ...WIRE, ...change }))).toThrow()
  })

  test('that are not JSON are refused', () => {
    expect(() => decodeKeyRecord('{"v":1')).toThrow(SyntaxError)
  })
})
