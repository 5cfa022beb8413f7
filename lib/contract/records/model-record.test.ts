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
      messages: 'Native',
      streamUsage: 'Inject',
      credentialSum: SUM,
      formerCredentialSum: null,
    },
  ],
}
/** The same with a price, and bounds of its answers. */
const PRICED: ModelRecord = {
  ...RECORD,
  pricing: { inputPerMillion: 150_000, outputPerMillion: 600_000, cachedInputPerMillion: 0 },
  contextTokens: 131_072,
  maxOutputTokens: 4096,
  backends: RECORD.backends.map((backend) => ({ ...backend, streamUsage: 'Estimate' })),
}
/** The same record as text. */
const WIRE = JSON.parse(encodeModelRecord(RECORD)) as { readonly backends: readonly object[] }

describe('model records', () => {
  test('have one text for all time: version and revision first', () => {
    expect(encodeModelRecord(RECORD)).toBe(
      '{"v":1,"rev":12,"uid":"m1","ns":"shop","name":"llama","created":5,"served":"llama-3.1-8b","aliases":["llama"],"allow":["shop"],' +
        '"to":{"first":600,"idle":120,"total":3600},"backends":[{"name":"a","eps":["10.1.2.3:8000"],"svc":"llama.shop.svc:8000","url":null,' +
        `"model":"llama","w":100,"messages":"Native","auth":"${SUM}","formerAuth":null}]}`,
    )
  })

  test('with prices and bounds have one text too; every version that reads version 1 may read it', () => {
    expect(encodeModelRecord(PRICED)).toBe(
      '{"v":1,"rev":12,"uid":"m1","ns":"shop","name":"llama","created":5,"served":"llama-3.1-8b","aliases":["llama"],"allow":["shop"],' +
        '"price":{"in":150000,"out":600000,"cached":0},"ctx":131072,"maxOut":4096,' +
        '"to":{"first":600,"idle":120,"total":3600},"backends":[{"name":"a","eps":["10.1.2.3:8000"],"svc":"llama.shop.svc:8000","url":null,' +
        `"model":"llama","w":100,"messages":"Native","usage":"Estimate","auth":"${SUM}","formerAuth":null}]}`,
    )
    expect(decodeModelRecord(encodeModelRecord(PRICED))).toEqual(PRICED)
  })

  test('omit streamUsage if the gateway requests usage, which is the default', () => {
    const backends = RECORD.backends.map((backend) => ({ ...backend, streamUsage: undefined }))
    expect(encodeModelRecord({ ...RECORD, backends })).toBe(encodeModelRecord(RECORD))
  })

  test('are read back as they were written', () => {
    expect(decodeModelRecord(encodeModelRecord(RECORD))).toEqual(RECORD)
    const open: ModelRecord = { ...RECORD, allowedNamespaces: '*' }
    expect(decodeModelRecord(encodeModelRecord(open))).toEqual(open)
  })

  test('of a later build are read without the fields that this one does not know', () => {
    const later = { ...WIRE, tier: { in: 1 }, backends: [{ ...WIRE.backends[0], engine: 'vllm' }] }
    expect(decodeModelRecord(JSON.stringify(later))).toEqual(RECORD)
  })

  test('for another build are not damaged', () => {
    expect(() => decodeModelRecord(JSON.stringify({ ...WIRE, v: 2 }))).toThrow(new UnknownVersion('version 2'))
    expect(() => decodeModelRecord(encodeModelRecord({ ...RECORD, needs: ['prices'] }))).toThrow(new UnknownVersion('needs prices'))
  })

  test('have equal texts if they are equal, whatever the order of their fields', () => {
    const backends = RECORD.backends.map((backend) => Object.fromEntries(Object.entries(backend).toReversed()) as typeof backend)
    expect(encodeModelRecord({ ...RECORD, backends })).toBe(encodeModelRecord(RECORD))
  })

  test.each([
    ['another version', { v: 2 }],
    ['a need that this version does not know', { needs: ['prices'] }],
    ['a file name in place of the sum of a credential', { backends: [{ ...WIRE.backends[0], auth: 'upstream.m1.a' }] }],
    ['no backend', { backends: [] }],
    ['no allowed namespace, not even its own', { allow: [''] }],
    ['a price that is not an integer', { price: { in: 0.15, out: 1, cached: 1 } }],
    ['a price below zero', { price: { in: 1, out: -1, cached: 1 } }],
    ['a price of 16 digits', { price: { in: 1e15, out: 1, cached: 1 } }],
    ['half a price', { price: { in: 1 } }],
    ['an answer of no tokens', { maxOut: 0 }],
    ['a time-out of nothing', { to: { first: 0, idle: 1, total: 1 } }],
  ])('with %s are refused whole', (_, change) => {
    expect(() => decodeModelRecord(JSON.stringify({ ...WIRE, ...change }))).toThrow()
  })
})
