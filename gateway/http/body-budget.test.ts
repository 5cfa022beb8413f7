import { describe, expect, test } from 'vitest'
import { BodyBudget, bodyLimits, fittingBodyLimits } from './body-budget.ts'

describe('bytes of request bodies', () => {
  test('of one key are bounded, and other keys are not touched by it', () => {
    const budget = new BodyBudget({ process: 100, perKey: 40 })
    const first = budget.open('a')
    expect([first.take(30), budget.open('a').take(11), budget.open('b').take(11)]).toEqual(['Taken', 'KeyFull', 'Taken'])
    first.release()
    expect(budget.open('a').take(40)).toBe('Taken')
  })

  test('of all keys together are bounded', () => {
    const budget = new BodyBudget({ process: 100, perKey: 40 })
    const holds = ['a', 'b', 'c'].map((key) => budget.open(key))
    expect(holds.map((hold) => hold.take(40))).toEqual(['Taken', 'Taken', 'ProcessFull'])
    expect(budget.bytes).toBe(80)
  })

  test('are given back once, however often the end of a call is reported', () => {
    const budget = new BodyBudget(bodyLimits(2 ** 20))
    const [hold, other] = [budget.open('a'), budget.open('a')]
    hold.take(10)
    other.take(7)
    hold.release()
    hold.release()
    expect(budget.bytes).toBe(7)
  })
})

test('a key with an open body keeps its account, however many other keys come by', () => {
  const budget = new BodyBudget({ process: 100, perKey: 40 })
  const first = budget.open('a')
  for (let i = 0; i < 10_001; i++) budget.open(`other-${i}`).release()
  expect([first.take(30), budget.open('a').take(11)]).toEqual(['Taken', 'KeyFull'])
})

test('a largest body that does not fit into the memory of the pod is refused at the start, with the limit that would do', () => {
  expect(fittingBodyLimits(32 * 2 ** 20, 2 ** 30)).toEqual({ process: 2 ** 28, perKey: 2 ** 26 })
  expect(() => fittingBodyLimits(32 * 2 ** 20, 256 * 2 ** 20)).toThrow(/MAX_BODY_BYTES: 33554432 .*raise the memory limit to 536870912/)
})
