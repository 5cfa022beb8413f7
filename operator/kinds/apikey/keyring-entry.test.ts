import { describe, expect, test } from 'vitest'
import { decodeKeyRecord } from '#contract/records/key-record.ts'
import { type KeyringEntry, readKeyringEntry, sameEntry, writeKeyringEntry } from '#contract/records/keyring-entry.ts'
import { entryFor, heldKey, verifierOf } from '../../../test/support/observed-key.ts'
import { currentVerifier, entryOf, expiryOf, recordText, restricts, withState, withVerifier } from './keyring-entry.ts'

const isReadable = (entry: KeyringEntry): boolean => sameEntry(readKeyringEntry(writeKeyringEntry(entry)), entry)

describe('expiryOf', () => {
  test.each<[string, Parameters<typeof heldKey>[0], number | null]>([
    ['neither is for ever', {}, null],
    ['expirationTime', { expirationTime: '2027-01-01T00:00:00Z' }, Date.UTC(2027, 0, 1)],
    ['expirationTime with an offset and fractions', { expirationTime: '2027-01-01T02:00:00.25+02:00' }, Date.UTC(2027, 0, 1) + 250],
    ['ttlSeconds counts from the creation', { ttlSeconds: 3600 }, Date.UTC(2026, 0, 1, 1)],
    ['a time before 1970 is over, in a form that records can hold', { expirationTime: '1960-01-01T00:00:00Z' }, 0],
    ['one that cannot be read is over too, not for ever', { expirationTime: 'next year' }, 0],
    ['the year 10000 ends with the year 9999', { expirationTime: '9999-12-31T23:59:59-23:59' }, Date.UTC(9999, 11, 31, 23, 59, 59)],
  ])('%s', (_what, spec, expiry) => {
    expect(expiryOf(heldKey(spec))).toBe(expiry)
    expect(isReadable(entryFor(heldKey(spec), [verifierOf(1)]))).toBe(true)
  })
})

describe('entryOf', () => {
  test('has every field of the manifest', () => {
    const verifier = verifierOf(1)
    const key = heldKey({ state: 'Suspended', models: ['b', 'a-*'] }, { generation: 5 })
    expect(entryOf(key, { verifiers: [verifier], revision: 9, version: 1 })).toEqual({
      version: 1,
      revision: 9,
      uid: 'uid-1',
      namespace: 'shop',
      name: 'bot',
      state: 'Suspended',
      expiresMs: null,
      generation: 5,
      models: [['b', 'a-*']],
      verifiers: [verifier],
      deletedMs: null,
    })
  })

  test('keeps fields that this version does not know, and the features that a reader needs', () => {
    const former = { ...entryFor(heldKey(), [verifierOf(1)]), needs: ['limits'], limit: 5 }
    expect(entryOf(heldKey({ state: 'Suspended' }), { verifiers: [], revision: 9, version: 1, former })).toMatchObject({
      state: 'Suspended',
      needs: ['limits'],
      limit: 5,
    })
  })

  test('a tombstone does not survive in the entry of a living key', () => {
    const former = entryFor(heldKey(), [], { deletedMs: 5 })
    expect(entryOf(heldKey(), { verifiers: [], revision: 9, version: 1, former }).deletedMs).toBeNull()
  })

  test('two entries that differ only in the revision count as equal', () => {
    const verifier = verifierOf(1)
    expect(sameEntry(entryFor(heldKey(), [verifier], { revision: 1 }), entryFor(heldKey(), [verifier], { revision: 2 }))).toBe(true)
    expect(sameEntry(entryFor(heldKey(), [verifier]), entryFor(heldKey({ state: 'Suspended' }), [verifier]))).toBe(false)
  })
})

