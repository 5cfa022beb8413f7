import { beforeEach, describe, expect, test } from 'vitest'
import type { SubjectUsage } from '../operator/books/subject-ledger.ts'
import { budget, need, subject, usage } from '../test/support/ledger-world.ts'
import { ManualClock } from '../test/support/manual-clock.ts'
import { resumedLine, SAVE_EVERY_MS, SpendLedger } from './spend-ledger.ts'
import type { SavedSpend } from './state-folder.ts'

const NOW = Date.UTC(2026, 0, 14, 23, 59)
const DAY = Date.UTC(2026, 0, 14)
const budgeted = subject({ budgets: [budget({ amount: 100 })] })
let clock: ManualClock
let saved: SavedSpend | undefined
let unsaved: unknown[]
let isFull: boolean

beforeEach(() => {
  ;[clock, saved, unsaved, isFull] = [new ManualClock(NOW), undefined, [], false]
})

function open(at = clock): SpendLedger {
  const save = (spend: SavedSpend): void => {
    if (isFull) throw new Error('no space left')
    saved = spend
  }
  return new SpendLedger({ clock: at, process: 'one', resumed: saved, save, onUnsaved: (error) => unsaved.push(error) })
}

async function spend(ledger: SpendLedger, costMicros: number): Promise<string> {
  const verdict = await ledger.reserve([budgeted], need({ holdByUnit: { Currency: costMicros, Tokens: 0 } }))
  if (verdict.outcome === 'held') ledger.settle(verdict, usage({ costMicros }))
  await clock.advance(300)
  return verdict.outcome
}

async function used(ledger: SpendLedger): Promise<number | undefined> {
  return (await ledger.snapshot(budgeted)).budgets[0]?.spent
}

/** Ends in order, and advances the clock that the ledger waits for. */
async function close(ledger: SpendLedger, at = clock): Promise<void> {
  const closed = ledger.close(1_000)
  await at.advance(1_000)
  await closed
}

describe('budgets of make run', () => {
  test('continue after an orderly restart without loss, also of a key that was not used in between', async () => {
    const first = open()
    await spend(first, 60)
    await close(first)
    expect(resumedLine(saved)).toMatch(/^Budgets are resumed from \d\d:\d\d:\d\d\.\n/)
    await close(open())
    const next = open()
    expect(await used(next)).toBe(60)
    expect([await spend(next, 50), await spend(next, 40), await spend(next, 1)]).toEqual(['refused', 'held', 'refused'])
    await clock.advance(1_000) // a snapshot may be a second old
    expect(await used(next)).toBe(100)
  })

  test('continue after a crash from the last write, and the program reports the possible loss', async () => {
    const first = open()
    await spend(first, 30)
    await clock.advance(SAVE_EVERY_MS)
    await spend(first, 20) // and then the power fails
    expect(resumedLine(saved)).toMatch(/^Budgets are resumed from \d\d:\d\d:\d\d, up to 10 s lost\.\n/)
    expect(await used(open(new ManualClock(clock.now())))).toBe(30)
  })

  test('of a run that crashed soon after its start are reported as incomplete, whatever the previous run stored', async () => {
    const first = open()
    await spend(first, 30)
    await close(first)
    await spend(open(), 20) // and then the power fails
    expect(saved).toMatchObject({ isFinal: false })
  })

  test('begin at zero without a stored spend, and are not reported before the first spend', async () => {
    const ledger = open()
    await ledger.reserve([subject({ limits: { requestsPerMinute: 5 } })], need())
    await close(ledger)
    expect([resumedLine(undefined), resumedLine(saved)]).toEqual(['', ''])
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

test.each<[spent: SavedSpend['spent'], hasBalances: boolean, isFinal: boolean, line: string]>([
  [{}, false, true, ''],
  [{}, true, true, 'Balances are resumed from 12:00:00.'],
  [{ key: { field: 1 } }, true, false, 'Budgets and balances are resumed from 12:00:00, up to 10 s lost.'],
])('the line about the last run names what goes on: %j, prepaid accounts %s, ended in order %s', (spent, hasBalances, isFinal, line) => {
  const savedMs = new Date(2026, 0, 14, 12).getTime()
  expect(resumedLine({ savedMs, isFinal, spent }, hasBalances).trim()).toBe(line)
})

test('statuses get the spend of the present window, and nothing before the first spend or of an unknown time zone', async () => {
  const day = { name: 'day', amount: 100, unit: 'Tokens', window: 'Day', timeZone: 'UTC', onExceeded: 'Block' } as const
  const budgets = new Map([
    ['spent', [day]],
    ['unused', [day]],
    ['elsewhere', [{ ...day, timeZone: 'Nowhere/Land' }]],
  ])
  const fields = { [`day:Tokens:Day:${DAY}`]: 80 }
  saved = { savedMs: NOW, isFinal: true, spent: { spent: fields, elsewhere: fields } }
  const ledger = open()
  const readings: (readonly [uid: string, usage: SubjectUsage])[] = []
  const subjects = { uids: () => [...budgets.keys()], budgetsOf: (uid: string) => budgets.get(uid) }
  ledger.report(subjects, (uid, reading) => void readings.push([uid, reading]))
  await clock.advance(1_000)
  const reading = { budget: 'day', unit: 'Tokens', window: 'Day', spent: 80, windowStartMs: DAY }
  expect(readings).toEqual([['spent', { budgets: [reading], lastUsedMs: undefined }]])
  await clock.advance(60_000)
  expect(readings.at(-1)?.[1].budgets, 'another day begins at zero').toMatchObject([{ spent: 0, windowStartMs: DAY + 86_400_000 }])
  await close(ledger)
  expect(clock.pending).toBe(0)
})
