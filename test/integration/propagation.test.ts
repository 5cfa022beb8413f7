/** Changes reach every gateway: counts and outcomes. `make bench` measures the times under a storm. */
import { beforeAll, expect, it } from 'vitest'
import { measurePropagation } from '../support/propagation.ts'
import { openLab } from '../support/lab.ts'
import type { Stack } from '../support/stack.ts'

const lab = openLab()
let stack: Stack
beforeAll(async () => {
  stack = await lab.stack({ gateways: 2 })
})

it('every apply, suspend, resume, revoke and delete reaches both gateways, one by one and at once', async () => {
  const rows = await measurePropagation(stack, 20, 40)
  const counts = Object.fromEntries(rows.map((row) => [row.change, row.times.length]))
  expect(counts).toEqual({
    'apply, one by one': 20,
    'suspend, one by one': 20,
    'resume, one by one': 20,
    'revoke, one by one': 10,
    'delete, one by one': 10,
    'apply, 40 at once': 40,
    'suspend, 40 at once': 40,
    'resume, 40 at once': 40,
    'revoke, 20 at once': 20,
    'delete, 20 at once': 20,
  })
}, 240_000)
