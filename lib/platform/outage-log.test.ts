import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { OutageLog } from './outage-log.ts'

test('a lasting failure is logged at once, then ever more rarely, and then its end', async () => {
  const clock = new ManualClock()
  const lines: string[] = []
  const line = (...args: unknown[]): void => void lines.push(`${clock.monotonic() / 1_000} ${args.join(' ')}`)
  const outage = new OutageLog('Redis', { debug: line, info: line, warn: line, error: line }, clock)
  for (let i = 0; i < 100; i++) {
    outage.failed('away; start it')
    await clock.advance(100)
  }
  outage.failed('refuses the password; correct it')
  outage.works()
  outage.works()
  expect(lines).toEqual([
    '0 away; start it',
    '1 away; start it',
    '3 away; start it',
    '7 away; start it',
    '10 refuses the password; correct it',
    '10 Redis: works again after 10.0 s',
  ])
})
