/** The promises of every store of the ledger to a gateway process. The suite runs on memory and on a real Redis. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { LedgerStore } from '../../gateway/limits/ledger.ts'
import type { BalanceStore } from '../../operator/books/balance-store.ts'
import {
  NEVER,
  type BudgetReport,
  type BudgetRequest,
  type LedgerAnswer,
  type LedgerBatch,
  type LedgerCall,
  type PermitRequest,
  type RateRequest,
} from '#contract/ledger/ledger-call.ts'
import { bookingSlot, LEDGER_TIMING, MAX_SUM } from '#contract/ledger/ledger-layout.ts'

export interface LedgerStoreSubject {
  readonly store: LedgerStore
  setClock(nowMs: number): Promise<void>
  seed(subject: string, seed: string, checkpoints?: ReadonlyArray<readonly [field: string, spent: number]>): Promise<unknown>
  reap(subject: string, process: string): Promise<unknown>
  forget(subject: string, fields: readonly string[]): Promise<unknown>
  /** The balances as the operator sees them. */
  readonly balances: BalanceStore
  /** Deletes everything about a subject, as a Redis that lost its data. */
  wipe(subject: string): Promise<unknown>
}

const START_MS = Date.UTC(2026, 0, 14, 12, 0, 0, 400)
const DAY_MS = 86_400_000
const TODAY = Math.floor(START_MS / DAY_MS) * DAY_MS
const FIELD = `day:Currency:Day:${TODAY}`
const LIFE = { startMs: 0, endMs: Number.MAX_SAFE_INTEGER }

