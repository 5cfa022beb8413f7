/** What the reconcile of ApiKeys works with. All of it is passed in. */
import type { Clock } from '../../gateway/process/clock.ts'
import type { ApiKey } from '../api/apikey.ts'
import type { EventReason } from '../api/event-table.ts'
import type { Keyring } from '../keyring/keyring.ts'
import type { OwnWrites } from '../kube/own-writes.ts'
import type { Interval } from '../ledger/spend-entry.ts'
import type { Informer, KubeObject, KubePort } from '../kube/port.ts'
import type { Acknowledgements } from '../projection/acknowledgements.ts'
import type { Projection } from '../projection/projection.ts'
import type { ProjectedModels } from '../projected-models.ts'
import type { KeyMemory } from './memory.ts'
import type { GatewayLimits } from './observed.ts'
import type { ShownUsage } from './shown-usage.ts'
import type { CredentialVault } from './vault.ts'

/** Writes one Event about an object; never throws. */
export type RecordEvent = (object: KubeObject, reason: EventReason, note: string) => void

export interface ApiKeyDeps {
  readonly kube: KubePort
  readonly apiKeys: Informer<ApiKey>
  readonly ownWrites: OwnWrites
  readonly keyring: Keyring
  readonly projection: Projection
  readonly acknowledgements: Acknowledgements
  readonly vault: CredentialVault
  readonly memory: KeyMemory
  readonly models: Pick<ProjectedModels, 'lacking'>
  /** Whether every gateway holds limits. */
  readonly gatewayLimits: () => GatewayLimits
  readonly usage: Pick<ShownUsage, 'shown' | 'forget'>
  /** The time in which spend of a key may have been lost, as long as its status shows it. */
  readonly spendLoss: (uid: string) => Interval | undefined
  readonly recordEvent: RecordEvent
  readonly clock: Clock
  /** Throws when this process no longer leads. */
  readonly assertLeading: () => void
  /** Version in which entries and records are written: the lowest that every live gateway reads. */
  readonly version: () => number
  /** Base URL of the gateways as clients reach them, without `/v1`. */
  readonly publicURL: string
  readonly revocationWaitMs: number
  /** A revocation was proven so many seconds after it was written. */
  readonly onRevoked: (seconds: number) => void
  /** Most keys of one namespace, deleted ones of the last 24 hours included. */
  readonly maxPerNamespace: number
}
