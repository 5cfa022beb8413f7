/** Changes reach every gateway: counts and outcomes. How fast is measured and printed by `make bench`. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { measurePropagation } from '../bench/propagation.ts'
import { openLab, type Lab } from '../support/lab.ts'
import type { Stack } from '../support/stack.ts'

let lab: Lab
let stack: Stack
beforeAll(async () => {
  lab = openLab()
  stack = await lab.stack({ gateways: 2 })
})
afterAll(() => lab.close())

it('every apply, suspend, resume, revoke and delete reaches both gateways, one by one and at once', async () => {
  const rows = await measurePropagation(stack, 20, 40)
  expect(rows.map((row) => row.times.length)).toEqual([20, 20, 20, 10, 10, 40, 40, 40, 20, 20])
  for (const row of rows) { const t=row.times.toSorted((a,b)=>a-b); process.stdout.write(`${row.change}: p50 ${t[Math.floor(t.length/2)]?.toFixed(0)} p99 ${t[Math.floor(t.length*0.99)]?.toFixed(0)} max ${t.at(-1)?.toFixed(0)}\n`) }
})
