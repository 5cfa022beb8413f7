/** No caller and no model server stops a gateway for the others. Runs after all other tests, since an attack uses a whole core. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ATTACKS } from '../../support/attacks/attack-protocol.ts'
import { AttackedGateway, missingForAttacks, type UnderAttack } from '../../support/attacks/attacked-gateway.ts'
import { openLab } from '../../support/lab.ts'

const lab = openLab()
const SECONDS = 10
const missing = missingForAttacks()
let gateway: AttackedGateway | undefined
let undisturbed: UnderAttack | undefined

beforeAll(async () => {
  if (missing !== undefined) return
  gateway = await AttackedGateway.start({ ip: lab.address.ip, folder: lab.folder })
  await gateway.during('all together', SECONDS) // code that only an attack runs is compiled once: it belongs to the heap of the control too
  undisturbed = await gateway.during('nothing', SECONDS)
})
afterAll(() => gateway?.stop())

describe('beside 50 well-behaved clients, in the memory of the chart', () => {
  it.for([...ATTACKS, 'all together'] as const)(
    '%s: every call of these clients is answered, and no request and no memory is left behind',
    async (attack, { skip }) => {
      if (gateway === undefined || undisturbed === undefined) return skip(missing)
      const seen = await gateway.during(attack, SECONDS)
      expect(seen.times.length).toBeGreaterThan(0)
      expect(seen.failed).toBe(0)
      expect(seen.shed).toBeLessThanOrEqual(seen.times.length / 1_000)
      expect(seen.inFlightAfter).toBe(0)
      expect(seen.heapBytesAfter).toBeLessThanOrEqual(undisturbed.heapBytesAfter * 1.1)
      expect([gateway.isRunning, gateway.oomKills]).toEqual([true, 0])
    },
  )
})
