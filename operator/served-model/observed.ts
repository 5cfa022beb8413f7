/** The input of `decide` for one ServedModel. Plain data. */
import type { ServedModel } from '../api/served-model.ts'
import type { ServiceEndpoints } from './endpoints.ts'
import type { LostName } from './names.ts'

/** The upstream token of one backend. */
export type ObservedToken =
  | { readonly state: 'NotUsed' }
  | { readonly state: 'NotFound'; readonly problem: string }
  /** `sum`: SHA-256 of the token, hex. The token itself stays with `apply`. */
  | { readonly state: 'Found'; readonly sum: string }

/** One backend and its surroundings. */
export interface ObservedBackend {
  readonly name: string
  /** undefined for a `url` backend. */
  readonly service: ServiceEndpoints | undefined
  readonly token: ObservedToken
  /** Fewest endpoints that a gateway can reach; undefined when every gateway reaches all. */
  readonly reachable: { readonly up: number; readonly total: number } | undefined
}

/** One ServedModel at one moment. */
export interface ObservedModel {
  readonly model: ServedModel
  readonly lostNames: readonly LostName[]
  readonly backends: readonly ObservedBackend[]
  /** Namespaces that the selector admits (only read for `from: Selector`). */
  readonly selectedNamespaces: readonly string[]
  /** Loopback backends are fine: standalone only. */
  readonly allowLoopback: boolean
}
