/** Every text ever written stays readable. The golden files of a version are never changed; the next version adds its own. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { FORMAT } from '#contract/records/format.ts'
import { decodeKeyRecord, encodeKeyRecord } from '#contract/records/key-record.ts'
import { decodeModelRecord, encodeModelRecord } from '#contract/records/model-record.ts'
import { decodeAcknowledgement, encodeAcknowledgement } from '#contract/records/revision-log.ts'

const FOLDER = join(import.meta.dirname, '../golden/formats')
const versions = readdirSync(FOLDER).map((name) => Number(name.slice(1)))
const golden = (version: number, name: string): string => readFileSync(join(FOLDER, `v${version}`, `${name}.json`), 'utf8')

describe.each(versions)('texts of version %i', (version) => {
  const isWritten = version === FORMAT.writes

  test('are of a version that this build reads', () => {
    expect(FORMAT.reads).toContain(version)
  })

  test('key record', () => {
    const text = golden(version, 'key-record')
    const record = decodeKeyRecord(text)
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
    if (isWritten) expect(encodeKeyRecord(record)).toBe(text)
  })

  test('key record with limits and budgets', () => {
    const text = golden(version, 'key-record-limits')
    const record = decodeKeyRecord(text)
    expect(record).toMatchObject({
      limits: { requestsPerMinute: 60, tokensPerMinute: 40_000, maxConcurrentRequests: 8 },
      budgets: [
        { name: 'ever', unit: 'Tokens', amount: 999_999_999_999_999, window: 'Lifetime', timeZone: 'UTC', onExceeded: 'Audit' },
        { name: 'month', unit: 'Currency', amount: 25_000_000, window: 'Month', timeZone: 'Europe/Berlin', onExceeded: 'Block' },
      ],
      onStoreUnavailable: 'LocalShare',
    })
    if (isWritten) expect(encodeKeyRecord(record)).toBe(text)
    if (isWritten) expect(encodeKeyRecord({ ...record, state: 'Suspended' })).toBe(golden(version, 'key-record-limits-suspended'))
  })

  test('key record of a value that exists elsewhere, which needs no feature', () => {
    const text = golden(version, 'key-record-hash')
    const record = decodeKeyRecord(text)
    expect(record.verifiers.map(({ id, expiresMs }) => [id, expiresMs])).toEqual([
      ['kM3xQ9aZ1b', 1_790_000_000_000],
      ['pT7wB2cN8d', null],
    ])
    expect(JSON.parse(text)).not.toHaveProperty('needs')
    if (isWritten) expect(encodeKeyRecord(record)).toBe(text)
  })

  test('model record with prices', () => {
    const text = golden(version, 'model-record-prices')
    const record = decodeModelRecord(text)
    expect(record).toMatchObject({
      pricing: { inputPerMillion: 150_000, outputPerMillion: 600_000, cachedInputPerMillion: 0 },
      contextTokens: 131_072,
      maxOutputTokens: 4096,
      backends: [{ streamUsage: 'Native' }, { streamUsage: 'Estimate' }],
    })
    if (isWritten) expect(encodeModelRecord(record)).toBe(text)
  })

  test('acknowledgement of a gateway that holds limits', () => {
    const text = golden(version, 'acknowledgement-limits')
    const ack = decodeAcknowledgement(text)
    expect(ack).toMatchObject({ features: ['limits'] })
    if (isWritten && ack) expect(encodeAcknowledgement(ack)).toBe(text)
  })

  test('model record', () => {
    const text = golden(version, 'model-record')
    const record = decodeModelRecord(text)
    expect(record).toMatchObject({ revision: 4712, servedName: 'llama-3.1-8b', aliases: ['llama'], allowedNamespaces: ['shop'] })
    expect(record.backends.map(({ name, endpoints, credentialSum }) => [name, endpoints.length, credentialSum?.length])).toEqual([
      ['pods', 2, undefined],
      ['hosted', 0, 64],
    ])
    if (isWritten) expect(encodeModelRecord(record)).toBe(text)
  })

  test('acknowledgement', () => {
    const text = golden(version, 'acknowledgement')
    const ack = decodeAcknowledgement(text)
    expect(ack).toMatchObject({ epoch: 'epoch-1', revision: 4711, source: 'Redis', ready: true, schemas: [1], features: [] })
    if (isWritten && ack) expect(encodeAcknowledgement(ack)).toBe(text)
  })
})