export function describeLedgerStore(name: string, makeSubject: () => Promise<LedgerStoreSubject>): void {
  describe(`${name} as a store of the ledger:`, () => {
    let subject: LedgerStoreSubject
    let nowMs: number
    let number: number

    beforeEach(async () => {
      subject = await makeSubject()
      number = 0
      await at(START_MS)
    })

    async function at(ms: number): Promise<void> {
      nowMs = ms
      await subject.setClock(ms)
    }
    const call = async (overrides: Partial<LedgerCall> = {}) => subject.store.call(callOf({ number: (number += 1), ...overrides }))
    async function answer(overrides: Partial<LedgerCall> = {}): Promise<LedgerAnswer> {
      const reply = await call(overrides)
      if (reply.status !== 'granted' && reply.status !== 'short') throw new Error(`no answer: ${JSON.stringify(reply)}`)
      return reply
    }

    it('grants the need, then the waiting requests that fit, then half of the rest divided by the live processes', async () => {
      expect((await answer({ rates: [rate({ limit: 100, need: 1, ask: 5 })] })).rates).toMatchObject([{ grant: 5, rest: 95 }])
      expect((await answer({ live: 4, rates: [rate({ limit: 100, need: 1, ask: 1, want: 50 })] })).rates).toMatchObject([
        { grant: 11, rest: 84 },
      ])
      expect((await answer({ rates: [rate({ limit: 100, need: 1, ask: 500 })] })).rates).toMatchObject([{ grant: 84, rest: 0 }])
    })

    it('grants nothing of any limit when one need does not fit, and reports the wait for each limit', async () => {
      await answer({ rates: [rate({ limit: 10, need: 10, ask: 10 })] })
      const rates = [rate({ limit: 10, need: 1, ask: 1 }), rate({ kind: 't', limit: 100, need: 5, ask: 5 })]
      const reply = await answer({ rates, permits: permits({ limit: 3, need: 1, ask: 1 }) })
      expect(reply).toMatchObject({ status: 'short', permits: { grant: 0, rest: 3, waitMs: 0 } })
      expect(reply.rates).toMatchObject([
        { grant: 0, rest: 0, waitMs: 61_600 },
        { grant: 0, rest: 100, waitMs: 0 },
      ])
    })

    it('a need above the limit never fits', async () => {
      expect((await answer({ rates: [rate({ limit: 5, need: 6, ask: 6 })] })).rates).toMatchObject([{ grant: 0, waitMs: NEVER }])
    })

    it('the reported wait is exact: the same need fits after the wait, and not 1 ms earlier', async () => {
      await answer({ rates: [rate({ limit: 10, need: 10, ask: 10 })] })
      const waitMs = (await answer({ rates: [rate({ limit: 10, need: 1, ask: 1 })] })).rates[0]?.waitMs ?? 0
      await at(nowMs + waitMs - 1)
      expect((await answer({ rates: [rate({ limit: 10, need: 1, ask: 1 })] })).status).toBe('short')
      await at(nowMs + 1)
      expect((await answer({ rates: [rate({ limit: 10, need: 1, ask: 1 })] })).status).toBe('granted')
    })

    it('higress#1933: the limit in the present call counts, and not the limit of an earlier call', async () => {
      await answer({ rates: [rate({ limit: 10, need: 4, ask: 4 })] })
      expect((await answer({ rates: [rate({ limit: 3, need: 1, ask: 1 })] })).rates).toMatchObject([{ rest: -1, grant: 0 }])
      expect((await answer({ rates: [rate({ limit: 5, need: 1, ask: 1 })] })).rates).toMatchObject([{ rest: 0, grant: 1 }])
    })

    it('a call with the number of an earlier call has no effect', async () => {
      await answer({ number: 5, rates: [rate({ limit: 10, need: 3, ask: 3 })] })
      expect(await call({ number: 5, rates: [rate({ limit: 10, need: 3, ask: 3 })] })).toMatchObject({ status: 'stale', number: 5 })
      expect(await call({ number: 4, batch: batch({ debts: { r: 0, t: 50 } }) })).toMatchObject({ status: 'stale' })
      expect((await answer({ number: 6, rates: [rate({ limit: 10 })] })).rates).toMatchObject([{ rest: 7 }])
    })

    it('each process numbers its calls independently of the others', async () => {
      await answer({ number: 5 })
      expect((await call({ process: 'p2', number: 1 })).status).toBe('granted')
    })

    it('a store that has lost acknowledged calls answers so, and the call has no effect', async () => {
      await answer({ number: 5, batch: batch({ number: 4 }) })
      await subject.wipe('s')
      const lost = await call({ number: 6, acknowledged: 5, rates: [rate({ limit: 10, need: 3, ask: 3 })] })
      expect(lost).toMatchObject({ status: 'lost', number: 0, batch: 0 })
      expect((await answer({ number: 7, rates: [rate({ limit: 10 })] })).rates).toMatchObject([{ rest: 10 }])
    })

    it('a batch counts once: refunds go into their slot, and debts may exceed the limit', async () => {
      const slot = (await answer({ rates: [rate({ kind: 't', limit: 100, need: 80, ask: 80 })] })).rates[0]?.slot ?? 0
      const changes = batch({ number: 2, refunds: [{ kind: 't', slot, amount: 30 }], debts: { r: 0, t: 70 } })
      expect((await answer({ batch: changes, rates: [rate({ kind: 't', limit: 100 })] })).rates).toMatchObject([{ rest: -20 }])
      expect((await answer({ batch: changes, rates: [rate({ kind: 't', limit: 100 })] })).rates).toMatchObject([{ rest: -20 }])
    })

    it('a refund takes back no more than its slot holds, and nothing from a slot that has ended', async () => {
      const { slot = 0 } = (await answer({ rates: [rate({ limit: 10, need: 4, ask: 4 })] })).rates[0] ?? {}
      await answer({ batch: batch({ number: 10, refunds: [{ kind: 'r', slot, amount: 99 }] }) })
      expect((await answer({ rates: [rate({ limit: 10, need: 6, ask: 6 })] })).rates).toMatchObject([{ rest: 4 }])
      const late = batch({ number: 11, refunds: [{ kind: 'r', slot: slot - 1_000, amount: 5 }] })
      expect((await answer({ batch: late, rates: [rate({ limit: 10 })] })).rates).toMatchObject([{ rest: 4 }])
    })

    it('admissions during an outage are booked; an admission of a slot far ahead goes into the last slot that a lease can reach', async () => {
      const slot = bookingSlot(nowMs, 0, LEDGER_TIMING)
      const bookings = [
        { kind: 'r' as const, slot, amount: 3 },
        { kind: 'r' as const, slot: slot + 10_000, amount: 2 },
        { kind: 'r' as const, slot: 5, amount: 9 },
      ]
      expect((await answer({ batch: batch({ bookings }), rates: [rate({ limit: 10 })] })).rates).toMatchObject([{ rest: 5 }])
      await at(nowMs + 61_000)
      expect((await answer({ rates: [rate({ limit: 10 })] })).rates).toMatchObject([{ rest: 8 }])
      await at(nowMs + 12_000)
      expect((await answer({ rates: [rate({ limit: 10 })] })).rates).toMatchObject([{ rest: 10 }])
    })

    it('#14204, ulule/limiter#233, shenyu#6649: at the limit for 10 windows the window moves on', async () => {
      let granted = 0
      for (let i = 0; i < 300; i += 1) {
        granted += (await answer({ rates: [rate({ limit: 30, need: 1, ask: 1 })] })).rates[0]?.grant ?? 0
        await at(nowMs + 2_000)
      }
      expect(granted).toBeGreaterThan(10 * 30 * 0.95)
      expect(granted).toBeLessThanOrEqual(11 * 30)
    })

    it('the store holds its time when the clock goes back a little, and moves its windows when the clock is corrected by more', async () => {
      await answer({ rates: [rate({ limit: 10, need: 10, ask: 10 })] })
      await at(START_MS - 4_000)
      expect((await answer()).nowMs).toBe(START_MS)
      await at(START_MS - 3_600_000)
      expect(await answer({ rates: [rate({ limit: 10 })] })).toMatchObject({ nowMs: START_MS - 3_600_000, rates: [{ rest: 0 }] })
      await at(START_MS - 3_600_000 + 72_000)
      expect((await answer({ rates: [rate({ limit: 10 })] })).rates).toMatchObject([{ rest: 10 }])
    })

    it('L2 a clock that jumps ends no window early, for processes that know the time and for new ones', async () => {
      await answer({ rates: [rate({ limit: 10, need: 10, ask: 10 })] })
      await at(START_MS + 30_000)
      const known = await answer({ earliestMs: START_MS + 5, latestMs: START_MS + 10, rates: [rate({ limit: 10, need: 1, ask: 1 })] })
      expect(known).toMatchObject({ nowMs: START_MS + 10, rates: [{ grant: 0, rest: 0 }] })
      await at(START_MS + 40_000)
      expect(await answer({ process: 'new', rates: [rate({ limit: 10 })] })).toMatchObject({
        nowMs: START_MS + 10_010,
        rates: [{ rest: 0 }],
      })
      await at(START_MS + 30_000 + 72_000)
      expect((await answer({ process: 'new', rates: [rate({ limit: 10 })] })).rates).toMatchObject([{ rest: 10 }])
    })

    it('L2 a clock that is set back holds no window longer', async () => {
      await answer({ rates: [rate({ limit: 10, need: 10, ask: 10 })] })
      await at(START_MS - 30_000 + 72_000)
      const bounds = { earliestMs: START_MS + 71_999, latestMs: START_MS + 72_001 }
      expect(await answer({ ...bounds, rates: [rate({ limit: 10 })] })).toMatchObject({ nowMs: START_MS + 71_999, rates: [{ rest: 10 }] })
      expect((await answer({ process: 'new' })).nowMs).toBe(START_MS + 71_999)
    })

    it('a clock that jumps by more than five minutes is believed', async () => {
      await answer()
      await at(START_MS + 301_000)
      expect((await answer({ earliestMs: START_MS, latestMs: START_MS + 10 })).nowMs).toBe(START_MS + 301_000)
    })

    it('a window that is empty during a correction of the clock counts the requests after the correction', async () => {
      await answer({ rates: [rate({ limit: 10, need: 1, ask: 1 })] })
      await at(START_MS + 3_600_000)
      await answer({ rates: [rate({ limit: 10 })] })
      await at(START_MS)
      await answer() // the first call with the corrected clock books nothing
      expect((await answer({ rates: [rate({ limit: 10, need: 10, ask: 10 })] })).rates).toMatchObject([{ grant: 10 }])
      expect((await answer({ rates: [rate({ limit: 10, need: 1, ask: 1 })] })).rates).toMatchObject([{ grant: 0, rest: 0 }])
    })

    it('#20256, #28160: permits are counted by process and expire with one that is silent for 15 s', async () => {
      expect((await answer({ permits: permits({ limit: 2, need: 1, ask: 1 }) })).permits).toEqual({ grant: 1, rest: 1, waitMs: 0 })
      const other = { process: 'p2', permits: permits({ limit: 2, need: 2, ask: 2 }) }
      expect((await answer(other)).permits).toEqual({ grant: 0, rest: 1, waitMs: 1_000 })
      await at(nowMs + 15_001)
      expect((await answer(other)).permits).toEqual({ grant: 2, rest: 0, waitMs: 0 })
      expect((await answer({ process: 'p2', permits: permits({ limit: 2, held: 0 }) })).permits).toMatchObject({ rest: 2 })
    })

    it('keeps permits idle only for a limit of 8 per process of which half is free', async () => {
      const ask = (limit: number, process: string) =>
        answer({ process, live: 1, permits: permits({ limit, need: 1, ask: 1, want: 3 }) }).then((reply) => reply.permits?.grant)
      expect(await ask(7, 'p1')).toBe(1)
      expect(await ask(20, 'p2')).toBe(4)
    })

    it('without a seed no budget is granted, while batches and permits count', async () => {
      const reply = await call({ batch: batch({ debts: { r: 0, t: 7 } }), permits: permits({ limit: 3, held: 2 }), budgets: [budget()] })
      expect(reply.status).toBe('unseeded')
      const { rates, permits: after } = await answer({
        process: 'p2',
        rates: [rate({ kind: 't', limit: 10 })],
        permits: permits({ limit: 3 }),
      })
      expect([rates[0]?.rest, after?.rest]).toEqual([3, 1])
    })

    it('a seed counts once, with its checkpoints', async () => {
      expect(await subject.seed('s', 'seed-1', [[FIELD, 400]])).toBe('seed-1')
      expect(await subject.seed('s', 'seed-2', [[FIELD, 0]])).toBe('seed-1')
      expect(await answer({ budgets: [budget({ amount: 500 })] })).toMatchObject({
        seed: 'seed-1',
        budgets: [{ spent: 400, startMs: TODAY }],
      })
    })

    it('W4 sums stop at the largest number, and the subject is answered afterwards', async () => {
      await subject.seed('s', 'seed-1')
      const spent = report({ held: Number.MAX_SAFE_INTEGER, spent: Number.MAX_SAFE_INTEGER })
      for (const process of ['p1', 'p2', 'p3']) await answer({ process, reports: [spent] })
      expect(await answer({ process: 'p4', budgets: [budget({ amount: 500, need: 1, ask: 1 })] })).toMatchObject({
        status: 'short',
        budgets: [{ spent: MAX_SUM, held: MAX_SUM, short: 'Spent' }],
      })
    })

    it('the time of the store picks the window of a budget; outside of both windows of the call nothing is granted', async () => {
      await subject.seed('s', 'seed-1')
      const tomorrow = { startMs: TODAY + DAY_MS, endMs: TODAY + 2 * DAY_MS }
      const dayAfter = { startMs: TODAY + 2 * DAY_MS, endMs: TODAY + 3 * DAY_MS }
      const early = budget({ windows: [tomorrow, dayAfter], need: 5, ask: 5 })
      expect((await call({ budgets: [early] })).status).toBe('window')
      await at(TODAY + DAY_MS)
      expect((await answer({ budgets: [early] })).budgets).toMatchObject([{ startMs: tomorrow.startMs, grant: 5 }])
      await at(TODAY + 2 * DAY_MS)
      expect((await answer({ budgets: [early] })).budgets).toMatchObject([{ startMs: dayAfter.startMs, grant: 5 }])
    })

    it('a refusal because of spend differs from a refusal because of holds of running requests', async () => {
      await subject.seed('s', 'seed-1')
      await answer({ budgets: [budget({ amount: 100, need: 60, ask: 60 })] })
      const second = { process: 'p2', budgets: [budget({ amount: 100, need: 60, ask: 60 })] }
      expect((await answer(second)).budgets).toMatchObject([{ short: 'Held', held: 60, grant: 0 }])
      await answer({ reports: [report({ held: 0, spent: 60 })] })
      expect((await answer(second)).budgets).toMatchObject([{ short: 'Spent', spent: 60, held: 0 }])
    })

    it('a float is at most 1 in 100 of the remaining amount, and nothing within the last twentieth of the budget', async () => {
      await subject.seed('s', 'seed-1')
      const want = budget({ amount: 10_000, need: 10, ask: 10, want: 5_000 })
      expect((await answer({ budgets: [want] })).budgets[0]?.grant).toBe(10 + 99)
      await answer({ reports: [report({ held: 0, spent: 9_600 })] })
      expect((await answer({ budgets: [want] })).budgets[0]?.grant).toBe(10)
    })

    it('#27639, #30460: reports are absolute, so that a lost answer and a repeated report change nothing', async () => {
      await subject.seed('s', 'seed-1')
      await answer({ budgets: [budget({ amount: 1_000, need: 300, ask: 300 })] })
      for (let i = 0; i < 3; i += 1) await answer({ reports: [report({ held: 20, spent: 50 })] })
      expect((await answer({ process: 'p2', budgets: [budget({ amount: 1_000 })] })).budgets).toMatchObject([{ spent: 50, held: 20 }])
      expect((await answer({ reports: [report({ held: 0, spent: 40 })] })).spent).toEqual([50])
    })

    it('after a wipe the highest spend that any process has seen counts, and only unacknowledged spend is added', async () => {
      await subject.seed('s', 'seed-1')
      await answer({ reports: [report({ spent: 100 })] })
      await answer({ process: 'p2', reports: [report({ spent: 40 })] })
      await subject.wipe('s')
      await subject.seed('s', 'seed-2', [[FIELD, 90]])
      const first = await answer({ number: 50, reports: [report({ seed: 'seed-1', spent: 105, acknowledged: 100, seen: 100 })] })
      expect(first.spent).toEqual([105])
      const second = await answer({
        process: 'p2',
        number: 51,
        reports: [report({ seed: 'seed-1', spent: 40, acknowledged: 40, seen: 140 })],
      })
      expect(second.spent).toEqual([145])
    })

    /** Two processes that have spent 100 and 50, and a store that goes back to a state with 20, of the same seed. */
    async function goneBack(): Promise<void> {
      await subject.seed('s', 'seed-1')
      await answer({ reports: [report({ spent: 100 })] })
      await answer({ process: 'p2', reports: [report({ spent: 50 })] })
      await subject.wipe('s')
      await subject.seed('s', 'seed-1', [[FIELD, 20]])
    }
    const first = { reports: [report({ seed: 'seed-1', spent: 105, acknowledged: 100, seen: 150 })] }
    const ofFrozen = report({ seed: 'seed-1', spent: 50, acknowledged: 50, seen: 150 })
    const frozen = { process: 'p2', reports: [ofFrozen] }

    it('L7 a process that knows of more spend than a store that went back makes the budgets restart, and each spend counts once', async () => {
      await goneBack()
      const asks = { ...first, permits: permits({ limit: 3, held: 2 }), batch: batch({ debts: { r: 0, t: 7 } }) }
      expect((await call(asks)).status).toBe('lost')
      const again = await answer(asks)
      expect([again.spent, again.seed === 'seed-1', again.permits?.rest]).toEqual([[155], false, 1])
      expect((await answer(frozen)).spent).toEqual([155])
      expect((await answer({ ...frozen, reports: [{ ...ofFrozen, seed: again.seed }] })).spent, 'a repeated report').toEqual([155])
      const next = { process: 'p2', reports: [report({ seed: again.seed, spent: 60, acknowledged: 50, seen: 155 })] }
      expect((await answer(next)).spent).toEqual([165])
    })

    it('L7 a seed above the spend of a store that went back restarts the budgets, and each spend counts once', async () => {
      await goneBack()
      const life = 'life:Tokens:Lifetime:0'
      await answer({ process: 'p3', reports: [report({ spent: 7 }), report({ field: life, spent: 9, held: 2 })] })
      expect(await subject.seed('s', 'seed-2', [[FIELD, 150]])).toBe('seed-2')
      expect(await subject.seed('s', 'seed-3', [[FIELD, 149]])).toBe('seed-2')
      expect((await answer(first)).spent).toEqual([155])
      expect((await answer(frozen)).spent).toEqual([155])
      const third = [
        report({ seed: 'seed-1', spent: 8, acknowledged: 7, seen: 27 }),
        report({ seed: 'seed-1', field: life, spent: 9, acknowledged: 9, seen: 9, held: 2 }),
      ]
      expect((await answer({ process: 'p3', reports: third })).spent).toEqual([156, 9])
      const reads = await answer({ budgets: [budget({ budget: 'life:Tokens:Lifetime', windows: [LIFE, LIFE] })] })
      expect(reads.budgets).toMatchObject([{ spent: 9, held: 2 }])
    })

    it('L7 a store that went back to the start of a seed does not add again what the start includes', async () => {
      await subject.seed('s', 'seed-2', [[FIELD, 100]])
      const reports = [report({ seed: 'seed-2', spent: 115, acknowledged: 110, base: 100, seen: 120 })]
      await answer({ process: 'p2', reports: [report({ seed: 'seed-2', spent: 10 })] })
      expect((await answer({ reports })).spent).toEqual([125])
    })

    it('holds of a dead process count as spent until it comes back', async () => {
      await subject.seed('s', 'seed-1')
      await answer({ budgets: [budget({ amount: 1_000, need: 300, ask: 300 })] })
      await subject.reap('s', 'p1')
      const look = () => answer({ process: 'p2', budgets: [budget({ amount: 1_000 })] }).then((reply) => reply.budgets)
      expect(await look()).toMatchObject([{ unsettled: 300, held: 0 }])
      await answer({ reports: [report({ held: 100, spent: 80 })] })
      expect(await look()).toMatchObject([{ unsettled: 0, held: 100, spent: 80 }])
    })

    it('the spend of one window is deleted without that of another', async () => {
      await subject.seed('s', 'seed-1', [
        [FIELD, 5],
        ['life:Tokens:Lifetime:0', 9],
      ])
      await subject.forget('s', [FIELD])
      expect((await answer({ reports: [report({}), report({ field: 'life:Tokens:Lifetime:0' })] })).spent).toEqual([0, 9])
    })

    it('two subjects share nothing', async () => {
      await answer({ rates: [rate({ limit: 3, need: 3, ask: 3 })] })
      expect((await answer({ subject: 'other', rates: [rate({ limit: 3, need: 3, ask: 3 })] })).status).toBe('granted')
    })
  })
}

