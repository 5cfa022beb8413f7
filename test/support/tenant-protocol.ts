/** Messages between `OtherTenant` and the thread that runs its rounds. */

/** Names of the tenant's objects. */
export const TENANT = { service: 'others-server', model: 'others-model', secret: 'others-credential' } as const
export const TENANT_GROUP = 'headgate.dev/v1alpha1'

/** Worker data of the thread. */
export interface TenantSite {
  readonly server: string
  readonly planeFolder: string
  readonly namespace: string
  /** Address at which the model server listens. */
  readonly host: string
}

/** A request for one round, or for the wait until the first Credential is sent. */
export interface RoundWanted {
  readonly round: number
  readonly gateways: readonly { readonly url: string; readonly pod: string }[]
  /** A key that may call the tenant's model. */
  readonly caller: string
  readonly changes: 'all' | 'keys' | 'first-credential'
}

/** ms from the API server's answer until the change has taken effect on every gateway. */
export interface ChangeTimes {
  readonly issued: number
  readonly suspended: number
  readonly rotated: number
}

/** The result of one round, with every answer that a user saw. */
export interface RoundDone {
  readonly times?: ChangeTimes
  readonly why?: string
  readonly answers: readonly string[]
}
