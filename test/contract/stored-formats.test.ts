/**
 * Every text ever written, to Redis or into a Secret, stays readable for operator and gateways. The golden files of a version are never
 * changed; the next version adds its own.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { decodeAccountRecord, encodeAccountRecord } from '#contract/records/account-record.ts'
import { FORMAT } from '#contract/records/format.ts'
import { decodeKeyRecord, encodeKeyRecord } from '#contract/records/key-record.ts'
import { readKeyringEntry, writeKeyringEntry } from '#contract/records/keyring-entry.ts'
import { decodePlanRecord, encodePlanRecord } from '#contract/records/plan-record.ts'
import { decodeModelRecord, encodeModelRecord } from '#contract/records/model-record.ts'
import { decodeAcknowledgement, encodeAcknowledgement } from '#contract/records/revision-log.ts'
import { unpackShard } from '#contract/records/shard-text.ts'
import { packShard } from '../support/pack-shard.ts'
import { credentialCodec, keyringCodec } from '../../operator/shards/sets.ts'
import { readBook, writeBook } from '../../operator/shards/account-book.ts'
import { readCredit, writeCredit } from '../../operator/shards/credit-entry.ts'
import { readSpendEntry, writeSpendEntry } from '../../operator/shards/spend-entry.ts'

const FOLDER = join(import.meta.dirname, '../golden/formats')
const versions = readdirSync(FOLDER).map((name) => Number(name.slice(1)))

describe.each(versions)('version %i', (version) => {
  const isWritten = version === FORMAT.writes
  const golden = (name: string): Buffer => readFileSync(join(FOLDER, `v${version}`, name))
  const goldenText = (name: string): string => golden(`${name}.json`).toString()

  /** What a text says. The version that is written now writes the same text again. */
  function sameText<T>(name: string, read: (text: string) => T, write: (value: NonNullable<T>) => string): NonNullable<T> {
    const value = read(goldenText(name))
    if (value === undefined || value === null) throw new Error(`${name} cannot be read`)
    if (isWritten) expect(write(value)).toBe(goldenText(name))
    return value
  }

  test('is one that this build reads', () => {
    expect(FORMAT.reads).toContain(version)
  })

  test('key record', () => {
    const record = sameText('key-record', decodeKeyRecord, encodeKeyRecord)
    expect(record).toMatchObject({
      revision: 4711,
      namespace: 'shop',
      name: 'checkout-bot',
      state: 'Active',
      models: [['llama-3.1-8b', 'qwen-*'], ['*']],
    })
    expect(record.verifiers.map(({ id, expiresMs }) => [id, expiresMs])).toEqual([
      ['4fT9', null],
      ['7bQ2', 1_790_000_000_000],
    ])
  })

  test('key record with limits and budgets', () => {
    const record = sameText('key-record-limits', decodeKeyRecord, encodeKeyRecord)
    expect(record).toMatchObject({
      limits: { requestsPerMinute: 60, tokensPerMinute: 40_000, maxConcurrentRequests: 8 },
      budgets: [
        { name: 'ever', unit: 'Tokens', amount: 999_999_999_999_999, window: 'Lifetime', timeZone: 'UTC', onExceeded: 'Audit' },
        { name: 'month', unit: 'Currency', amount: 25_000_000, window: 'Month', timeZone: 'Europe/Berlin', onExceeded: 'Block' },
      ],
      onStoreUnavailable: 'LocalShare',
    })
    if (isWritten) expect(encodeKeyRecord({ ...record, state: 'Suspended' })).toBe(goldenText('key-record-limits-suspended'))
  })

  test('key record of a value that exists elsewhere, which needs no feature', () => {
    const record = sameText('key-record-hash', decodeKeyRecord, encodeKeyRecord)
    expect(record.verifiers.map(({ id, expiresMs }) => [id, expiresMs])).toEqual([
      ['kM3xQ9aZ1b', 1_790_000_000_000],
      ['pT7wB2cN8d', null],
    ])
    expect(JSON.parse(goldenText('key-record-hash'))).not.toHaveProperty('needs')
  })

  test('key record with an account, which needs a gateway that knows accounts', () => {
    const record = sameText('key-record-account', decodeKeyRecord, encodeKeyRecord)
    expect(record).toMatchObject({ account: 'account-1', state: 'Active' })
    expect(JSON.parse(goldenText('key-record-account'))).toMatchObject({ needs: ['accounts'] })
    expect(sameText('keyring-entry-account', readKeyringEntry, writeKeyringEntry)).toMatchObject({ account: 'account-1', askedMs: null })
  })

  test('records of a plan and of an account, and the books of a name', () => {
    expect(sameText('plan-record', decodePlanRecord, encodePlanRecord)).toMatchObject({
      revision: 4713,
      models: ['llama-3.1-8b', 'qwen-*'],
      keyDefault: { requestsPerMinute: 60 },
      keyCeiling: { requestsPerMinute: 120, maxConcurrentRequests: 8 },
      accountLimits: { tokensPerMinute: 40_000 },
    })
    expect(sameText('account-record', decodeAccountRecord, encodeAccountRecord)).toMatchObject({
      revision: 4714,
      state: 'Suspended',
      plan: 'plan-1',
      ledger: '00112233445566778899aabbccddeeff',
      budgets: [{ name: 'month' }],
    })
    expect(sameText('account-book', readBook, writeBook)).toMatchObject({ name: 'acme', owner: 'account-1', changes: 2, openFrom: 0 })
  })

  test('the books of an account that has spent, and a Credit in the books', () => {
    expect(sameText('account-book-spend', readBook, writeBook)).toMatchObject({
      ...{ owner: 'account-1', changes: 2, openFrom: 3, closedSpend: 9_007_199_254_740_993n },
      spent: new Map([
        ['3:5Cc8FjW0sJ1yQw2Q', 1_250_000],
        ['4:5Cc8FjW0sJ1yQw2Q', 20],
      ]),
    })
    expect(JSON.parse(goldenText('account-book-spend'))).toMatchObject({ needs: ['balances'] })
    expect(sameText('credit-entry', readCredit, writeCredit)).toEqual({
      id: 'stripe-1f40fc92da241694750979ee6cf582f2d5d7d28e',
      account: 'acme',
      micros: -25_000_000,
      type: 'Refund',
      time: '2026-11-26T10:00:00Z',
      reference: 're_3QxYz',
    })
  })

  test('record of a prepaid account, which needs a gateway that knows balances', () => {
    const record = sameText('account-record-balance', decodeAccountRecord, encodeAccountRecord)
    expect(record).toMatchObject({ state: 'Active', balance: { credits: '-9007199254740993', billing: 'Prepaid' } })
    expect(JSON.parse(goldenText('account-record-balance'))).toMatchObject({ needs: ['balances'] })
    expect(decodeAccountRecord(goldenText('account-record')), 'written before accounts had balances').not.toHaveProperty('balance')
  })

  test('model record with prices', () => {
    const record = sameText('model-record-prices', decodeModelRecord, encodeModelRecord)
    expect(record).toMatchObject({
      pricing: { inputPerMillion: 150_000, outputPerMillion: 600_000, cachedInputPerMillion: 0 },
      contextTokens: 131_072,
      maxOutputTokens: 4096,
      backends: [{ streamUsage: 'Native' }, { streamUsage: 'Estimate' }],
    })
  })

  test('model record with a price for each kind of token and each call', () => {
    const record = sameText('model-record-all-prices', decodeModelRecord, encodeModelRecord)
    expect(record.pricing).toEqual({
      ...{ inputPerMillion: 150_000, outputPerMillion: 600_000 },
      ...{ cachedInputPerMillion: 15_000, cacheWritePerMillion: 187_500, perRequest: 2_000 },
    })
    expect(JSON.parse(goldenText('model-record-all-prices')), 'an older gateway charges by the prices that it knows').not.toHaveProperty(
      'needs',
    )
  })

  test('model record with headers that its servers get', () => {
    const record = sameText('model-record-forward-headers', decodeModelRecord, encodeModelRecord)
    expect(record.forwardHeaders).toEqual(['x-conversation-id', 'x-tenant'])
    expect(decodeModelRecord(goldenText('model-record'))).not.toHaveProperty('forwardHeaders')
  })

  test('acknowledgement of a gateway that holds limits', () => {
    const ack = sameText('acknowledgement-limits', decodeAcknowledgement, encodeAcknowledgement)
    expect(ack).toMatchObject({ features: ['limits'] })
  })

  test('model record', () => {
    const record = sameText('model-record', decodeModelRecord, encodeModelRecord)
    expect(record).toMatchObject({ revision: 4712, servedName: 'llama-3.1-8b', aliases: ['llama'], allowedNamespaces: ['shop'] })
    expect(record.backends.map(({ name, endpoints, credentialProof }) => [name, endpoints.length, credentialProof?.length])).toEqual([
      ['pods', 2, undefined],
      ['hosted', 0, 64],
    ])
  })

  test('acknowledgement', () => {
    const ack = sameText('acknowledgement', decodeAcknowledgement, encodeAcknowledgement)
    expect(ack).toMatchObject({ epoch: 'epoch-1', revision: 4711, source: 'Redis', ready: true, schemas: [1], features: [] })
  })

  test('entry of a key', () => {
    const entry = sameText('keyring-entry', readKeyringEntry, writeKeyringEntry)
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
  })

  test('entry of a key with limits and budgets', () => {
    const entry = sameText('keyring-entry-limits', readKeyringEntry, writeKeyringEntry)
    expect(entry).toMatchObject({ limits: { requestsPerMinute: 60 }, budgets: [{ name: 'ever' }, { name: 'month', amount: 25_000_000 }] })
  })

  test('entry of a key whose value exists elsewhere, with a former value', () => {
    const entry = sameText('keyring-entry-hash', readKeyringEntry, writeKeyringEntry)
    expect(entry.verifiers.map(({ origin, expiresMs, prefix }) => [origin, expiresMs, prefix])).toEqual([
      ['Hash', 1_790_000_000_000, 'sk-...en-1'],
      ['Hash', null, 'sk-...en-2'],
    ])
  })

  test('tombstone of a deleted key', () => {
    const entry = sameText('keyring-tombstone', readKeyringEntry, writeKeyringEntry)
    expect(entry).toMatchObject({ name: 'former-bot', state: 'Revoked', deletedMs: 1_795_000_000_000 })
    expect(entry.models).toBeUndefined()
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
    const entry = sameText('spend-entry', readSpendEntry, writeSpendEntry)
    expect([entry.uid, [...entry.spent], entry.uncertain]).toEqual([
      '6f1c1f8e-0b0b-4a53-9d8e-0c7a3f1f2b11',
      [
        ['ever:Tokens:Lifetime:0', 123_456],
        ['month:Currency:Month:1767225600000', 24_999_999],
      ],
      { fromMs: 1_767_300_000_000, toMs: 1_767_300_009_000 },
    ])
  })

  test('shard of the model records', async () => {
    const texts = await unpackShard(golden('models-shard.gz'))
    expect(texts.map((text) => decodeModelRecord(text).servedName)).toEqual(['llama-3.1-8b'])
  })

  test('shard of the backend credentials', async () => {
    const data = JSON.parse(goldenText('upstream-data')) as Record<string, string>
    const { entries, damaged } = await credentialCodec.decode(data)
    expect([entries.map(({ entry }) => entry?.value), damaged]).toEqual([['an example and no credential'], 0])
    if (isWritten) expect(await credentialCodec.encode({ shards: 8, shard: 0 }, entries)).toEqual(data)
  })
})
