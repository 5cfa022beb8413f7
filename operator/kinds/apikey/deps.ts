/** Dependencies of the reconcile of ApiKeys, passed in by the composition. */
import type { Clock } from '#platform/clock.ts'
import type { ApiKey } from '#api/apikey.ts'
import type { EventReason } from '#api/event-table.ts'
import type { Keyring } from '../../shards/keyring.ts'
import type { OwnWrites } from '#kube/own-writes.ts'
import type { Interval } from '../../books/spend-entry.ts'
import type { Informer, KubeObject, KubePort } from '#kube/port.ts'
import type { Acknowledgements } from '../../projection/acknowledgements.ts'
import type { Projection } from '../../projection/projection.ts'
import type { ProjectedModels } from '../served-model/projected-models.ts'
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
  /** Whether every gateway enforces limits. */
  readonly gatewayLimits: () => GatewayLimits
  readonly usage: Pick<ShownUsage, 'shown' | 'forget'>
  /** The period in which spend of a key may have been lost; undefined as soon as the status no longer shows the period. */
  readonly spendLoss: (uid: string) => Interval | undefined
  readonly recordEvent: RecordEvent
  readonly clock: Clock
  /** Throws if this process no longer leads. */
  readonly assertLeading: () => void
  /** Format version of written entries and records: the lowest that every live gateway reads. */
  readonly version: () => number
  /** Base URL of the gateways as clients reach them, without `/v1`. */
  readonly publicURL: string
  readonly revocationWaitMs: number
  /** Called when a revocation is proven, with the seconds since it was written. */
  readonly onRevoked: (seconds: number) => void
  /** Most keys of one namespace, including keys deleted within the last 24 hours. */
  readonly maxPerNamespace: number
}
