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
    expect(record).toMatchObject({ rev: 4711, ns: 'shop', name: 'checkout-bot', st: 'Active', models: [['llama-3.1-8b', 'qwen-*'], ['*']] })
    expect(record.ver.map(({ id, exp }) => [id, exp])).toEqual([
      ['4fT9', null],
      ['7bQ2', 1_790_000_000_000],
    ])
    if (isWritten) expect(encodeKeyRecord(record)).toBe(text)
  })

  test('model record', () => {
    const text = golden(version, 'model-record')
    const record = decodeModelRecord(text)
    expect(record).toMatchObject({ rev: 4712, served: 'llama-3.1-8b', aliases: ['llama'], allow: ['shop'] })
    expect(record.backends.map(({ name, eps, auth }) => [name, eps.length, auth?.length])).toEqual([
      ['pods', 2, undefined],
      ['hosted', 0, 64],
    ])
    if (isWritten) expect(encodeModelRecord(record)).toBe(text)
  })

  test('acknowledgement', () => {
    const text = golden(version, 'acknowledgement')
    const ack = decodeAcknowledgement(text)
    expect(ack).toMatchObject({ epoch: 'epoch-1', rev: 4711, source: 'Redis', ready: true, schemas: [1], features: [] })
    if (isWritten && ack) expect(encodeAcknowledgement(ack)).toBe(text)
  })
})
