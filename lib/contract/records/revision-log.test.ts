import { describe, expect, test } from 'vitest'
import { acknowledgement, issuedKey, recordText } from '../../../test/support/records.ts'
import {
  decodeAcknowledgement,
  encodeAcknowledgement,
  lowestCommonVersion,
  MAX_ACKNOWLEDGEMENT_BYTES,
  MAX_UNREADABLE_RECORDS,
  revisionOf,
  stampRevision,
} from './revision-log.ts'

const uids = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `3f0c2a9e-0000-4000-8000-${String(index).padStart(12, '0')}`)

describe('an acknowledgement', () => {
  const ack = acknowledgement({ epoch: 'e1', revision: 10 })

  test('is read back as it was written; fields of a later build are ignored', () => {
    expect(decodeAcknowledgement(encodeAcknowledgement(ack))).toEqual(ack)
    const later = { ...(JSON.parse(encodeAcknowledgement(ack)) as object), mood: 'good' }
    expect(decodeAcknowledgement(JSON.stringify(later))).toEqual(ack)
  })

  test('of a later gateway proves what it proves, whatever it reports besides', () => {
    const wire = JSON.parse(encodeAcknowledgement(ack)) as object
    const read = (change: object) => decodeAcknowledgement(JSON.stringify({ ...wire, ...change }))
    expect(read({ backends: { 'm/a': { up: 1, total: 2, slow: 1 } } })?.backends).toEqual({ 'm/a': { up: 1, total: 2 } })
    const others = { backends: [], source: 'Snapshot', version: 7, features: 'all' }
    expect(read(others)).toMatchObject({ epoch: 'e1', revision: 10, ready: true, unreadable: [] })
    expect(read({ bad: 'none' }), 'what cannot be read proves nothing').toBeUndefined()
  })

  test.each(['', '{"v":1,', '{"v":2}', '{"v":1,"rev":-1}', '[]'])('%j is none', (text) => {
    expect(decodeAcknowledgement(text)).toBeUndefined()
  })

  test('stays below the length at which the operator drops it, however many records and backends are bad', () => {
    const backends = Object.fromEntries(uids(1_000).map((uid) => [`${uid}/${'b'.repeat(63)}`, { up: 0, total: 1000 }]))
    const text = encodeAcknowledgement({ ...ack, unreadable: uids(500), backends })
    expect(Buffer.byteLength(text)).toBeLessThan(MAX_ACKNOWLEDGEMENT_BYTES)
    expect(decodeAcknowledgement(text)?.unreadable).toHaveLength(MAX_UNREADABLE_RECORDS)
  })
})

describe('the version to write', () => {
  test('is one that every live process reads; no process, or an unreadable acknowledgement, counts as a reader of the oldest', () => {
    expect(lowestCommonVersion([{ schemas: [1] }, { schemas: [1, 2] }])).toBe(1)
    expect(lowestCommonVersion([{ schemas: [2, 3] }])).toBe(1)
    expect(lowestCommonVersion([{ schemas: [1] }, undefined])).toBe(1)
    expect(lowestCommonVersion([])).toBe(1)
  })
})

describe('the revision in a record text', () => {
  test('is written and read without parsing, of any version', () => {
    const text = recordText(issuedKey('a').record)
    expect(revisionOf(stampRevision(text, 4711))).toBe(4711)
    expect(revisionOf('{"v":9,"needs":["x"],"rev":5,"rest":{"rev":6}}')).toBe(5)
    expect(revisionOf('nothing')).toBeUndefined()
  })
})
