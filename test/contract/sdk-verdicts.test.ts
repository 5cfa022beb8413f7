/** The verdicts of `make python-sdks` and `make ai-sdk`, which run nothing here. */
import { expect, test } from 'vitest'
import { failuresOf, rowsOf } from '../clients/verdicts.ts'

const good = { case: 'chat', facts: [true, 23] }

test('a case with the same facts both ways is not a difference', () => {
  expect(failuresOf([good], [{ ...good }])).toEqual([])
  expect(rowsOf([good], [good])).toEqual([{ case: 'chat', direct: 'ok', gateway: 'ok' }])
})

test.each([
  ['an error through the gateway', { case: 'chat', error: 'NotFoundError: 404' }, 'error'],
  ['other facts through the gateway', { case: 'chat', facts: [true, 24] }, 'other facts'],
  ['an answer that lacks something', { case: 'chat', facts: [false, 23] }, 'error'],
  ['no report through the gateway', undefined, 'missing'],
])('%s fails the run', (_, line, verdict) => {
  const gateway = line === undefined ? [] : [line]
  expect(failuresOf([good], gateway)).toHaveLength(1)
  expect(rowsOf([good], gateway)).toEqual([{ case: 'chat', direct: 'ok', gateway: verdict }])
})

test('a case that fails directly fails the run, since it shows nothing about a gateway', () => {
  const bad = { case: 'chat', error: 'BadRequestError: 400' }
  expect(failuresOf([bad], [bad])).toEqual(['chat: directly: BadRequestError: 400'])
})
