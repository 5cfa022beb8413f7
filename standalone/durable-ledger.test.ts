import { beforeEach, describe, expect, test } from 'vitest'
import { budget, need, subject, usage } from '../test/support/ledger-world.ts'
import { ManualClock } from '../test/support/manual-clock.ts'
import { DurableLedger, resumedLine, SAVE_EVERY_MS } from './durable-ledger.ts'
import type { SavedSpend } from './state-folder.ts'

const NOW = Date.UTC(2026, 0, 14, 12)
const budgeted = subject({ budgets: [budget({ amount: 100 })] })
let clock: ManualClock
let saved: SavedSpend | undefined
let unsaved: unknown[]
let isFull: boolean

beforeEach(() => {
  ;[clock, saved, unsaved, isFull] = [new ManualClock(NOW), undefined, [], false]
})

function open(at = clock): DurableLedger {
  const save = (spend: SavedSpend): void => {
    if (isFull) throw new Error('no space left')
    saved = spend
  }
  return new DurableLedger({ clock: at, process: 'standalone', resumed: saved, save, onUnsaved: (error) => unsaved.push(error) })
}

async function spend(ledger: DurableLedger, costMicros: number, at = clock): Promise<string> {
  const verdict = await ledger.reserve([budgeted], need({ holdByUnit: { Currency: costMicros, Tokens: 0 } }))
  if (verdict.outcome === 'held') ledger.settle(verdict, usage({ costMicros }))
  await at.advance(300)
  return verdict.outcome
}

async function used(ledger: DurableLedger): Promise<number | undefined> {
  return (await ledger.snapshot(budgeted)).budgets[0]?.spent
}

/** Ends in order, and advances the clock that the ledger waits for. */
async function close(ledger: DurableLedger, at = clock): Promise<void> {
  const closed = ledger.close(1_000)
  await at.advance(1_000)
  await closed
}

describe('budgets of make run', () => {
  test('continue after an orderly restart without loss', async () => {
    const first = open()
    await spend(first, 60)
    await close(first)
    const line = resumedLine(saved!)
    const next = open()
    expect(line).toMatch(/^Budgets are resumed from \d\d:\d\d:\d\d\.\n/)
    expect(await used(next)).toBe(60)
    expect([await spend(next, 50), await spend(next, 40), await spend(next, 1)]).toEqual(['refused', 'held', 'refused'])
    expect(await used(next)).toBe(100)
  })

  test('continue after a crash from the last write, and the program reports the possible loss', async () => {
    const first = open()
    await spend(first, 30)
    await clock.advance(SAVE_EVERY_MS)
    await spend(first, 20) // and then the power fails
    const line = resumedLine(saved!)
    const next = open(new ManualClock(clock.now()))
    expect(line).toMatch(/^Budgets are resumed from \d\d:\d\d:\d\d, up to 10 s lost\.\n/)
    expect(await used(next)).toBe(30)
  })

  test('of a run that crashed soon after its start are reported as incomplete, whatever the previous run stored', async () => {
    const first = open()
    await spend(first, 30)
    await close(first)
    await spend(open(), 20) // and then the power fails
    expect(saved).toMatchObject({ isFinal: false })
  })

  test('begin at zero without a stored spend, and nothing is stored before the first spend', async () => {
    const ledger = open()
    await ledger.reserve([subject({ limits: { requestsPerMinute: 5 } })], need())
    await clock.advance(5 * SAVE_EVERY_MS)
    await close(ledger)
    expect(saved).toBeUndefined()
  })

  test('of an unused key are also kept over the next restart', async () => {
    const first = open()
    await spend(first, 60)
    await close(first)
    await close(open())
    expect(await used(open())).toBe(60)
  })

  test('whose window has ended are forgotten', async () => {
    const first = open()
    await spend(first, 60)
    const later = new ManualClock(NOW + 90 * 86_400_000)
    await close(first)
    await close(open(later), later)
    expect(saved?.spent).toEqual({})
  })

  test('that cannot be stored are reported, and the next write contains them', async () => {
    const ledger = open()
    isFull = true
    await spend(ledger, 5)
    await clock.advance(SAVE_EVERY_MS)
    expect(unsaved).toEqual([new Error('no space left')])
    isFull = false
    await clock.advance(SAVE_EVERY_MS)
    expect(JSON.stringify(saved)).toContain('"month:Currency:Month')
  })
})
