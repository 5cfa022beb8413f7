import { expect, test } from 'vitest'
import { conditionList, findCondition, sameStatus } from './condition-list.ts'
import { SERVED_MODEL_CONDITIONS, type ServedModelCondition } from './conditions.ts'
import type { Condition } from './metadata.ts'

const noon = Date.UTC(2027, 0, 1, 12, 0, 0, 250)
const later = noon + 60_000

function conditions(ready: 'Ready' | 'NotProgrammed', message = ''): ServedModelCondition[] {
  return [
    { type: 'BackendsHealthy', reason: 'Healthy', message: '' },
    { type: 'Ready', reason: ready, message },
    { type: 'Accepted', reason: 'Accepted', message: '' },
    { type: 'Priced', reason: 'Priced', message: '' },
  ]
}

function build(given: ServedModelCondition[], previous: Condition[] | undefined, nowMs: number, generation = 1): Condition[] {
  return conditionList(SERVED_MODEL_CONDITIONS, given, { previous, generation, nowMs })
}

test('conditions stand in the order of the table, with the status that belongs to the reason and whole seconds', () => {
  const list = build(conditions('NotProgrammed', 'waiting'), undefined, noon)
  expect(list.map((one) => `${one.type}=${one.status}`)).toEqual(['Ready=False', 'Accepted=True', 'BackendsHealthy=True', 'Priced=True'])
  expect(list[0]).toEqual({
    type: 'Ready',
    status: 'False',
    observedGeneration: 1,
    lastTransitionTime: '2027-01-01T12:00:00Z',
    reason: 'NotProgrammed',
    message: 'waiting',
  })
})

test('the transition time moves when the status flips and not when only reason, message or generation change', () => {
  const first = build(conditions('NotProgrammed'), undefined, noon)
  const reworded = build(conditions('NotProgrammed', 'still waiting'), first, later, 2)
  expect(findCondition(reworded, 'Ready')).toMatchObject({
    lastTransitionTime: '2027-01-01T12:00:00Z',
    observedGeneration: 2,
    message: 'still waiting',
  })
  const flipped = build(conditions('Ready'), reworded, later, 2)
  expect(findCondition(flipped, 'Ready')?.lastTransitionTime).toBe('2027-01-01T12:01:00Z')
  expect(findCondition(flipped, 'Accepted')?.lastTransitionTime).toBe('2027-01-01T12:00:00Z')
})

test('the same conditions give the same list again, so an unchanged status is not written', () => {
  const first = build(conditions('Ready'), undefined, noon)
  expect(build(conditions('Ready'), first, later)).toEqual(first)
})

test('a condition that is always present cannot be left out, and none can be given twice', () => {
  expect(() => build(conditions('Ready').slice(1), undefined, noon)).toThrow(/BackendsHealthy/)
  expect(() => build([...conditions('Ready'), ...conditions('Ready')], undefined, noon)).toThrow(/given twice/)
})

const STATUS = { used: '1', list: [{ a: 1, b: [] }], none: undefined }

test.each<[string, object | undefined, boolean]>([
  ['in another order of keys, and without the fields that have no value', { list: [{ b: [], a: 1 }], used: '1' }, true],
  ['with another value in a list', { used: '1', list: [{ a: 2, b: [] }] }, false],
  ['with a longer list', { used: '1', list: [{ a: 1, b: [] }, {}] }, false],
  ['with a list in place of an object', { used: '1', list: [[]] }, false],
  ['with a further field', { used: '1', list: [{ a: 1, b: [] }], more: null }, false],
  ['that does not exist', undefined, false],
])('a status %s', (_what, other, isSame) => {
  expect(sameStatus(STATUS, other)).toBe(isSame)
})
