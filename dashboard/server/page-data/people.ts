/**
 * What the routes below `/api` answer and accept, as JSON. The page imports these types, and nothing else of the server.
 *
 * Every refusal has the body `Refusal`. A route that changes something takes `application/json` from the dashboard's own origin only.
 */

/** Why a request was refused. `session-ended`: sign in again. `confirm`: sign in again or `POST /api/confirm`, then repeat the request. */
export type RefusalCode =
  | 'session-ended' // 401
  | 'wrong-credentials' // 403: a password or a code is wrong
  | 'confirm' // 403: the last proof of identity is older than 10 minutes
  | 'wrong-origin' // 403: the request does not come from a page of the dashboard
  | 'not-found' // 404, also for what belongs to somebody else
  | 'conflict' // 409
  | 'invalid' // 422, with `fields`
  | 'too-many-requests' // 429, with Retry-After
  | 'unavailable' // 503, with Retry-After: a part of Headgate does not answer
  | 'internal' // 500

export interface Refusal {
  readonly error: {
    readonly code: RefusalCode
    /** A sentence for people. */
    readonly message: string
    /** Messages by name of the field in the request. */
    readonly fields?: Readonly<Record<string, string>>
    readonly requestID: string
  }
}

/** A way to sign in beside the password. */
export interface Provider {
  /** `github`, `google` or the name of another issuer. */
  readonly id: string
  /** The name on the button: `GitHub`. */
  readonly name: string
}

/** What a member of an account may do. Version one has one role. */
export type Role = 'owner'

/** The Account of the signed-in person. */
export type AccountView =
  | {
      readonly state: 'Active' | 'Suspended'
      readonly name: string
      readonly displayName?: string
      /** Name of the Plan. */
      readonly plan: string
      readonly isReady: boolean
      /** Why the Account is not ready: reason and message of its condition. */
      readonly reason?: string
      readonly message?: string
    }
  /** The cluster has not answered, so the Account is unknown. */
  | { readonly state: 'Unknown' }
  /** The administrator has deleted the Account. */
  | { readonly state: 'Closed' }

/** GET /api/me */
export interface Me {
  readonly person: {
    readonly id: string
    /** '' where the person has given no name. */
    readonly name: string
    readonly email: string
    /** RFC 3339, as all times here. */
    readonly createdAt: string
    readonly role: Role
    readonly hasPassword: boolean
    readonly twoFactor: { readonly isOn: boolean; readonly backupCodesLeft?: number }
  }
  readonly account: AccountView
  /** Time since which the Kubernetes API has not answered. The page then shows older data, and no change is possible. */
  readonly readOnlySince?: string
  readonly installation: {
    /** Base URL of the API, without /v1. */
    readonly apiURL: string
    readonly providers: readonly Provider[]
    /** Whether people may have passwords. */
    readonly hasPasswords: boolean
  }
}

/** GET /api/providers: the linked ones first. */
export interface LinkedProviders {
  readonly providers: readonly (Provider & { readonly isLinked: boolean; readonly linkedAt?: string })[]
}

/** POST /api/providers/:id/link: the page goes to `url`. */
export interface LinkStart {
  readonly url: string
}

/** GET /api/sessions: the current one first, then by last use. */
export interface Sessions {
  readonly sessions: readonly {
    readonly id: string
    readonly isCurrent: boolean
    readonly createdAt: string
    readonly lastUsedAt: string
    readonly address: string
    /** User-Agent of the browser at sign-in. */
    readonly agent: string
  }[]
}

/** POST /api/two-factor/start {}: nothing is on until `POST /api/two-factor/confirm {code}`. */
export interface TwoFactorStart {
  /** `otpauth://totp/…`, for the app. */
  readonly uri: string
  /** The same secret in Base32, to type by hand. */
  readonly secret: string
  readonly backupCodes: readonly string[]
}

/** POST /api/two-factor/backup-codes: the former codes no longer work. */
export interface BackupCodes {
  readonly backupCodes: readonly string[]
}

/*
 * Further routes:
 *   PATCH  /api/me {name}                      → Me
 *   POST   /api/sign-out {}                    → 204
 *   POST   /api/confirm {password, code?}      → 204: proves who it is, for 10 minutes; with two-factor on by the password and a code;
 *                                                409 for a person without a password, who signs in again
 *   POST   /api/email {email}                  → 202: a link goes to the new address; always the same answer
 *   POST   /api/password {current?, next}      → 204: ends all other sessions; without `current` where the person has no password yet
 *   DELETE /api/providers/:id                  → 204
 *   DELETE /api/sessions/:id                   → 204
 *   POST   /api/sessions/end-others {}         → 204
 *   POST   /api/two-factor/confirm {code}      → 204
 *   POST   /api/two-factor/off {}              → 204
 *   GET    /api/export                         → a JSON file with all that is stored about the person
 *   POST   /api/account/delete {email}         → 204: `email` is typed to confirm
 */
