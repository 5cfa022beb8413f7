import { describe, expect, test } from 'vitest'
import { decodeModelRecord, encodeModelRecord, type ModelRecord } from './model-record.ts'

const RECORD: ModelRecord = {
  v: 1,
  rev: 12,
  uid: 'm1',
  ns: 'shop',
  name: 'llama',
  created: 5,
  served: 'llama-3.1-8b',
  aliases: ['llama'],
  allow: ['shop'],
  to: { first: 600, idle: 120, total: 3600 },
  backends: [
    {
      name: 'a',
      eps: ['10.1.2.3:8000'],
      svc: 'llama.shop.svc:8000',
      url: null,
      model: 'llama',
      w: 100,
      messages: 'Native',
      auth: 'upstream.m1.a',
      authSum: 'ab',
    },
  ],
}

describe('model records', () => {
  test('have one text for all time: version and revision first', () => {
    expect(encodeModelRecord(RECORD)).toBe(
      '{"v":1,"rev":12,"uid":"m1","ns":"shop","name":"llama","created":5,"served":"llama-3.1-8b","aliases":["llama"],"allow":["shop"],' +
        '"to":{"first":600,"idle":120,"total":3600},"backends":[{"name":"a","eps":["10.1.2.3:8000"],"svc":"llama.shop.svc:8000","url":null,' +
        '"model":"llama","w":100,"messages":"Native","auth":"upstream.m1.a","authSum":"ab"}]}',
    )
  })

  test('are read back as they were written', () => {
    expect(decodeModelRecord(encodeModelRecord(RECORD))).toEqual(RECORD)
    const open: ModelRecord = { ...RECORD, allow: '*' }
    expect(decodeModelRecord(encodeModelRecord(open))).toEqual(open)
  })

  test.each([
    ['another version', { v: 2 }],
    ['a field that this version does not know', { price: { in: 1 } }],
    ['no backend', { backends: [] }],
    ['nobody who may use it, not even its own namespace', { allow: [''] }],
    ['a time-out of nothing', { to: { first: 0, idle: 1, total: 1 } }],
  ])('with %s are refused whole', (_, change) => {
    expect(() => decodeModelRecord(JSON.stringify({ ...RECORD, ...change }))).toThrow()
  })
})
