/** What the reconcile of an ApiKey works with. */
import type { ApiKey } from '../api/apikey.ts'
import type { EventReason } from '../api/conditions.ts'
import type { Clock } from '../../gateway/shared/clock.ts'
import type { Keyring } from '../keyring/keyring.ts'
import type { Informer, KubeObject, KubePort } from '../kube/port.ts'
import type { Acknowledgements } from '../projection/acknowledgements.ts'
import type { Projection } from '../projection/projection.ts'
import type { Calm } from './calm.ts'
import type { ChangeSignals } from './change-signals.ts'
import type { CredentialVault } from './vault.ts'

/** Writes one Event about an object; never throws. */
export type RecordEvent = (object: KubeObject, reason: EventReason, note: string) => void

/** All of it is passed in; nothing here is created by reconcile itself. */
export interface ApiKeyDeps {
  readonly kube: KubePort
  readonly apiKeys: Informer<ApiKey>
  readonly keyring: Keyring
  readonly projection: Projection
  readonly acknowledgements: Acknowledgements
  readonly vault: CredentialVault
  readonly changes: ChangeSignals
  readonly calm: Calm
  readonly recordEvent: RecordEvent
  readonly clock: Clock
  /** Throws when this process no longer leads. */
  readonly assertLeading: () => void
  /** Base URL of the gateways as clients reach them, without `/v1`. */
  readonly publicURL: string
  readonly revocationWaitMs: number
  /** How long a revocation took until the last gateway had it, s. */
  readonly onRevoked: (seconds: number) => void
  /** An ApiKey is no longer there: by our own hand, or by force, and then its key is an orphan. */
  readonly onGone: () => void
}
