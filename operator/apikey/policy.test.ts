import { describe, expect, test } from 'vitest'
import { decodeKeyRecord } from '../../gateway/shared/key-record.ts'
import { checkKeyringLine } from '../../gateway/shared/keyring-line.ts'
import { heldKey, verifierOf } from '../../test/support/observed-key.ts'
import { currentVerifier, expiryOf, lineOf, recordText, sameLine, withVerifier } from './policy.ts'

describe('expiryOf', () => {
  test.each<[string, Parameters<typeof heldKey>[0], number | null]>([
    ['neither is for ever', {}, null],
    ['expirationTime', { expirationTime: '2027-01-01T00:00:00Z' }, Date.UTC(2027, 0, 1)],
    ['expirationTime with an offset and fractions', { expirationTime: '2027-01-01T02:00:00.25+02:00' }, Date.UTC(2027, 0, 1) + 250],
    ['ttlSeconds counts from the creation', { ttlSeconds: 3600 }, Date.UTC(2026, 0, 1, 1)],
    ['a time before 1970 is over, in a form that records can hold', { expirationTime: '1960-01-01T00:00:00Z' }, 0],
    ['one that cannot be read is over too, not for ever', { expirationTime: 'next year' }, 0],
  ])('%s', (_what, spec, expiry) => {
    expect(expiryOf(heldKey(spec))).toBe(expiry)
    expect(() => checkKeyringLine(lineOf(heldKey(spec), [verifierOf(1)], 1))).not.toThrow()
  })
})

describe('lineOf', () => {
  test('carries what the manifest says, and no allow-list means every model', () => {
    const verifier = verifierOf(1)
    const key = heldKey({ state: 'Suspended', models: ['b', 'a-*'] }, { generation: 5 })
    expect(lineOf(key, [verifier], 9)).toEqual({
      v: 1,
      rev: 9,
      uid: 'uid-1',
      ns: 'shop',
      name: 'bot',
      st: 'Suspended',
      exp: null,
      gen: 5,
      models: [['b', 'a-*']],
      ver: [verifier],
      deleted: null,
    })
    expect(lineOf(heldKey(), [], 0).models).toEqual([['*']])
  })

  test('two lines that differ in the revision alone say the same', () => {
    const verifier = verifierOf(1)
    expect(sameLine(lineOf(heldKey(), [verifier], 1), lineOf(heldKey(), [verifier], 2))).toBe(true)
    expect(sameLine(lineOf(heldKey(), [verifier], 1), lineOf(heldKey({ state: 'Suspended' }), [verifier], 1))).toBe(false)
  })
})

describe('recordText', () => {
  test('tells gateways the live verifiers and nothing of their history', () => {
    const [voided, live] = [verifierOf(1, 'Revoked'), verifierOf(2, 'Minted')]
    const record = decodeKeyRecord(recordText(lineOf(heldKey(), [voided, live], 9)) ?? '')
    expect(record).toMatchObject({ uid: 'uid-1', st: 'Active', rev: 0, ver: [{ id: live.id, h: live.h, exp: null }] })
  })

  test('a deleted key has no record', () => {
    expect(recordText({ ...lineOf(heldKey(), [verifierOf(1)], 9), deleted: 1 })).toBeUndefined()
  })
})

describe('verifiers', () => {
  test('the current one is the newest that was not voided', () => {
    const [one, two, three] = [verifierOf(1), verifierOf(2), verifierOf(3, 'Revoked')]
    expect(currentVerifier(lineOf(heldKey(), [two, one, three], 1))).toBe(two)
    expect(currentVerifier(lineOf(heldKey(), [three], 1))).toBeUndefined()
    expect(currentVerifier(undefined)).toBeUndefined()
  })

  test('a hundred crashes between minting and delivery do not fill the line: it stays readable', () => {
    let line = lineOf(heldKey(), [], 1)
    for (let n = 1; n <= 100; n++) {
      const voided = line.ver.map((verifier) => ({ ...verifier, state: 'Revoked' as const }))
      line = lineOf(heldKey(), withVerifier(voided, verifierOf(n, 'Minted')), 1)
    }
    expect(() => checkKeyringLine(line)).not.toThrow()
    expect(line.ver.map(({ n }) => n)).toEqual([96, 97, 98, 99, 100])
  })

  test('none that lives is dropped', () => {
    const live = [verifierOf(1), verifierOf(2), verifierOf(3), verifierOf(4), verifierOf(5)]
    expect(withVerifier(live, verifierOf(6))).toHaveLength(6)
  })
})
