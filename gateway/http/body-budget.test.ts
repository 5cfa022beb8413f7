import { describe, expect, test } from 'vitest'
import { BodyBudget, bodyLimits, fittingBodyLimits } from './body-budget.ts'

const LIMITS = { process: 100, large: 100, perTenant: 100, perKey: 40 }
const key = (name: string, tenant = name) => ({ tenant, key: name })

describe('bytes of request bodies', () => {
  test('of one key are bounded, and other keys are not touched by it', () => {
    const budget = new BodyBudget(LIMITS)
    const first = budget.open(key('a'))
    expect([first.take(30), budget.open(key('a')).take(11), budget.open(key('b')).take(11)]).toEqual(['Taken', 'KeyFull', 'Taken'])
    first.release()
    expect(budget.open(key('a')).take(40)).toBe('Taken')
  })

  test('of one body above the bound of its key never fit, and a body may shrink', () => {
    const [hold, other] = [new BodyBudget(LIMITS), new BodyBudget(LIMITS)].map((budget) => budget.open(key('a')))
    expect([hold?.take(30), hold?.take(11), hold?.take(-20), hold?.take(11), other?.take(41)]).toEqual([
      ...['Taken', 'TooLarge', 'Taken', 'Taken', 'TooLarge'],
    ])
  })

  test('that are in memory already are booked whatever the bound, until the hold ends, and keep the next body out', () => {
    const budget = new BodyBudget(LIMITS)
    const hold = budget.open(key('a'))
    hold.take(30)
    hold.replace(60)
    expect([budget.bytes, budget.open(key('a')).take(1)]).toEqual([60, 'KeyFull'])
    hold.release()
    hold.replace(60)
    expect([budget.bytes, budget.open(key('a')).take(1)]).toEqual([0, 'Taken'])
  })

  test('may always be given back, also where nothing more may be taken', () => {
    const budget = new BodyBudget(LIMITS)
    const [hold, other] = [budget.open(key('a')), budget.open(key('b'))]
    hold.take(30)
    other.replace(100)
    expect([hold.take(-10), budget.bytes, hold.take(1)]).toEqual(['Taken', 120, 'ProcessFull'])
    hold.replace(60)
    expect([hold.take(-5), budget.bytes]).toEqual(['Taken', 155])
  })

  test('of all keys together are bounded', () => {
    const budget = new BodyBudget(LIMITS)
    const holds = ['a', 'b', 'c'].map((name) => budget.open(key(name)))
    expect(holds.map((hold) => hold.take(40))).toEqual(['Taken', 'Taken', 'ProcessFull'])
    expect(budget.bytes).toBe(80)
  })

  test('are given back once, however often the end of a call is reported', () => {
    const budget = new BodyBudget(bodyLimits(2 ** 20))
    const [hold, other] = [budget.open(key('a')), budget.open(key('a'))]
    hold.take(10)
    other.take(7)
    hold.release()
    hold.release()
    expect([hold.take(3), budget.bytes]).toEqual(['ProcessFull', 7]) // nobody would give back what comes now
  })
})

test('five keys of one tenant fill the part of the tenant, and another tenant is not touched by them', () => {
  const budget = new BodyBudget(bodyLimits(2 ** 20))
  const { perKey, perTenant } = budget.limits
  const taken = [1, 2, 3, 4, 5].map((number) => budget.open(key(`key-${number}`, 'greedy')).take(perKey))
  expect(taken).toEqual(['Taken', 'Taken', 'TenantFull', 'TenantFull', 'TenantFull'])
  expect([budget.bytes, budget.open(key('modest')).take(perKey)]).toEqual([perTenant, 'Taken'])
})

test('large bodies of any number of tenants leave a part of the process for small ones', () => {
  const budget = new BodyBudget(bodyLimits(2 ** 24))
  const { perKey, process } = budget.limits
  const large = Array.from({ length: 9 }, (_, number) => budget.open(key(`tenant-${number}`)).take(perKey))
  expect(large.filter((taken) => taken === 'Taken')).toHaveLength(7)
  const small = Array.from({ length: 9 }, (_, number) => budget.open(key(`other-${number}`)).take(65_536))
  expect(small.filter((taken) => taken === 'Taken')).toHaveLength(process / 8 / 65_536)
  budget.open(key('last')).take(1)
  expect(budget.bytes).toBeLessThanOrEqual(process)
})

test('a key with an open body keeps its account, however many other keys come by', () => {
  const budget = new BodyBudget(LIMITS)
  const first = budget.open(key('a'))
  for (let i = 0; i < 10_001; i++) budget.open(key(`other-${i}`)).release()
  expect([first.take(30), budget.open(key('a')).take(11)]).toEqual(['Taken', 'KeyFull'])
})

test('a largest body that does not fit into the memory of the pod is refused at the start, with the limit that would do', () => {
  expect(fittingBodyLimits(32 * 2 ** 20, 2 ** 30)).toEqual({ process: 2 ** 28, large: 7 * 2 ** 25, perTenant: 2 ** 26, perKey: 2 ** 25 })
  expect(() => fittingBodyLimits(32 * 2 ** 20, 256 * 2 ** 20)).toThrow(/MAX_BODY_BYTES: 33554432 .*raise the memory limit to 1073741824/)
})
