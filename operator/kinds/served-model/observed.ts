/** The observed state of a ServedModel: the input of `nextStep`. Plain data. */
import type { AddressRules } from '#contract/values/backend-address.ts'
import type { ModelRecord } from '#contract/records/model-record.ts'
import type { SERVED_MODEL_CONDITIONS } from '#api/conditions.ts'
import type { ServedModel, ServedModelStatus } from '#api/served-model.ts'
import type { ObjectRef } from '#kube/port.ts'
import type { Confirmation } from '../../projection/acknowledgements.ts'
import type { CredentialRef } from './backend-credential.ts'
import type { LostName } from './name-index.ts'
import type { Publishing } from './publishing.ts'

export type ServiceEndpoints =
  { readonly found: false; readonly problem: string } | { readonly found: true; readonly ready: readonly string[]; readonly total: number }

/** The credential of one backend, without its value. `sum`: its SHA-256, hex. */
export type ObservedCredential =
  | { readonly state: 'NotUsed' }
  | { readonly state: 'Unread' }
  | { readonly state: 'NotFound'; readonly problem: string }
  /** The API server refused the read, and no earlier read is known. */
  | { readonly state: 'Unreadable'; readonly problem: string }
  /** This process has not read the Secret yet. The sum comes from the record that an earlier process wrote for the same backend. */
  | { readonly state: 'Adopted'; readonly sum: string; readonly former?: string; readonly unreadable?: string }
  | {
      readonly state: 'Found'
      readonly sum: string
      /** Origins that the owner of the Secret allows. */
      readonly origins: ReadonlySet<string>
      readonly former?: string
      /** Why the last read failed. The credential of an earlier read stays in use. */
      readonly unreadable?: string
    }

export interface ObservedBackend {
  readonly name: string
  /** undefined for a `url` backend. */
  readonly service: ServiceEndpoints | undefined
  readonly credential: ObservedCredential
  /** Fewest endpoints that a gateway can reach; undefined if every gateway reaches all. */
  readonly reachable: { readonly up: number; readonly total: number } | undefined
}

/** A ServedModel and all inputs of its record. */
export interface ModelSurroundings {
  readonly model: ServedModel
  /** false: the namespace has more ServedModels than its limit, and this one is among the youngest. */
  readonly hasPlace: boolean
  readonly namespaceLimit: number
  readonly publishing: Publishing
  readonly lostNames: readonly LostName[]
  readonly backends: readonly ObservedBackend[]
  /** Namespaces that the selector admits; only for `from: Selector`. */
  readonly selectedNamespaces: readonly string[]
  /** Why the mounted Secrets lack this model or its credentials. */
  readonly mountRefusal: string | undefined
  /** Which addresses a url may have in this namespace. */
  readonly addresses: AddressRules
  /** The secret of the installation. */
  readonly secret: string
}

/** Why the operator does not apply all of a manifest. */
export interface Problem {
  readonly reason: Exclude<keyof (typeof SERVED_MODEL_CONDITIONS)['Accepted']['reasons'], 'Accepted'>
  readonly message: string
  /** The problem keeps clients from the model, or from one of its backends. */
  readonly isBlocking: boolean
}

/** The desired record of a model, and the problems found. */
export interface DesiredModel {
  /** undefined: gateways do not know the model. */
  readonly record: ModelRecord | undefined
  readonly problems: readonly Problem[]
  /** A credential was not read, so the Secrets that gateways mount must keep their entries of this model. */
  readonly keepsMounted: boolean
}

/** Progress of a model's record to the gateways. */
export interface ObservedProjection {
  readonly isWanted: boolean
  /** Redis may have a record of an earlier process, with unknown content. */
  readonly isKept: boolean
  readonly hadRecord: boolean
  /** The new record takes the model away from a namespace. */
  readonly isRestricted: boolean
  /** Revision of the record; undefined until the record is written. */
  readonly revision: number | undefined
  readonly confirmation: Confirmation | undefined
  /** ms since the record was handed to the projection. */
  readonly sinceMs: number
  readonly storeAvailable: boolean
}

export interface ObservedModel extends ModelSurroundings {
  readonly state: 'Present'
  readonly ref: ObjectRef
  readonly desired: DesiredModel
  /** The record of a cold start, encoded. */
  readonly coldStart: string | undefined
  readonly text: string | undefined
  readonly projection: ObservedProjection
  /**
   * `key` identifies the model's entries in the mounted Secrets. `isCurrent`: the Secrets were given these entries. `retryInMs`: time until refused
   * entries are given again. `forMs`: time since entries were given.
   */
  readonly mounted: { readonly key: string; readonly isCurrent: boolean; readonly retryInMs: number; readonly forMs: number }
  /** A credential that must be read before the record can be derived. */
  readonly unread: CredentialRef | undefined
  readonly dueCredential: CredentialRef | undefined
  readonly status: ServedModelStatus
  /** Time at which the outcome changes without an event, ms since 1970. */
  readonly nextChangeAtMs: number | undefined
}

/** A ServedModel that was deleted, or replaced under its name, and still has a record. */
export interface DeletedModel {
  readonly state: 'Deleted'
  readonly ref: ObjectRef
  readonly uid: string
}

export type Observed = ObservedModel | DeletedModel
