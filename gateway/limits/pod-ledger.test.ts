import { beforeEach, describe, expect, test } from 'vitest'
import { LedgerWorld, need, subject } from '../../test/support/ledger-world.ts'
import type { LeaseLedger } from './lease-ledger.ts'
import { StoreLog } from './pod-ledger.ts'

let world: LedgerWorld
let lines: string[]
let storeLog: StoreLog
let ledger: LeaseLedger

beforeEach(() => {
  ;[world, lines] = [new LedgerWorld(), []]
  const line = (...args: unknown[]): void => void lines.push(args.map(String).join(' '))
  storeLog = new StoreLog({ debug: line, info: line, warn: line, error: line }, world.clock)
  ledger = world.process({ onEnd: (how) => storeLog.ended(how) })
})

const ask = async (uid: string): Promise<unknown> => ledger.reserve([subject({ uid, limits: { requestsPerMinute: 5 } })], need())

describe('the calls of a ledger', () => {
  test('are counted by how they ended', async () => {
    await ask('a')
    expect(ledger.stats.ends).toEqual({ answered: world.store.calls.length, refused: 0, failed: 0 })
    world.store.fate = () => 'never arrives'
    await ask('b')
    expect(ledger.stats.ends.failed).toBe(1)
  })

  test('write one line when the store does not answer, and one when it answers again', async () => {
    world.store.fate = () => 'never arrives'
    for (const uid of ['a', 'b', 'c']) await ask(uid)
    expect(lines).toEqual(['limits: Redis does not answer; keys with limits are treated as their onStoreUnavailable says'])
    world.store.fate = () => 'works'
    await world.advance(2_000)
    await ask('d')
    expect(lines.at(-1)).toMatch(/^limits: works again/)
  })

  test('write one line in ten seconds if they are refused, with the remedy', async () => {
    for (let i = 0; i < 50; i += 1) storeLog.refused('no such function')
    expect(lines).toEqual(['limits cannot be checked: no such function'])
    await world.advance(10_000)
    storeLog.refused('no such function')
    expect(lines).toHaveLength(2)
  })
})
