import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hashCredential } from './credential.ts'
import { decodeKeyRecord, encodeKeyRecord, type KeyRecord } from '../records/key-record.ts'
import { type KeyringEntry, readKeyringEntry, writeKeyringEntry } from '../records/keyring-entry.ts'
import { unpackShard } from '../records/shard-text.ts'
import { packShard } from '../../../test/support/pack-shard.ts'

const whole = fc.nat({ max: Number.MAX_SAFE_INTEGER })
const time = fc.option(whole)
const word = fc.string({ minLength: 1, maxLength: 30, unit: 'grapheme' })
const hash = fc.string().map(hashCredential)

const record = fc.record({
  version: fc.constant(1 as const),
  revision: whole,
  uid: word,
  namespace: word,
  name: word,
  state: fc.constantFrom('Active' as const, 'Suspended' as const, 'Revoked' as const),
  expiresMs: time,
  generation: whole,
  models: fc.array(fc.array(word, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 }),
  verifiers: fc.array(fc.record({ id: word, hash, expiresMs: time }), { maxLength: 8 }),
})

const entry = record.chain((base) =>
  fc
    .record({
      deletedMs: time,
      verifiers: fc.array(
        fc.record({
          id: word,
          hash,
          expiresMs: time,
          number: fc.integer({ min: 1, max: 1000 }),
          state: fc.constantFrom('Minted' as const, 'Issued' as const, 'Voided' as const, 'Revoked' as const),
          createdMs: whole,
          prefix: fc.string({ maxLength: 13 }),
        }),
        { maxLength: 4 },
      ),
    })
    .map((rest): KeyringEntry => ({ ...base, ...rest })),
)

test('any key record survives being written and read', () => {
  fc.assert(
    fc.property(record, (value: KeyRecord) => {
      expect(decodeKeyRecord(encodeKeyRecord(value))).toEqual(value)
    }),
  )
})

test('any keyring survives a write and a read, whatever its names contain', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(entry, { maxLength: 20 }), async (entries) => {
      const bytes = await packShard(
        { shards: 32, shard: 0 },
        entries.map((one) => writeKeyringEntry(one)),
      )
      expect((await unpackShard(bytes)).map(readKeyringEntry)).toEqual(entries)
    }),
  )
})
