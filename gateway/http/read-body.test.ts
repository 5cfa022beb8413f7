import { expect, test } from 'vitest'
import { unsentExchange } from '../../test/support/unsent-exchange.ts'
import { systemClock } from '#platform/clock.ts'
import { LoopShare } from '#platform/loop-share.ts'
import { BodyBudget } from './body-budget.ts'
import { readBody } from './read-body.ts'

test('a body in chunks of one byte is copied together: the budget counts its bytes, and an object for each byte would fill a pod', async () => {
  const { request, response } = unsentExchange()
  const bodies = new BodyBudget({ process: 10_000, large: 10_000, perTenant: 10_000, perKey: 10_000 })
  const hold = bodies.open({ tenant: 'shop', key: 'key' })
  const reading = readBody(request, response, { maxBytes: 10_000, hold, loop: new LoopShare(systemClock), whose: 'key' })
  const chunk = Buffer.from('?')
  request.emit('data', Buffer.from('{'))
  for (const letter of 'ab'.repeat(2_000)) {
    chunk.write(letter)
    request.emit('data', chunk)
  }
  request.emit('end')
  expect([String(await reading), bodies.bytes]).toEqual([`{${'ab'.repeat(2_000)}`, 4_001])
})
