import { describe, expect, test } from 'vitest'
import { hashCredential } from './credential.ts'
import { UnknownVersion } from './format.ts'
import { decodeKeyRecord, encodeKeyRecord, type KeyRecord } from './key-record.ts'

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
/** The same as it stands in the text. */
const WIRE = JSON.parse(encodeKeyRecord(RECORD)) as { readonly ver: readonly object[] }

describe('key records', () => {
  test('have one text for all time: version and revision first', () => {
    expect(encodeKeyRecord(RECORD)).toBe(
      '{"v":1,"rev":4711,"uid":"3f0c…","ns":"shop","name":"checkout-bot","st":"Active","exp":1798761600000,"gen":7,' +
        '"models":[["llama-3.1-8b","qwen-*"],["*"]],"ver":[{"id":"4fT9","h":"ngOVZjdgTqFVmpHHioJUzZwGIjJbzgjCbdZaU8SzA5M","exp":null}]}',
    )
  })

  test('are read back as they were written', () => {
    expect(decodeKeyRecord(encodeKeyRecord(RECORD))).toEqual(RECORD)
  })

  test('of a later build are read without the fields that this one does not know', () => {
    const later = { ...WIRE, note: 'x', ver: [{ ...WIRE.ver[0], hint: 'y' }] }
    expect(decodeKeyRecord(JSON.stringify(later))).toEqual(RECORD)
  })

  test('for another build are no damage', () => {
    expect(() => decodeKeyRecord(JSON.stringify({ ...WIRE, v: 2, ver: 'another shape' }))).toThrow(new UnknownVersion('version 2'))
    expect(() => decodeKeyRecord(encodeKeyRecord({ ...RECORD, needs: ['limits2'] }))).toThrow(new UnknownVersion('needs limits2'))
  })

  test('are written in the version that is asked for', () => {
    expect(encodeKeyRecord(RECORD, 2)).toBe(encodeKeyRecord(RECORD).replace('"v":1', '"v":2'))
  })

  test.each([
    ['another version', { v: 2 }],
    ['a need that this version does not know, since it may narrow what the key may do', { needs: ['limits'], lim: { rpm: 1 } }],
    ['no allow-list', { models: [] }],
    ['an empty allow-list, which would admit nothing or everything', { models: [[]] }],
    ['an unknown state', { st: 'Paused' }],
    ['a hash of another form', { ver: [{ id: 'a', h: 'short', exp: null }] }],
    ['a time in words', { exp: '2027-01-01' }],
  ])('with %s are refused whole', (_, change) => {
    expect(() => decodeKeyRecord(JSON.stringify({ ...WIRE, ...change }))).toThrow()
  })

  test('that are no JSON are refused', () => {
    expect(() => decodeKeyRecord('{"v":1')).toThrow(SyntaxError)
  })
})
