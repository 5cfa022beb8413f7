import { expect, test } from 'vitest'
import { issuedKey, keyringEntry } from '../../test/support/records.ts'
import { tombstoneOf } from '#contract/records/tombstone.ts'
import { HashHolders } from './hash-holders.ts'

const entry = keyringEntry(issuedKey('a').record)
const [verifier] = entry.verifiers
const hash = verifier!.hash

test('a key holds its live values, durable or pending, and no others', () => {
  const holders = new HashHolders()
  holders.set('a', [undefined, entry])
  expect([...holders.of(hash)]).toEqual(['a'])
  holders.set('a', [entry, { ...entry, verifiers: [] }])
  expect([...holders.of(hash)], 'durable still').toEqual(['a'])
  expect(holders.set('a', [{ ...entry, verifiers: [{ ...verifier!, state: 'Revoked' }] }, undefined])).toEqual([hash])
  expect([...holders.of(hash)]).toEqual([])
})

test('two keys may hold one value, and each releases it separately', () => {
  const holders = new HashHolders()
  holders.set('a', [entry])
  holders.set('b', [{ ...entry, uid: 'b' }])
  expect([...holders.of(hash)]).toEqual(['a', 'b'])
  expect(holders.set('a', [tombstoneOf(entry, 7)])).toEqual([hash])
  expect([...holders.of(hash)]).toEqual(['b'])
  expect(holders.set('b', [undefined])).toEqual([hash])
  expect(holders.set('b', [undefined])).toEqual([])
})
