/** What both stores of usage promise: `standalone/memory-usage.ts`, and the functions in Redis. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { UsageStore } from '../../gateway/usage/usage-reporter.ts'
import type { OperatorUsageStore } from '../../operator/usage/usage-store.ts'
import { countsOf, type DatedUsageRow, MAX_WAITING_ROWS, type TakenUsage, type UsageReport } from '#contract/usage/usage-report.ts'

export interface UsageStoreHarness {
  readonly gateway: UsageStore
  readonly operator: OperatorUsageStore
  readonly setClock: (ms: number) => Promise<void>
  /** Loses all data, as an emptied Redis does. */
  readonly empty: () => Promise<void>
}

const DAY = 20_000
const DAY_MS = 86_400_000
const NOON = DAY * DAY_MS + DAY_MS / 2

export function describeUsageStore(name: string, open: () => Promise<UsageStoreHarness>): void {
  describe(`${name} as a store of usage:`, () => {
    let store: UsageStoreHarness
    let account = ''
    let accounts = 0
    const report = (number: number, change: Partial<UsageReport> = {}): UsageReport => {
      const rows = [{ key: 'k', model: 'llama', counts: countsOf({ requests: 1, costMicros: 9_000_000_000_000 }) }]
      return { account, process: 'p', number, ageMs: 0, rows, ...change }
    }
    const take = async (known: number): Promise<TakenUsage> => (await store.operator.take([{ account, known }]))[0]!
    const rowsOf = (taken: TakenUsage): readonly DatedUsageRow[] => {
      expect(taken.state).toBe('rows')
      return taken.state === 'rows' ? taken.rows : []
    }
    const requests = (taken: TakenUsage): number => rowsOf(taken).reduce((sum, { counts }) => sum + (counts[0] ?? 0), 0)

    beforeEach(async () => {
      store ??= await open()
      account = `account-${accounts++}`
      await store.setClock(NOON)
    })

    test('adds the rows of reports, each once, by the day of the store', async () => {
      await store.gateway.count([report(1), report(2)])
      expect(await store.gateway.count([report(2)])).toEqual([report(2)])
      await store.gateway.count([report(1, { process: 'q' })])
      await store.gateway.count([report(3, { ageMs: DAY_MS })])
      const taken = await take(0)
      expect(taken).toMatchObject({ state: 'rows', nowMs: NOON, number: 1 })
      expect(rowsOf(taken).toSorted((a, b) => a.day - b.day)).toEqual([
        { day: DAY - 1, key: 'k', model: 'llama', counts: countsOf({ requests: 1, costMicros: 9_000_000_000_000 }) },
        { day: DAY, key: 'k', model: 'llama', counts: countsOf({ requests: 3, costMicros: 27_000_000_000_000 }) },
      ])
    })

    test('gives what was taken again until its number is known, and what came meanwhile afterwards', async () => {
      await store.gateway.count([report(1)])
      expect(await take(0)).toMatchObject({ state: 'rows', number: 1 })
      await store.gateway.count([report(2), report(3)])
      expect([requests(await take(0)), requests(await take(0)), requests(await take(1)), requests(await take(1))]).toEqual([1, 1, 2, 2])
      expect(await take(2)).toEqual({ state: 'none', nowMs: NOON })
    })

    test('names the accounts with usage once', async () => {
      await store.operator.used(1_000)
      await store.gateway.count([report(1), report(2)])
      expect([await store.operator.used(10), await store.operator.used(10)]).toEqual([[account], []])
    })

    test('says that data was lost, and counts from there on', async () => {
      await store.gateway.count([report(1)])
      await take(0)
      await take(1)
      await store.empty()
      await store.gateway.count([report(2)])
      expect(await take(1)).toEqual({ state: 'lost', nowMs: NOON })
      await store.gateway.count([report(3)])
      expect([requests(await take(1)), (await take(2)).state]).toEqual([1, 'none'])
    })

    test('that went back behind what the books have drops what it may have given already', async () => {
      await store.gateway.count([report(1)])
      await take(0)
      await store.gateway.count([report(2)])
      expect((await take(7)).state).toBe('lost')
      expect((await take(7)).state).toBe('none')
    })

    test('sums what finds no room in one row a day, so that no call is lost', async () => {
      const rows = (at: number): UsageReport['rows'] =>
        Array.from({ length: 256 }, (_, row) => ({ key: `k${at}-${row}`, model: 'llama', counts: countsOf({ requests: 1 }) }))
      const reports = Math.ceil(MAX_WAITING_ROWS / 256) + 2
      for (let at = 0; at < reports; at += 1) await store.gateway.count([report(at + 1, { rows: rows(at) })])
      const taken = await take(0)
      expect(requests(taken)).toBe(256 * reports)
      const other = rowsOf(taken).filter(({ key }) => key === '')
      expect([rowsOf(taken).length, other.map(({ counts }) => counts[0])]).toEqual([
        MAX_WAITING_ROWS + 1,
        [256 * reports - MAX_WAITING_ROWS],
      ])
    })
  })
}
