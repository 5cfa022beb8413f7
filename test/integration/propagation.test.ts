/** Changes reach every gateway. `make bench` measures the times under a storm. */
import { it } from 'vitest'
import { openLab } from '../support/lab.ts'
import { propagate } from '../support/propagation.ts'

const lab = openLab()

it('every apply, suspend, resume, revoke and delete reaches both gateways, one by one and at once', async () => {
  await propagate(await lab.stack({ gateways: 2 }), 40)
}, 240_000)
