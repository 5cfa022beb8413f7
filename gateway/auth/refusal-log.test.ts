import { beforeEach, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { sharedError } from '../errors.ts'
import { RefusalLog } from './refusal-log.ts'
import { INACTIVE, UNKNOWN_KEY } from './refusals.ts'

const key = (uid: string) => ({ uid, namespace: 'shop', name: uid })
let clock: ManualClock
let lines: Array<Readonly<Record<string, unknown>>>
let log: RefusalLog

beforeEach(() => {
  clock = new ManualClock()
  lines = []
  log = new RefusalLog({ info: (line: Readonly<Record<string, unknown>>) => void lines.push(line) } as never, clock)
})

test('a line names the ApiKey, the public id of its value, its state and the reason', () => {
  log.refused(key('bot'), 'kWKjNJKSnd', INACTIVE.suspended)
  log.refused(key('gone'), 'k2', UNKNOWN_KEY)
  expect(lines).toEqual([
    { apiKey: 'shop/bot', keyID: 'kWKjNJKSnd', state: 'suspended', reason: 'its owner can set the ApiKey to Active again', requests: 1 },
    { apiKey: 'shop/gone', keyID: 'k2', state: 'deleted', reason: expect.stringContaining('it was deleted'), requests: 1 },
  ])
})

test('a refusal for another reason than the state of the key leaves none', () => {
  log.refused(key('bot'), 'k1', sharedError('notReady'))
  expect(lines).toEqual([])
})

test('one key leaves a line a minute, however many requests come, with their number', async () => {
  for (let count = 0; count < 50; count += 1) log.refused(key('bot'), 'k1', INACTIVE.revoked)
  log.refused(key('other'), 'k2', INACTIVE.revoked)
  await clock.advance(60_000)
  log.refused(key('bot'), 'k1', INACTIVE.revoked)
  expect(lines.map(({ apiKey, requests }) => [apiKey, requests])).toEqual([
    ['shop/bot', 1],
    ['shop/other', 1],
    ['shop/bot', 50],
  ])
})

test('many keys leave ten lines a second', async () => {
  for (let count = 0; count < 100; count += 1) log.refused(key(`k${count}`), 'k', INACTIVE.revoked)
  expect(lines).toHaveLength(10)
  await clock.advance(1_000)
  log.refused(key('later'), 'k', INACTIVE.revoked)
  expect(lines).toHaveLength(11)
})
