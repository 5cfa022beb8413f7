/** What a reconcile of a ServedModel sees: the input of `nextStep`. Plain data. */
import type { ServedModel, ServedModelStatus } from '../api/served-model.ts'
import type { ObjectRef } from '../kube/port.ts'
import type { CredentialRef } from './backend-credential.ts'
import type { DesiredModel } from './desired.ts'
import type { ServiceEndpoints } from './endpoints.ts'
import type { LostName } from './name-index.ts'
import type { Publishing } from './publishing.ts'

/** The credential of one backend, without its value. `sum`: its SHA-256, hex. */
export type ObservedCredential =
  | { readonly state: 'NotUsed' }
  | { readonly state: 'Unread' }
  | { readonly state: 'NotFound'; readonly problem: string }
  /** The API server refused the read, and no earlier read is known. */
  | { readonly state: 'Unreadable'; readonly problem: string }
  /** Not read by this process yet: the sum comes from the record that an earlier process wrote for the same backend. */
  | { readonly state: 'Adopted'; readonly sum: string; readonly former?: string; readonly unreadable?: string }
  | {
      readonly state: 'Found'
      readonly sum: string
      /** Origins that the owner of the Secret allows. */
      readonly origins: ReadonlySet<string>
      /** Sum of the credential that this one replaced. */
      readonly former?: string
      /** Why the last read failed; an earlier one stays in use. */
      readonly unreadable?: string
    }

/** One backend and its surroundings. */
export interface ObservedBackend {
  readonly name: string
  /** undefined for a `url` backend. */
  readonly service: ServiceEndpoints | undefined
  readonly credential: ObservedCredential
  /** Fewest endpoints that a gateway can reach; undefined when every gateway reaches all. */
  readonly reachable: { readonly up: number; readonly total: number } | undefined
}

/** One ServedModel and what its record depends on. */
export interface ModelSurroundings {
  readonly model: ServedModel
  /** false: the namespace has more ServedModels than it may have, and this is one of the youngest. */
  readonly hasPlace: boolean
  readonly namespaceLimit: number
  readonly publishing: Publishing
  readonly lostNames: readonly LostName[]
  readonly backends: readonly ObservedBackend[]
  /** Namespaces that the selector admits (only read for `from: Selector`). */
  readonly selectedNamespaces: readonly string[]
  /** Why the Secrets that gateways mount do not hold this model or its credentials. */
  readonly mountRefusal: string | undefined
  /** Loopback backends are fine: standalone only. */
  readonly allowLoopback: boolean
}

/** How far the gateways have come with a revision. */
export interface Confirmation {
  readonly state: 'Acknowledged' | 'NobodyServes' | 'Waiting' | 'Unknown'
  readonly ready: number
  readonly total: number
  /** Pods that have not acknowledged it. */
  readonly missing: readonly string[]
}

/** The record of a model on its way to the gateways. */
export interface ObservedProjection {
  /** Whether this very record was handed to the projection. */
  readonly isWanted: boolean
  /** A record of an earlier process may stand in Redis, and what it says is not known. */
  readonly isKept: boolean
  /** Some record of this model was handed over before. */
  readonly hadRecord: boolean
  /** The new record takes the model away from a namespace that has it now. */
  readonly isRestricted: boolean
  /** Revision that carries the record; undefined until it is written. */
  readonly revision: number | undefined
  readonly confirmation: Confirmation | undefined
  /** The acknowledgements of this revision are awaited. */
  readonly isExpected: boolean
  /** ms since the record was handed over. */
  readonly sinceMs: number
  readonly storeAvailable: boolean
}

/** A ServedModel that exists. */
export interface ObservedModel extends ModelSurroundings {
  readonly state: 'Present'
  readonly ref: ObjectRef
  readonly desired: DesiredModel
  /** `desired.record` as it is written. */
  readonly text: string | undefined
  readonly projection: ObservedProjection
  /** Whether the Secrets that gateways mount were given this model and these credentials, and how many ms ago they were given any. */
  readonly mounted: { readonly isCurrent: boolean; readonly isRefused: boolean; readonly forMs: number }
  /** A credential that must be read before the record can be made. */
  readonly unread: CredentialRef | undefined
  /** A credential to read again. */
  readonly dueCredential: CredentialRef | undefined
  readonly status: ServedModelStatus
  /** ms since 1970 at which time alone changes something. */
  readonly nextChangeAtMs: number | undefined
}

/** A ServedModel that was deleted (or replaced under its name) and still has a record. */
export interface DeletedModel {
  readonly state: 'Deleted'
  readonly ref: ObjectRef
  readonly uid: string
}

/** One ServedModel at one moment. */
export type Observed = ObservedModel | DeletedModel
