import { beforeEach, describe, expect, test } from 'vitest'
import { budget, need, subject, usage } from '../test/support/ledger-world.ts'
import { ManualClock } from '../test/support/manual-clock.ts'
import { DurableLedger, SAVE_EVERY_MS } from './durable-ledger.ts'
import { resumedLine } from './spend-file.ts'

const NOW = Date.UTC(2026, 0, 14, 12)
const budgeted = subject({ budgets: [budget({ amount: 100 })] })
let clock: ManualClock
let text: string | undefined
let unwritten: string[]
let isFull: boolean

beforeEach(() => {
  ;[clock, text, unwritten, isFull] = [new ManualClock(NOW), undefined, [], false]
})

function open(at = clock): DurableLedger {
  const file = {
    path: '.headgate/spend.json',
    read: () => text,
    write: (next: string) => {
      if (isFull) throw new Error('no space left')
      text = next
    },
  }
  return DurableLedger.open({ clock: at, process: 'standalone', file, onUnwritten: ({ message }) => unwritten.push(message) })
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
    const next = open()
    expect(resumedLine(next.resumed!, SAVE_EVERY_MS)).toMatch(/^Budgets are resumed from \d\d:\d\d:\d\d\.\n/)
    expect(await used(next)).toBe(60)
    expect([await spend(next, 50), await spend(next, 40), await spend(next, 1)]).toEqual(['refused', 'held', 'refused'])
    expect(await used(next)).toBe(100)
  })

  test('continue after a crash from the last write, and the program reports the possible loss', async () => {
    const first = open()
    await spend(first, 30)
    await clock.advance(SAVE_EVERY_MS)
    await spend(first, 20) // and then the power fails
    const next = open(new ManualClock(clock.now()))
    expect(resumedLine(next.resumed!, SAVE_EVERY_MS)).toMatch(/^Budgets are resumed from \d\d:\d\d:\d\d, up to 10 s lost\.\n/)
    expect(await used(next)).toBe(30)
  })

  test('of a run that crashed soon after its start are reported as incomplete, whatever the file of the previous run says', async () => {
    const first = open()
    await spend(first, 30)
    await close(first)
    await spend(open(), 20) // and then the power fails
    expect(open(new ManualClock(clock.now())).resumed).toMatchObject({ isFinal: false })
  })

  test('begin at zero without a file, and the file is not written before the first spend', async () => {
    const ledger = open()
    expect(ledger.resumed).toBeUndefined()
    await ledger.reserve([subject({ limits: { requestsPerMinute: 5 } })], need())
    await clock.advance(5 * SAVE_EVERY_MS)
    await close(ledger)
    expect(text).toBeUndefined()
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
    expect(text).not.toContain('Currency')
  })

  test('that cannot be written are reported, and the next write contains them', async () => {
    const ledger = open()
    isFull = true
    await spend(ledger, 5)
    await clock.advance(SAVE_EVERY_MS)
    expect(unwritten).toEqual(['no space left'])
    isFull = false
    await clock.advance(SAVE_EVERY_MS)
    expect(text).toContain('"month:Currency:Month')
  })

  test.each(['', '{', '{"v":2}', '{"v":1,"savedMs":1,"isFinal":true,"spent":{"a":{"b":-1}}}'])(
    'are not guessed from a damaged file (%s): the start ends with the remedy',
    (damaged) => {
      text = damaged
      expect(() => open()).toThrow(
        /^\.headgate\/spend\.json: cannot be read; restore the file, or delete it if budgets may restart at zero$/,
      )
    },
  )
})