describe('whether an edit restricts the holders of the key', () => {
  const FUTURE = '2027-01-01T00:00:00Z'
  const LATER = '2028-01-01T00:00:00Z'
  const cases: readonly [string, Parameters<typeof heldKey>[0], Parameters<typeof heldKey>[0], boolean][] = [
    ['nothing', {}, {}, false],
    ['the display name', {}, { displayName: 'x' }, false],
    ['Active to Suspended', {}, { state: 'Suspended' }, true],
    ['Active to Revoked', {}, { state: 'Revoked' }, true],
    ['Suspended to Revoked', { state: 'Suspended' }, { state: 'Revoked' }, true],
    ['Suspended to Active', { state: 'Suspended' }, { state: 'Active' }, false],
    ['Revoked to Active', { state: 'Revoked' }, { state: 'Active' }, false],
    ['an expiry where none was', {}, { expirationTime: FUTURE }, true],
    ['an earlier expiry', { expirationTime: LATER }, { expirationTime: FUTURE }, true],
    ['a later expiry', { expirationTime: FUTURE }, { expirationTime: LATER }, false],
    ['no expiry any more', { expirationTime: FUTURE }, {}, false],
    ['a time to live that ends earlier', { ttlSeconds: 7200 }, { ttlSeconds: 3600 }, true],
    ['a model less', { models: ['a', 'b'] }, { models: ['a'] }, true],
    ['a model more', { models: ['a'] }, { models: ['a', 'b'] }, false],
    ['the same models in another order', { models: ['a', 'b'] }, { models: ['b', 'a'] }, false],
    ['another model instead', { models: ['a'] }, { models: ['b'] }, true],
    ['one model instead of all', { models: ['*'] }, { models: ['a'] }, true],
    ['a suspension together with a later expiry', { expirationTime: FUTURE }, { state: 'Suspended', expirationTime: LATER }, true],
  ]
  test.each(cases)('is decided for: %s', (_what, before, after, isRestricting) => {
    const verifiers = [verifierOf(1)]
    expect(restricts(entryFor(heldKey(before), verifiers), entryFor(heldKey(after), verifiers))).toBe(isRestricting)
  })

  test('the end of a generation restricts; its start or its delivery does not', () => {
    const [one, two] = [verifierOf(1, 'Minted'), verifierOf(2, 'Minted')]
    const of = (...verifiers: Parameters<typeof entryFor>[1]): KeyringEntry => entryFor(heldKey(), verifiers)
    expect(restricts(of(one), of())).toBe(true)
    expect(restricts(of(one), of(...withState([one], one, 'Voided')))).toBe(true)
    expect(restricts(of(one), of(...withState([one], one, 'Revoked')))).toBe(true)
    expect(restricts(of(one), of(...withState([one], one, 'Issued')))).toBe(false)
    expect(restricts(of(one), of(one, two))).toBe(false)
    expect(restricts(of(verifierOf(1, 'Voided')), of())).toBe(false)
  })
})

describe('recordText', () => {
  test('gives gateways the live verifiers and not their history', () => {
    const [voided, live] = [verifierOf(1, 'Voided'), verifierOf(2, 'Minted')]
    const record = decodeKeyRecord(recordText(entryFor(heldKey(), [voided, live]), 1) ?? '')
    expect(record).toMatchObject({
      version: 1,
      uid: 'uid-1',
      state: 'Active',
      revision: 0,
      verifiers: [{ id: live.id, hash: live.hash, expiresMs: null }],
    })
    expect(record.verifiers).toHaveLength(1)
  })

  test('does not depend on the revision of the entry: an unchanged record costs no revision', () => {
    const verifiers = [verifierOf(1)]
    expect(recordText(entryFor(heldKey(), verifiers, { revision: 1 }), 1)).toBe(
      recordText(entryFor(heldKey(), verifiers, { revision: 9 }), 1),
    )
  })

  test('has the format version that gateways read', () => {
    expect(recordText(entryFor(heldKey(), []), 3)).toMatch(/^\{"v":3,/)
  })

  test('a deleted key has no record', () => {
    expect(recordText(entryFor(heldKey(), [verifierOf(1)], { deletedMs: 1 }), 1)).toBeUndefined()
  })
})

describe('verifiers', () => {
  test('the current verifier is the newest live verifier', () => {
    const [one, two, three] = [verifierOf(1), verifierOf(2), verifierOf(3, 'Voided')]
    expect(currentVerifier(entryFor(heldKey(), [two, one, three]))).toBe(two)
    expect(currentVerifier(entryFor(heldKey(), [three, verifierOf(4, 'Revoked')]))).toBeUndefined()
    expect(currentVerifier(undefined)).toBeUndefined()
  })

  test('a hundred crashes between minting and delivery leave an entry of bounded size', () => {
    let entry = entryFor(heldKey(), [])
    for (let n = 1; n <= 100; n++) {
      const voided = entry.verifiers.map((verifier) => ({ ...verifier, state: 'Voided' as const }))
      entry = entryFor(heldKey(), withVerifier(voided, verifierOf(n, 'Minted')))
    }
    expect(isReadable(entry)).toBe(true)
    expect(entry.verifiers.map(({ number }) => number)).toEqual([96, 97, 98, 99, 100])
  })

  test('no live verifier is dropped', () => {
    const live = [verifierOf(1), verifierOf(2), verifierOf(3), verifierOf(4), verifierOf(5)]
    expect(withVerifier(live, verifierOf(6))).toHaveLength(6)
  })

  test('withState changes one generation and no other', () => {
    const [one, two] = [verifierOf(1, 'Minted'), verifierOf(2, 'Minted')]
    expect(withState([one, two], two, 'Issued')).toEqual([one, { ...two, state: 'Issued' }])
  })
})
