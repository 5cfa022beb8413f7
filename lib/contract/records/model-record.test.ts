import { describe, expect, test } from 'vitest'
import { UnknownVersion } from './format.ts'
import { decodeModelRecord, encodeModelRecord, type ModelRecord } from './model-record.ts'

const SUM = 'ab'.repeat(32)
const RECORD: ModelRecord = {
  version: 1,
  revision: 12,
  uid: 'm1',
  namespace: 'shop',
  name: 'llama',
  createdMs: 5,
  servedName: 'llama-3.1-8b',
  aliases: ['llama'],
  allowedNamespaces: ['shop'],
  timeouts: { firstByteSeconds: 600, idleSeconds: 120, totalSeconds: 3600 },
  backends: [
    {
      name: 'a',
      endpoints: ['10.1.2.3:8000'],
      service: 'llama.shop.svc:8000',
      url: null,
      upstreamModel: 'llama',
      weight: 100,
      routes: ['chat/completions', 'messages'],
      engine: 'Other',
      streamUsage: 'Inject',
      credentialSum: SUM,
      formerCredentialSum: null,
    },
  ],
}
const PRICES = { inputPerMillion: 1, outputPerMillion: 1, cachedInputPerMillion: 1 }
/** The same record as text. */
const WIRE = JSON.parse(encodeModelRecord(RECORD)) as { readonly backends: readonly object[] }

describe('model records', () => {
  test('without streamUsage let the gateway request usage, which is the default', () => {
    const backends = RECORD.backends.map((backend) => ({ ...backend, streamUsage: undefined }))
    expect(encodeModelRecord({ ...RECORD, backends })).toBe(encodeModelRecord(RECORD))
  })

  test('are read back as they were written', () => {
    expect(decodeModelRecord(encodeModelRecord(RECORD))).toEqual(RECORD)
    const open: ModelRecord = { ...RECORD, allowedNamespaces: '*' }
    expect(decodeModelRecord(encodeModelRecord(open))).toEqual(open)
  })

  test('of a later build are read without the fields that this one does not know', () => {
    const later = { ...WIRE, tier: { in: 1 }, backends: [{ ...WIRE.backends[0], accelerator: 'gpu' }] }
    expect(decodeModelRecord(JSON.stringify(later))).toEqual(RECORD)
  })

  test('for another build are not damaged', () => {
    expect(() => decodeModelRecord(JSON.stringify({ ...WIRE, v: 2 }))).toThrow(new UnknownVersion('version 2'))
    expect(() => decodeModelRecord(JSON.stringify({ ...WIRE, needs: ['prices'] }))).toThrow(new UnknownVersion('needs prices'))
  })

  test('have equal texts if they are equal, whatever the order of their fields', () => {
    const backends = RECORD.backends.map((backend) => Object.fromEntries(Object.entries(backend).toReversed()) as typeof backend)
    expect(encodeModelRecord({ ...RECORD, backends })).toBe(encodeModelRecord(RECORD))
  })

  test.each([
    ['another version', { v: 2 }],
    ['a need that this version does not know', { needs: ['prices'] }],
    ['a file name in place of the sum of a credential', { backends: [{ ...WIRE.backends[0], credentialSum: 'upstream.m1.a' }] }],
    ['no backend', { backends: [] }],
    ['no allowed namespace, not even its own', { allowedNamespaces: [''] }],
    ['a price that is not an integer', { pricing: { inputPerMillion: 0.15, outputPerMillion: 1, cachedInputPerMillion: 1 } }],
    ['a price below zero', { pricing: { inputPerMillion: 1, outputPerMillion: -1, cachedInputPerMillion: 1 } }],
    ['a price of 16 digits', { pricing: { inputPerMillion: 1e15, outputPerMillion: 1, cachedInputPerMillion: 1 } }],
    ['a price for cache writes that is a text', { pricing: { ...PRICES, cacheWritePerMillion: '1' } }],
    ['a price per call that is not an integer', { pricing: { ...PRICES, perRequest: 0.5 } }],
    ['a price per call below zero', { pricing: { ...PRICES, perRequest: -1 } }],
    ['half a price', { pricing: { inputPerMillion: 1 } }],
    ['a forwarded header that is not a name', { forwardHeaders: ['x\r\nauthorization'] }],
    ['17 forwarded headers', { forwardHeaders: Array.from({ length: 17 }, (_, at) => `x-${at}`) }],
    ['a forwarded header of 65 characters', { forwardHeaders: ['x'.repeat(65)] }],
    ['an answer of no tokens', { maxOutputTokens: 0 }],
    ['a time-out of nothing', { timeouts: { firstByteSeconds: 0, idleSeconds: 1, totalSeconds: 1 } }],
  ])('with %s are refused whole', (_, change) => {
    expect(() => decodeModelRecord(JSON.stringify({ ...WIRE, ...change }))).toThrow()
  })
})
