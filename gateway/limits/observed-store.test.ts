import { beforeEach, describe, expect, test } from 'vitest'
import { budget, LedgerWorld, need, subject, usage } from '../../test/support/ledger-world.ts'
import { LedgerCallRefused } from './ledger.ts'
import { ObservedStore } from './observed-store.ts'
import type { LeaseLedger } from './lease-ledger.ts'

const budgeted = subject({ budgets: [budget()] })
let world: LedgerWorld
let lines: string[]
let spent: string[]
let store: ObservedStore
let ledger: LeaseLedger

beforeEach(() => {
  ;[world, lines, spent] = [new LedgerWorld(), [], []]
  const line = (...args: unknown[]): void => void lines.push(args.map(String).join(' '))
  const { clock } = world
  const log = { debug: line, info: line, warn: line, error: line }
  store = new ObservedStore({ store: world.store, clock, log, errorLine: ({ message }) => message, onSpent: (uid) => spent.push(uid) })
  world.memory.seed(budgeted.uid, 'seed')
  ledger = world.process(store)
})

async function spend(costMicros: number): Promise<void> {
  const hold = await ledger.reserve([budgeted], need({ holdByUnit: { Currency: 100, Tokens: 0 } }))
  ledger.settle(hold as never, usage({ costMicros }))
  await world.advance(300)
}

describe('an observed store', () => {
  test('reports a subject that has spent from a budget as soon as the store has counted the spend', async () => {
    const hold = await ledger.reserve([budgeted], need({ holdByUnit: { Currency: 100, Tokens: 0 } }))
    ledger.settle(hold as never, usage({ costMicros: 7 }))
    world.store.fate = () => 'never arrives'
    await world.advance(1_000)
    expect(spent).toEqual([])
    world.store.fate = () => 'works'
    await world.advance(5_000)
    expect(spent).toEqual([budgeted.uid])
  })

  test('reports no subject without spend', async () => {
    await spend(0)
    await ledger.reserve([subject({ uid: 'other', limits: { requestsPerMinute: 5 } })], need())
    await world.advance(5_000)
    expect(spent).toEqual([])
  })

  test('counts its calls by how they ended', async () => {
    await spend(1)
    expect(store.calls).toEqual({ answered: world.store.calls.length, refused: 0, failed: 0 })
    world.store.fate = () => 'never arrives'
    await ledger.reserve([subject({ uid: 'other', limits: { requestsPerMinute: 5 } })], need())
    expect(store.calls.failed).toBe(1)
  })

  test('writes one line when the store does not answer, and one when it answers again', async () => {
    world.store.fate = () => 'never arrives'
    for (const uid of ['a', 'b', 'c']) await ledger.reserve([subject({ uid, limits: { requestsPerMinute: 5 } })], need())
    expect(lines).toEqual(['limits: Redis does not answer; keys with limits are treated as their onStoreUnavailable says'])
    world.store.fate = () => 'works'
    await world.advance(2_000)
    await ledger.reserve([subject({ uid: 'd', limits: { requestsPerMinute: 5 } })], need())
    expect(lines.at(-1)).toMatch(/^limits: works again/)
  })

  test('writes one line in ten seconds about calls that are refused, with the remedy', async () => {
    for (let i = 0; i < 50; i += 1) store.refused(new LedgerCallRefused('no such function'))
    expect(lines).toEqual(['limits cannot be checked: no such function'])
    await world.advance(10_000)
    store.refused(new LedgerCallRefused('no such function'))
    expect(lines).toHaveLength(2)
  })
})
