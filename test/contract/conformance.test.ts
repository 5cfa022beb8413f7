import { expect, test } from 'vitest'
import { compare, isFailure, linesByFile, linesByTest, type TestOutcome } from '../conformance/compare.ts'

const outcome = (name: string, fields: Partial<TestOutcome> = {}): TestOutcome => ({
  test: `unit/test_a.py::${name}`,
  outcome: 'passed',
  why: '',
  seconds: 0,
  routes: ['POST /v1/messages'],
  ...fields,
})
const failed = { outcome: 'failed', why: 'assert 404 == 200' } as const
const verdicts = (...[direct, through, listed]: Parameters<typeof compare>): unknown =>
  compare(direct, through, listed).map(({ test: name, verdict }) => [name.split('::')[1], verdict])

test('a test that passes directly and fails through the gateway fails the run, unless the list names it', () => {
  const direct = ['good', 'lost', 'own-rule'].map((name) => outcome(name))
  const through = [outcome('good'), outcome('lost', failed), outcome('own-rule', failed)]
  const comparisons = compare(direct, through, { 'unit/test_a.py::own-rule': 'a reason' })
  expect(comparisons.map(({ verdict }) => verdict)).toEqual(['same', 'different', 'listed'])
  expect(comparisons.map(isFailure)).toEqual([false, true, false])
})

test('a listed test that passes through the gateway fails the run, so that the list stays true', () => {
  expect(verdicts([outcome('mended')], [outcome('mended')], { 'unit/test_a.py::mended': 'a reason' })).toEqual([
    ['mended', 'no longer differs'],
  ])
})

test('a test that never reported through the gateway counts as failed', () => {
  expect(verdicts([outcome('hung')], [], {})).toEqual([['hung', 'different']])
})

test('a test that fails directly, or calls no route of a gateway, is not compared', () => {
  expect(verdicts([outcome('broken', failed), outcome('slots', { routes: [] })], [], {})).toEqual([])
})

test('the tables name each compared test and count it once', () => {
  const direct = [outcome('good'), outcome('lost'), outcome('broken', failed)]
  const comparisons = compare(direct, [outcome('good'), outcome('lost', failed)], {})
  expect(linesByTest(comparisons)).toEqual([
    '  direct  gateway  verdict    requests  test',
    '  passed  passed   same       1         unit/test_a.py::good',
    '  passed  failed   different  1         unit/test_a.py::lost',
  ])
  expect(linesByFile(direct, comparisons)[1]?.trim().split(/\s+/)).toEqual(['unit/test_a.py', '3', '2', '2', '1', '0', '1'])
})
