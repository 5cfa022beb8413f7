/** What was ever written stays readable: the golden files of a version are never changed, only joined by those of the next one. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { FORMAT } from '../../gateway/shared/format.ts'
import { decodeKeyRecord, encodeKeyRecord } from '../../gateway/shared/key-record.ts'
import { decodeModelRecord, encodeModelRecord } from '../../gateway/shared/model-record.ts'
import { decodeAcknowledgement, encodeAcknowledgement } from '../../gateway/shared/revision-log.ts'

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