export function callOf(overrides: Partial<LedgerCall>): LedgerCall {
  const nothing = { batch: undefined, reports: [], permits: undefined, rates: [], budgets: [], balance: undefined }
  return {
    subject: 's',
    process: 'p1',
    number: 1,
    acknowledged: 0,
    live: 1,
    earliestMs: 0,
    latestMs: Number.MAX_SAFE_INTEGER,
    wasAway: false,
    ...nothing,
    ...overrides,
  }
}

export function rate(overrides: Partial<RateRequest> = {}): RateRequest {
  return { kind: 'r', limit: 10, need: 0, ask: 0, want: 0, leaseMs: 1_000, ...overrides }
}

function permits(overrides: Partial<PermitRequest> = {}): PermitRequest {
  return { limit: 1, held: 0, need: 0, ask: 0, want: 0, ...overrides }
}

function batch(overrides: Partial<LedgerBatch> = {}): LedgerBatch {
  return { number: 1, refunds: [], bookings: [], debts: { r: 0, t: 0 }, ...overrides }
}

export function report(overrides: Partial<BudgetReport> = {}): BudgetReport {
  return { field: FIELD, seed: '', held: 0, spent: 0, acknowledged: 0, base: 0, seen: 0, ...overrides }
}

function budget(overrides: Partial<BudgetRequest> = {}): BudgetRequest {
  const windows = [
    { startMs: TODAY, endMs: TODAY + DAY_MS },
    { startMs: TODAY + DAY_MS, endMs: TODAY + 2 * DAY_MS },
  ] as const
  return { budget: 'day:Currency:Day', amount: 1_000, need: 0, ask: 0, want: 0, windows, ...overrides }
}
