/** Everything that the operator ever stored in its Secrets stays readable for operator and gateways. Golden files are never changed. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { FORMAT } from '#contract/records/format.ts'
import { readKeyringEntry, writeKeyringEntry } from '#contract/records/keyring-entry.ts'
import { decodeModelRecord } from '#contract/records/model-record.ts'
import { unpackShard } from '#contract/records/shard-text.ts'
import { packShard } from '../support/pack-shard.ts'
import { credentialCodec, keyringCodec } from '../../operator/shards/sets.ts'
import { readSpendEntry, writeSpendEntry } from '../../operator/shards/spend-entry.ts'

const FOLDER = join(import.meta.dirname, '../golden/formats')
const versions = readdirSync(FOLDER).map((name) => Number(name.slice(1)))

describe.each(versions)('Secrets of version %i', (version) => {
  const golden = (name: string): Buffer => readFileSync(join(FOLDER, `v${version}`, name))
  const isWritten = version === FORMAT.writes

  test('entry of a key', () => {
    const text = golden('keyring-entry.json').toString()
    const entry = readKeyringEntry(text)
    expect(entry).toMatchObject({
      revision: 4711,
      namespace: 'shop',
      name: 'checkout-bot',
      state: 'Active',
      generation: 7,
      deletedMs: null,
    })
    expect(entry.models).toEqual([['llama-3.1-8b', 'qwen-*'], ['*']])
    expect(entry.verifiers.map(({ number, state }) => `${number} ${state}`)).toEqual(['1 Revoked', '2 Voided', '3 Issued', '4 Minted'])
    if (isWritten) expect(writeKeyringEntry(entry)).toBe(text)
  })

  test('entry of a key with limits and budgets', () => {
    const text = golden('keyring-entry-limits.json').toString()
    const entry = readKeyringEntry(text)
    expect(entry).toMatchObject({ limits: { requestsPerMinute: 60 }, budgets: [{ name: 'ever' }, { name: 'month', amount: 25_000_000 }] })
    if (isWritten) expect(writeKeyringEntry(entry)).toBe(text)
  })

  test('entry of a key whose value exists elsewhere, with a former value', () => {
    const text = golden('keyring-entry-hash.json').toString()
    const entry = readKeyringEntry(text)
    expect(entry.verifiers.map(({ origin, expiresMs, prefix }) => [origin, expiresMs, prefix])).toEqual([
      ['Hash', 1_790_000_000_000, 'sk-...en-1'],
      ['Hash', null, 'sk-...en-2'],
    ])
    if (isWritten) expect(writeKeyringEntry(entry)).toBe(text)
  })

  test('tombstone of a deleted key', () => {
    const text = golden('keyring-tombstone.json').toString()
    const entry = readKeyringEntry(text)
    expect(entry).toMatchObject({ name: 'former-bot', state: 'Revoked', deletedMs: 1_795_000_000_000 })
    expect(entry.models).toBeUndefined()
    if (isWritten) expect(writeKeyringEntry(entry)).toBe(text)
  })

  test('shard of the keyring', async () => {
    const bytes = golden('keyring-shard.gz')
    const { entries, damaged } = await keyringCodec(() => version).decode({ records: bytes.toString('base64') })
    expect([entries.map(({ entry }) => entry?.name), damaged]).toEqual([['checkout-bot', 'former-bot'], 0])
    const again = await packShard(
      { shards: 32, shard: 9 },
      entries.map(({ text }) => text),
    )
    if (isWritten) expect(gunzipSync(again)).toEqual(gunzipSync(bytes))
  })

  test('shard of the keyring in several blocks', async () => {
    const bytes = golden('keyring-shard-blocks.gz')
    const { entries, damaged } = await keyringCodec(() => version).decode({ records: bytes.toString('base64') })
    expect([new Set(entries.map(({ id }) => id)).size, damaged]).toEqual([80, 0])
    const again = await keyringCodec(() => version).encode({ shards: 64, shard: 3 }, entries)
    if (isWritten) expect(gunzipSync(Buffer.from(again['records'] ?? '', 'base64'))).toEqual(gunzipSync(bytes))
  })

  test('spend of a key', () => {
    const text = golden('spend-entry.json').toString()
    const entry = readSpendEntry(text)
    expect([entry.uid, [...entry.spent], entry.uncertain]).toEqual([
      '6f1c1f8e-0b0b-4a53-9d8e-0c7a3f1f2b11',
      [
        ['ever:Tokens:Lifetime:0', 123_456],
        ['month:Currency:Month:1767225600000', 24_999_999],
      ],
      { fromMs: 1_767_300_000_000, toMs: 1_767_300_009_000 },
    ])
    if (isWritten) expect(writeSpendEntry(entry)).toBe(text)
  })

  test('shard of the model records', async () => {
    const texts = await unpackShard(golden('models-shard.gz'))
    expect(texts.map((text) => decodeModelRecord(text).servedName)).toEqual(['llama-3.1-8b'])
  })

  test('shard of the backend credentials', async () => {
    const data = JSON.parse(golden('upstream-data.json').toString()) as Record<string, string>
    const { entries, damaged } = await credentialCodec.decode(data)
    expect([entries.map(({ entry }) => entry?.value), damaged]).toEqual([['an example and no credential'], 0])
    if (isWritten) expect(await credentialCodec.encode({ shards: 8, shard: 0 }, entries)).toEqual(data)
  })
})
