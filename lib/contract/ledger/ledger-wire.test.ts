import { describe, expect, test } from 'vitest'
import type { LedgerCall } from './ledger-call.ts'
import { ledgerFunctions } from './ledger-functions.ts'
import { bookingSlot, LEDGER_TIMING, rateTtlMs, slotCount } from './ledger-layout.ts'
import { decodeLedgerReply, encodeLedgerCall, LedgerReplyUnreadable } from './ledger-wire.ts'
import { redisFunctions } from '../redis/redis-functions.ts'
import { ledgerKeys } from '../redis/redis-keys.ts'

const CALL: LedgerCall = {
  subject: 'uid-1',
  process: 'p1',
  number: 7,
  acknowledged: 6,
  live: 2,
  earliestMs: 0,
  latestMs: Number.MAX_SAFE_INTEGER,
  wasAway: false,
  batch: undefined,
  reports: [{ field: 'b:Currency:Day:0', seed: 'seed-1', held: 1, spent: 2, acknowledged: 1, base: 0, seen: 9 }],
  permits: { limit: 5, held: 1, need: 1, ask: 1, want: 0 },
  rates: [{ kind: 'r', limit: 60, need: 1, ask: 2, want: 3, leaseMs: 1_000 }],
  budgets: [],
  balance: undefined,
}

describe('a call on the wire', () => {
  test('is one argument in JSON, without absent parts of the call', () => {
    const { batch: _, balance: __, ...said } = CALL
    expect(JSON.parse(encodeLedgerCall(CALL))).toEqual(said)
  })

  test('its reply is read in the order of the call', () => {
    const reply = ['granted', 1_000, 'seed-1', 40, 1, 3, 0, 3, 62, 57, 61_000, 0]
    expect(decodeLedgerReply(CALL, reply)).toEqual({
      status: 'granted',
      nowMs: 1_000,
      seed: 'seed-1',
      spent: [40],
      permits: { grant: 1, rest: 3, waitMs: 0 },
      rates: [{ grant: 3, slot: 62, rest: 57, resetMs: 61_000, waitMs: 0 }],
      budgets: [],
    })
  })

  test('a call with a balance has two numbers for its credits, and its reply ends with the balance', () => {
    const balance = {
      credits: { high: -1, low: 999_999_999_999_999 },
      period: 3,
      held: 4,
      spent: [{ period: 3, spent: 7 }],
      need: 1,
      ask: 1,
      want: 0,
    }
    const call = { ...CALL, balance }
    expect(JSON.parse(encodeLedgerCall(call))).toMatchObject({ balance })
    const words = (...ofBalance: number[]) => ['short', 1_000, 'seed-1', 40, 0, 3, 0, 0, 62, 57, 0, 0, ...ofBalance]
    expect(decodeLedgerReply(call, words(3, 2, 0, -8, 4, 1))).toMatchObject({
      balance: { period: 3, openFrom: 2, grant: 0, unspent: -8, held: 4, short: 'Exhausted' },
    })
    expect(decodeLedgerReply(call, words(3, -1, 0, 0, 4, 0))).toMatchObject({ balance: { openFrom: undefined, short: 'No' } })
    expect(() => decodeLedgerReply(call, words())).toThrow(LedgerReplyUnreadable)
  })

  test.each([
    [undefined],
    ['granted'],
    [['granted', 1_000]],
    [['stale', 1_000, 5, 6]],
    [['stale', '1000', 5]],
    [['stale', 1_000.5, 5]],
    [['stale', 1_000, 2 ** 53]],
    [['new', 1_000]],
  ])('an invalid reply is refused: %j', (reply) => {
    expect(() => decodeLedgerReply(CALL, reply)).toThrow(LedgerReplyUnreadable)
  })
})

describe('the library of the ledger', () => {
  test('has other names than the library of the projection, for every prefix', () => {
    expect(ledgerFunctions('hg').acquire).toBe('hg_ledger_v1_acquire')
    expect(ledgerFunctions('my-app').library).toBe('my_2d_app_ledger_v1')
    const { code, ...names } = ledgerFunctions('hg')
    for (const name of Object.values(names)) expect(code).toContain(name)
    for (const name of Object.values(redisFunctions('hg'))) expect(Object.values(names)).not.toContain(name)
    expect(code).toMatch(/^#!lua name=hg_ledger_v1\n-- headgate revision \d+\n/)
  })

  test('never joins a number with `..`, which writes large ones as 1e+15', () => {
    const { code } = ledgerFunctions('hg')
    expect(code.match(/\.\. *(now|slot|amount|held|spent|total|start)/)).toBeNull()
  })
})

describe('the layout', () => {
  test('keeps all keys of a subject under one hash tag', () => {
    expect(Object.values(ledgerKeys('hg', 'uid-1')).every((key) => key.startsWith('hg:l:{uid-1}:'))).toBe(true)
  })

  test('books a unit until no admission under its lease can count any more', () => {
    for (const nowMs of [0, 1, 999, 1_000, 61_000]) {
      const endsMs = bookingSlot(nowMs, 1_000, LEDGER_TIMING) * LEDGER_TIMING.slotMs
      expect(endsMs).toBeGreaterThan(nowMs + 61_000)
      expect(endsMs).toBeLessThanOrEqual(nowMs + 62_000)
    }
  })

  test('collects windows only after their last slot', () => {
    expect(rateTtlMs(LEDGER_TIMING)).toBe(75_000)
    expect(slotCount(LEDGER_TIMING)).toBe(72)
  })
})
