/** What a store of the ledger promises about the balance of an account, to gateways and to the operator. Runs on memory and on a real Redis. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { BalanceReply, BalanceRequest, LedgerAnswer, LedgerCall } from '#contract/ledger/ledger-call.ts'
import { halvesOf } from '#contract/values/signed-micros.ts'
import { LedgerCallRefused } from '../../gateway/limits/ledger.ts'
import type { AccountSpend, LedgerBalance } from '#contract/ledger/account-spend.ts'
import { callOf, type LedgerStoreSubject, rate } from './ledger-store.suite.ts'

const START_MS = Date.UTC(2026, 0, 14, 12, 0, 0, 400)
/** One unit below 10^9, the largest amount of a credit, in micro-units. */
const NINE_DIGITS = 10n ** 15n - 1n

interface Ask extends Partial<Omit<BalanceRequest, 'credits' | 'spent'>> {
  readonly credits?: bigint
  /** By period. */
  readonly spent?: Readonly<Record<number, number>>
}

export function describeLedgerBalances(name: string, makeSubject: () => Promise<LedgerStoreSubject>): void {
  describe(`${name} as a store of balances:`, () => {
    let subject: LedgerStoreSubject
    let number: number

    beforeEach(async () => {
      subject = await makeSubject()
      number = 0
      await subject.setClock(START_MS)
    })

    const call = async (ask: Ask, overrides: Partial<LedgerCall> = {}) =>
      subject.store.call(callOf({ number: (number += 1), balance: requestOf(ask), ...overrides }))
    async function answer(ask: Ask, overrides: Partial<LedgerCall> = {}): Promise<BalanceReply & Pick<LedgerAnswer, 'status' | 'rates'>> {
      const reply = await call(ask, overrides)
      if ((reply.status !== 'granted' && reply.status !== 'short') || !reply.balance) throw new Error(`no answer: ${JSON.stringify(reply)}`)
      return { ...reply.balance, status: reply.status, rates: reply.rates }
    }
    const merge = async (books: Partial<AccountSpend> = {}, isReady = true) =>
      subject.balances.mergeBalances([{ name: 's', books: booksOf(books), isReady }])
    async function read(): Promise<LedgerBalance> {
      const [found] = await subject.balances.readBalances(['s'])
      if (found === undefined || typeof found === 'string') throw new Error(`no balance: ${found}`)
      return found
    }

    describe('before the books are merged', () => {
      it('a balance takes reports and grants nothing, so that no hold of a running request is lent twice', async () => {
        expect((await call({ credits: 100n, held: 40, spent: { 5: 7 }, period: 5, need: 1, ask: 1 })).status).toBe('unseeded')
        expect((await call({ credits: 100n, ask: 1 }, { process: 'p2' })).status).toBe('unseeded')
        expect(await read()).toEqual(balanceOf({ openFrom: undefined, period: 5, spent: { '5:p1': 7 }, holders: { p1: 40 } }))
        await merge({ openFrom: 4 })
        expect(await answer({ credits: 100n, need: 54, ask: 54 }, { process: 'p2' })).toMatchObject({
          short: 'Held',
          unspent: 93,
          held: 40,
        })
        expect(await answer({ credits: 100n, need: 53, ask: 53 }, { process: 'p2' })).toMatchObject({ grant: 53, held: 93 })
      })

      it('a call that asks for nothing is answered, and no float is granted', async () => {
        expect(await answer({ credits: 100n, held: 3, want: 50 })).toMatchObject({ openFrom: undefined, grant: 0, short: 'No', unspent: 0 })
      })

      it('the reports of a call that asks too early count: batch, permits and balance', async () => {
        const permits = { limit: 3, held: 2, need: 0, ask: 0, want: 0 }
        const batch = { number: 1, refunds: [], bookings: [], debts: { r: 0, t: 7 } }
        expect((await call({ credits: 9n, need: 1, ask: 1, held: 4 }, { permits, batch })).status).toBe('unseeded')
        const other = await subject.store.call(
          callOf({ process: 'p2', number: 1, rates: [rate({ kind: 't' })], permits: { ...permits, held: 0 } }),
        )
        expect(other).toMatchObject({ rates: [{ rest: 3 }], permits: { rest: 1 } })
        expect((await read()).holders).toEqual(new Map([['p1', 4]]))
      })

      it('an account that is not prepaid is admitted and counted, and holds nothing', async () => {
        expect(await answer({ spent: { 3: 12 }, period: 3 })).toMatchObject({
          period: 3,
          openFrom: undefined,
          grant: 0,
          unspent: 0,
          held: 0,
          short: 'No',
        })
        await merge()
        expect(await answer({ spent: { 3: 12 }, period: 3 })).toMatchObject({ openFrom: 0, short: 'No' })
      })

      it('the ledger knows nothing of an account that never reported, and a call without spend or hold does not change that', async () => {
        await answer({ credits: 5n })
        expect(await subject.balances.readBalances(['s', 'other'])).toEqual(['absent', 'absent'])
      })
    })

    it('new books grant at once, and their present period is the one after the first open one', async () => {
      await merge()
      expect(await answer({ credits: 100n, need: 30, ask: 30 })).toMatchObject({
        period: 1,
        openFrom: 0,
        grant: 30,
        unspent: 100,
        held: 30,
      })
      expect(await read()).toEqual(balanceOf({ openFrom: 0, period: 1, holders: { p1: 30 } }))
    })

    it.each<[what: string, credits: bigint, spend: Partial<AccountSpend>, need: number, short: BalanceReply['short'], unspent: number]>([
      ['the last micro-unit', 1n, {}, 1, 'No', 1],
      ['a balance of zero', 0n, {}, 1, 'Exhausted', 0],
      ['a balance of −1 micro-unit', -1n, {}, 1, 'Exhausted', -1],
      ['−1 micro-unit after a spend of one', 0n, { spent: new Map([['1:p9', 1]]) }, 1, 'Exhausted', -1],
      ['a need above the rest', 10n, {}, 11, 'TooSmall', 10],
      ['the largest amount', NINE_DIGITS, {}, Number(NINE_DIGITS), 'No', Number(NINE_DIGITS)],
      ['one more than the largest amount', NINE_DIGITS, {}, 10 ** 15, 'TooSmall', Number(NINE_DIGITS)],
      ['credits of 10^9 units, of which all but one micro-unit is spent', 10n ** 15n, { closedSpend: NINE_DIGITS }, 1, 'No', 1],
      ['the same and a need of two', 10n ** 15n, { closedSpend: NINE_DIGITS }, 2, 'TooSmall', 1],
      ['sums beyond 2^53 that differ by one', 2n ** 53n + 1n, { closedSpend: 2n ** 53n }, 1, 'No', 1],
      ['equal sums beyond 2^53', 2n ** 53n + 1n, { closedSpend: 2n ** 53n + 1n }, 1, 'Exhausted', 0],
      ['sums of 28 digits that differ by one', 10n ** 27n, { closedSpend: 10n ** 27n - 1n }, 1, 'No', 1],
      ['sums of 28 digits, the other way', 10n ** 27n - 1n, { closedSpend: 10n ** 27n }, 1, 'Exhausted', -1],
      ['credits of 28 digits', 10n ** 27n, {}, 10 ** 15, 'No', 8 * 10 ** 15],
      ['a debt of 28 digits', -(10n ** 27n), { closedSpend: 10n ** 27n }, 1, 'Exhausted', -8 * 10 ** 15],
      [
        'closed and open spend together',
        3n * 10n ** 15n,
        { closedSpend: 2n * 10n ** 15n, spent: new Map([['1:p9', 10 ** 15 - 1]]) },
        1,
        'No',
        1,
      ],
    ])('%s: the decision is exact', async (_, credits, spend, ...[need, short, unspent]) => {
      await merge(spend)
      expect(await answer({ credits, need, ask: need })).toMatchObject({ short, unspent, grant: short === 'No' ? need : 0 })
    })

    it('a refusal because of spend differs from one because of holds of running requests', async () => {
      await merge()
      await answer({ credits: 100n, need: 60, ask: 60 })
      const second = { credits: 100n, need: 60, ask: 60 }
      expect(await answer(second, { process: 'p2' })).toMatchObject({ status: 'short', short: 'Held', unspent: 100, held: 60, grant: 0 })
      await answer({ credits: 100n, period: 1, spent: { 1: 60 } })
      expect(await answer(second, { process: 'p2' })).toMatchObject({ short: 'TooSmall', unspent: 40, held: 0 })
      await answer({ credits: 100n, period: 1, spent: { 1: 130 } })
      expect(await answer(second, { process: 'p2' })).toMatchObject({ short: 'Exhausted', unspent: -30 })
    })

    it('waiting requests are granted as far as they fit; a float is at most 1 in 100 of the rest, and a quarter of the share of a process', async () => {
      await merge()
      expect(await answer({ credits: 100n, need: 10, ask: 500 })).toMatchObject({ grant: 100, held: 100 })
      expect(await answer({ credits: 10_100n, held: 0, need: 100, ask: 100, want: 50_000 })).toMatchObject({ grant: 100 + 100 })
      expect(await answer({ credits: 10_000n, held: 0, need: 0, ask: 0, want: 7 })).toMatchObject({ grant: 7 })
      expect(await answer({ credits: 10_000n, held: 0, want: 50_000 }, { live: 50 })).toMatchObject({ grant: 50 })
      expect(await answer({ credits: 99n, held: 0, want: 50_000 })).toMatchObject({ grant: 0 })
    })

    it('waiting requests and floats never get what other processes hold', async () => {
      await merge()
      await answer({ credits: 100n, need: 60, ask: 60 })
      expect(await answer({ credits: 100n, need: 10, ask: 500, want: 50_000 }, { process: 'p2' })).toMatchObject({ grant: 40, held: 100 })
    })

    it('nothing of a balance is granted when another limit is short, and nothing of a limit when the balance is', async () => {
      await merge()
      const limited = { rates: [rate({ limit: 2, need: 3, ask: 3 })] }
      expect(await answer({ credits: 100n, need: 5, ask: 5 }, limited)).toMatchObject({ status: 'short', short: 'No', grant: 0, held: 0 })
      const roomy = { rates: [rate({ limit: 9, need: 3, ask: 3 })] }
      expect(await answer({ credits: 1n, need: 5, ask: 5 }, roomy)).toMatchObject({ status: 'short', rates: [{ grant: 0, rest: 9 }] })
    })

    it('reports are absolute, so that a lost answer and a repeated report change nothing', async () => {
      await merge()
      for (let i = 0; i < 3; i += 1) await answer({ credits: 100n, period: 1, held: 20, spent: { 1: 50 } })
      await answer({ credits: 100n, period: 1, held: 20, spent: { 1: 40 } })
      expect(await read()).toEqual(balanceOf({ openFrom: 0, period: 1, spent: { '1:p1': 50 }, holders: { p1: 20 } }))
    })

    it('a call with the number of an earlier call, and one after a loss of data, change nothing', async () => {
      await merge()
      await answer({ credits: 100n, held: 5 }, { number: 7 })
      expect((await call({ credits: 100n, held: 9, spent: { 1: 3 } }, { number: 7 })).status).toBe('stale')
      expect((await call({ credits: 100n, held: 9, spent: { 1: 3 } }, { number: 9, acknowledged: 8 })).status).toBe('lost')
      expect(await read()).toEqual(balanceOf({ openFrom: 0, period: 1, holders: { p1: 5 } }))
    })

    describe('periods', () => {
      it('spend of the present and of the last period counts; older spend waits, and spend before the first open period is dropped', async () => {
        await merge({ openFrom: 3 })
        await subject.balances.raisePeriods([{ name: 's', period: 6 }])
        const reply = await answer({ credits: 100n, period: 4, spent: { 2: 1, 3: 2, 4: 4, 5: 8, 6: 16 } })
        expect(reply).toMatchObject({ period: 6, openFrom: 3, unspent: 100 - 24 })
        expect((await read()).spent).toEqual(new Map(Object.entries({ '5:p1': 8, '6:p1': 16 })))
      })

      it('the present period is the latest that a process or the operator has named, and never goes back', async () => {
        await merge({ openFrom: 3 })
        expect((await answer({ period: 9 })).period).toBe(9)
        expect((await answer({ period: 2, spent: { 10: 1 } }, { process: 'p2' })).period).toBe(10)
        await subject.balances.raisePeriods([{ name: 's', period: 8 }])
        expect((await answer({ period: 0 })).period).toBe(10)
      })

      it('a period that the operator closes in its order loses no spend and counts none twice', async () => {
        await merge()
        await answer({ credits: 1_000n, period: 1, spent: { 0: 5, 1: 100 } })
        await subject.balances.raisePeriods([{ name: 's', period: 2 }])
        await answer({ credits: 1_000n, period: 1, spent: { 0: 5, 1: 120 } }) // its next reply names the period only now
        const before = await read()
        await merge({ openFrom: 1, closedSpend: 5n, spent: before.spent })
        const reply = await answer({ credits: 1_000n, period: 2, spent: { 0: 5, 1: 120, 2: 30 } })
        expect(reply).toMatchObject({ period: 2, openFrom: 1, unspent: 1_000 - 155 })
        expect(await read()).toEqual(balanceOf({ openFrom: 1, period: 2, closedSpend: 5n, spent: { '1:p1': 120, '2:p1': 30 } }))
      })
    })

    describe('a merge', () => {
      it('takes the larger spend of each period and process, and computes the sums again', async () => {
        await merge()
        await answer({ credits: 100n, period: 1, held: 7, spent: { 1: 10 } })
        await merge({ spent: new Map(Object.entries({ '1:p1': 4, '1:p2': 30, '0:p2': 1 })) })
        expect(await read()).toEqual(
          balanceOf({ openFrom: 0, period: 1, spent: { '0:p2': 1, '1:p1': 10, '1:p2': 30 }, holders: { p1: 7 } }),
        )
        expect(await answer({ credits: 100n, held: 7 })).toMatchObject({ unspent: 59, held: 7 })
      })

      it('twice is the same as once', async () => {
        const books = { openFrom: 2, closedSpend: 40n, spent: new Map([['2:p1', 3]]) }
        await merge(books)
        const once = await read()
        await merge(books)
        expect(await read()).toEqual(once)
        expect(once).toEqual(balanceOf({ openFrom: 2, period: 3, closedSpend: 40n, spent: { '2:p1': 3 } }))
      })

      it('a later first open period wins with its closed spend, which includes the spend of all earlier periods', async () => {
        await merge({ closedSpend: 1n })
        await answer({ period: 1, spent: { 0: 5, 1: 10 } })
        await merge({ openFrom: 1, closedSpend: 6n, spent: new Map([['0:p3', 99]]) })
        expect(await read()).toEqual(balanceOf({ openFrom: 1, period: 2, closedSpend: 6n, spent: { '1:p1': 10 } }))
      })

      it('an earlier first open period changes no closed spend, and adds only spend of open periods', async () => {
        await merge({ openFrom: 5, closedSpend: 70n })
        await merge({ openFrom: 3, closedSpend: 90n, spent: new Map(Object.entries({ '3:p1': 8, '4:p1': 9, '5:p1': 2 })) })
        expect(await read()).toEqual(balanceOf({ openFrom: 5, period: 6, closedSpend: 70n, spent: { '5:p1': 2 } }))
      })

      it('of one first open period, the larger closed spend wins, exact beyond 2^53', async () => {
        const large = 2n ** 60n
        for (const closedSpend of [large, large + 1n, large - 1n, 0n]) await merge({ openFrom: 1, closedSpend })
        expect((await read()).closedSpend).toBe(large + 1n)
      })

      it('without permission to grant, an absent balance gets the spend of the books and is still not ready', async () => {
        await merge({ openFrom: 4, closedSpend: 9n, spent: new Map(Object.entries({ '4:p1': 3 })) }, false)
        expect(await read()).toEqual(balanceOf({ openFrom: undefined, period: 5, spent: { '4:p1': 3 } }))
        expect((await call({ credits: 100n, need: 1, ask: 1 })).status).toBe('unseeded')
        await merge({ openFrom: 4, closedSpend: 9n })
        expect(await answer({ credits: 100n, need: 1, ask: 1 })).toMatchObject({ unspent: 88, grant: 1 })
      })

      it('without permission to grant, a balance that is ready stays ready', async () => {
        await merge()
        await merge({ openFrom: 1, closedSpend: 2n }, false)
        expect(await read()).toMatchObject({ openFrom: 1, closedSpend: 2n })
      })
    })

    it('the holds of a dead process are dropped and its spend stays; one that was only cut off reports what it holds', async () => {
      await merge()
      await answer({ credits: 100n, period: 1, held: 60, spent: { 1: 5 } })
      await answer({ credits: 100n, held: 3 }, { process: 'p2' })
      await subject.balances.freeHolds([
        { name: 's', process: 'p1', held: 60 },
        { name: 's', process: 'p2', held: 2 }, // not what it holds: it is alive
        { name: 's', process: 'unknown', held: 60 },
        { name: 'other', process: 'p1', held: 60 },
      ])
      expect(await read()).toEqual(balanceOf({ openFrom: 0, period: 1, spent: { '1:p1': 5 }, holders: { p2: 3 } }))
      expect(await answer({ credits: 100n, period: 1, held: 60, spent: { 1: 5 } })).toMatchObject({ unspent: 95, held: 63 })
    })

    it('a report with which the open periods would have too much spend is refused as a whole, and the next fold lets it pass', async () => {
      await merge()
      const most = 8 * 10 ** 15
      await answer({ period: 1, spent: { 1: most - 1 } })
      const large = { period: 1, held: 9, spent: { 1: 2 } }
      await expect(call(large, { process: 'p2' })).rejects.toThrow(LedgerCallRefused)
      expect(await read()).toEqual(balanceOf({ openFrom: 0, period: 1, spent: { '1:p1': most - 1 } }))
      expect(await answer({ period: 1, spent: { 1: 1 } }, { process: 'p2' })).toMatchObject({ short: 'No' })
      await merge({ openFrom: 2, closedSpend: BigInt(most) })
      expect(await answer({ period: 3, spent: { 3: 2 } }, { process: 'p2' })).toMatchObject({ period: 3, openFrom: 2 })
    })

    it('a report of a period far ahead is refused as a whole: no process moves the period of all others', async () => {
      await merge({ openFrom: 5 })
      await expect(call({ period: 1_006, held: 9 })).rejects.toThrow(LedgerCallRefused)
      await expect(call({ period: 6, held: 9, spent: { 1_006: 1 } })).rejects.toThrow(LedgerCallRefused)
      expect(await read()).toEqual(balanceOf({ openFrom: 5, period: 6 }))
      expect(await answer({ period: 1_005, spent: { 1_005: 1 } })).toMatchObject({ period: 1_005 })
    })

    it('a dropped balance is absent, and not ready again', async () => {
      await merge()
      await answer({ period: 1, spent: { 1: 5 } })
      await subject.balances.dropBalances(['s'])
      expect(await subject.balances.readBalances(['s'])).toEqual(['absent'])
      expect((await call({ credits: 100n, need: 1, ask: 1 })).status).toBe('unseeded')
    })

    it('two accounts share nothing', async () => {
      await merge()
      await subject.balances.mergeBalances([{ name: 'other', books: booksOf({}), isReady: true }])
      await answer({ credits: 10n, need: 10, ask: 10 })
      expect(await answer({ credits: 10n, need: 10, ask: 10 }, { subject: 'other', number: 1 })).toMatchObject({ grant: 10 })
    })
  })
}

function requestOf({ credits, spent = {}, ...ask }: Ask): BalanceRequest {
  const rows = Object.entries(spent).map(([period, amount]) => ({ period: Number(period), spent: amount })) // ascending
  const nothing = { period: 0, held: 0, need: 0, ask: 0, want: 0 }
  return { ...(credits !== undefined && { credits: halvesOf(credits) }), ...nothing, ...ask, spent: rows }
}

function booksOf(books: Partial<AccountSpend>): AccountSpend {
  return { openFrom: 0, closedSpend: 0n, spent: new Map(), ...books }
}

interface Expected {
  readonly openFrom: number | undefined
  readonly period: number
  readonly closedSpend?: bigint
  readonly spent?: Readonly<Record<string, number>>
  readonly holders?: Readonly<Record<string, number>>
}

function balanceOf({ closedSpend = 0n, spent = {}, holders = {}, ...periods }: Expected): LedgerBalance {
  return { ...periods, closedSpend, spent: new Map(Object.entries(spent)), holders: new Map(Object.entries(holders)) }
}
