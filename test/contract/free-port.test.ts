import { expect, test } from 'vitest'
import { freePorts } from '../support/free-port.ts'

test('a worker has ports of its own, and gives out none twice while its program may be starting', async () => {
  const ports = [...(await freePorts(200)), ...(await freePorts(200))]
  expect(new Set(ports).size).toBe(400)
  const worker = Number(process.env['VITEST_POOL_ID'])
  expect(worker).toBeGreaterThan(0)
  expect(new Set(ports.map((port) => Math.floor((port - 20_000) / 1_500)))).toEqual(new Set([worker % 8]))
})
