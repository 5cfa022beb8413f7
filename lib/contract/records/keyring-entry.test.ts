import { describe, expect, test } from 'vitest'
import { issuedKey, keyringEntry } from '../../../test/support/records.ts'
import { uidIn, UnknownVersion } from './format.ts'
import { type KeyringEntry, keyRecordOf, readKeyringEntry, sameEntry, writeKeyringEntry } from './keyring-entry.ts'
import { tombstoneOf } from './tombstone.ts'

const ENTRY = keyringEntry(issuedKey('uid-1').record)
const [VERIFIER] = ENTRY.verifiers
const BUDGET = { name: 'ever', unit: 'Tokens', amount: 7, window: 'Lifetime', timeZone: 'UTC', onExceeded: 'Block' } as const
const LIMITED: KeyringEntry = { ...ENTRY, limits: { requestsPerMinute: 60 }, budgets: [BUDGET] }
/** The entry as text. */
const WIRE = JSON.parse(writeKeyringEntry(ENTRY)) as { readonly verifiers: readonly object[] }
const textWith = (fields: object): string => JSON.stringify({ ...WIRE, ...fields })

describe('the text of an entry', () => {
  test('of another version, or with a need that this build lacks, is not called damaged', () => {
    for (const [fields, why] of [
      [{ v: 2, h: 'any shape' }, 'version 2'],
      [{ needs: ['limits2'] }, 'needs limits2'],
    ] as const) {
      expect(() => readKeyringEntry(textWith(fields))).toThrow(new UnknownVersion(why))
      expect(uidIn(textWith(fields))).toBe('uid-1')
    }
  })

  test.each([
    ['no JSON', '{"v":1'],
    ['no version', '{"uid":"a"}'],
    ['a field out of bounds', textWith({ expiresMs: -1 })],
    ['a live key without its policy', textWith({ models: undefined })],
  ])('is damaged with %s', (_, text) => {
    expect(() => readKeyringEntry(text)).toThrow()
    expect(() => readKeyringEntry(text)).not.toThrow(UnknownVersion)
  })

  test('keeps limits and budgets, and needs a reader that holds them as long as the key is not refused', () => {
    const text = writeKeyringEntry(LIMITED)
    expect(JSON.parse(text)).toMatchObject({ needs: ['limits'], limits: { requestsPerMinute: 60 }, budgets: [{ name: 'ever', amount: 7 }] })
    expect(readKeyringEntry(text)).toEqual(LIMITED)
    expect(writeKeyringEntry({ ...readKeyringEntry(text), state: 'Suspended' })).not.toContain('needs')
    expect(writeKeyringEntry(tombstoneOf(readKeyringEntry(text), 7))).not.toMatch(/needs|limits|budgets/)
  })

  test('that no reader could read is not written', () => {
    expect(() => writeKeyringEntry({ ...ENTRY, expiresMs: -1 })).toThrow(/expiresMs/)
  })

  test('keeps the fields of a later version when the entry is edited, in the entry and in each verifier', () => {
    const former = readKeyringEntry(textWith({ tier: { size: 5 }, verifiers: [{ ...WIRE.verifiers[0], vault: 'A' }] }))
    const text = writeKeyringEntry({ ...ENTRY, state: 'Suspended' }, former)
    expect(JSON.parse(text)).toEqual({ ...WIRE, state: 'Suspended', tier: { size: 5 }, verifiers: [{ ...WIRE.verifiers[0], vault: 'A' }] })
  })

  test('keeps the source of the value of each verifier, also a source of a later version', () => {
    for (const origin of ['Hash', 'Vault']) {
      const entry = readKeyringEntry(textWith({ verifiers: [{ ...WIRE.verifiers[0], origin }] }))
      expect(entry.verifiers[0]?.origin).toBe(origin)
      expect(JSON.parse(writeKeyringEntry({ ...entry, state: 'Suspended' }))).toMatchObject({ verifiers: [{ origin }] })
    }
    expect(writeKeyringEntry(ENTRY)).not.toContain('origin')
  })

  test('of a tombstone drops them, because it must fit into the place of the entry', () => {
    const former = readKeyringEntry(textWith({ tier: 'x'.repeat(1000) }))
    const { models: _, ...rest } = ENTRY
    expect(writeKeyringEntry({ ...rest, deletedMs: 7 }, former)).not.toContain('tier')
  })
})

describe('two entries', () => {
  test('are equal whatever the order of their fields, their revision and fields of later versions', () => {
    const reordered = Object.fromEntries(Object.entries(ENTRY).reverse()) as KeyringEntry
    expect(sameEntry(ENTRY, { ...reordered, revision: 99 })).toBe(true)
    expect(sameEntry(ENTRY, readKeyringEntry(textWith({ tier: 5 })))).toBe(true)
  })

  test.each<[string, Partial<KeyringEntry>]>([
    ['state', { state: 'Suspended' }],
    ['policy', { models: [['a']] }],
    ['expiry', { expiresMs: 5 }],
    ['generation', { generation: 9 }],
    ['key material', { verifiers: [{ ...VERIFIER!, state: 'Voided' }] }],
    ['deletion', { deletedMs: 5 }],
    ['limits', { limits: { requestsPerMinute: 5 } }],
    ['budgets', { budgets: [BUDGET] }],
    ['policy for a lost Redis', { onStoreUnavailable: 'LocalShare' }],
    ['version', { version: 2 }],
  ])('differ in their %s', (_, change) => {
    expect(sameEntry(ENTRY, { ...ENTRY, ...change })).toBe(false)
  })
})

describe('the record that gateways get from an entry', () => {
  test('is the record without the history of its verifiers', () => {
    const { verifiers, deletedMs: _, ...rest } = ENTRY
    expect(keyRecordOf(ENTRY)).toEqual({ ...rest, verifiers: verifiers.map(({ id, hash, expiresMs }) => ({ id, hash, expiresMs })) })
  })

  test('omits ended verifiers, and includes minted ones, whose Credential the user may already have', () => {
    const verifiers = (['Revoked', 'Voided', 'Minted', 'Issued'] as const).map((state) => ({ ...VERIFIER!, id: state, state }))
    expect(keyRecordOf({ ...ENTRY, verifiers }).verifiers.map(({ id }) => id)).toEqual(['Minted', 'Issued'])
  })

  test('holds its limits and budgets', () => {
    expect(keyRecordOf(LIMITED)).toMatchObject({ limits: { requestsPerMinute: 60 }, budgets: [BUDGET] })
    expect(Object.keys(keyRecordOf(ENTRY)), 'nothing is set without them').not.toEqual(expect.arrayContaining(['limits']))
  })

  test('reads a deleted key as Revoked', () => {
    expect(keyRecordOf({ ...ENTRY, deletedMs: 1 }).state).toBe('Revoked')
  })
})
