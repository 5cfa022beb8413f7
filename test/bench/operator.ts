/** What the operator costs, and how fast its changes reach the gateways: real API server, Redis, operator and gateways. */
import { issuingPart } from './issuing.ts'
import type { Part } from './part.ts'
import { spendPart } from './spend.ts'
import { stormPart } from './storm.ts'

export const OPERATOR_PARTS: readonly Part[] = [
  { name: 'storm', needs: 'control-plane', run: stormPart },
  { name: 'issuing', needs: 'control-plane', run: issuingPart },
  { name: 'spend', needs: 'control-plane', run: spendPart },
]
