/** Keys and the plan, as the routes below `/api` answer and accept them. Fields that are undefined are absent in JSON. */

/** Who sets a number that is in force. */
export type Owner = 'key' | 'plan' | 'account'
export type LimitName = 'requestsPerMinute' | 'tokensPerMinute' | 'maxConcurrentRequests'
export type BudgetWindow = 'Lifetime' | 'Day' | 'Week' | 'Month'
/** What the person wants of the key. `Revoked` is final. */
export type KeyWanted = 'Active' | 'Suspended' | 'Revoked'

/**
 * What a key does now. Activating: gateways are about to admit it. Revoking: some gateways have not acknowledged its end. NotAccepted: it
 * is not issued, and `problem` says why.
 */
export type KeyState =
  | 'Active'
  | 'Activating'
  | 'NotAccepted'
  | 'Suspending'
  | 'Suspended'
  | 'Expired'
  | 'BudgetUsedUp'
  | 'BalanceUsedUp'
  | 'AccountSuspended'
  | 'Revoking'
  | 'Revoked'

/** A rate or a concurrency. */
export interface LimitView {
  readonly limit: LimitName
  /** The number in force. */
  readonly value: number
  readonly owner: Owner
  /** What the key asks for, if that is more. */
  readonly asked?: number | undefined
}

/** A budget that counts for the key. Amounts are decimal text in the currency, or whole tokens. */
export interface BudgetView {
  readonly name: string
  readonly owner: Owner
  readonly unit: 'Currency' | 'Tokens'
  readonly window: BudgetWindow
  readonly amount: string
  /** undefined: nothing is known yet. */
  readonly used?: string | undefined
  readonly percent?: number | undefined
  /** RFC 3339; absent for Lifetime. */
  readonly resetsAt?: string | undefined
  /** IANA name. */
  readonly timeZone: string
  readonly isAudit: boolean
  /** Whether all keys of the account share it. */
  readonly isShared: boolean
}

export interface KeyView {
  /** Name of the ApiKey: the id of the key in every path. */
  readonly id: string
  /** The name that the person gave. */
  readonly name: string
  /** First 8 and last 4 characters of the value. */
  readonly hint: string
  readonly state: KeyState
  readonly wanted: KeyWanted
  /** An administrator made the key, and nobody can change it here. */
  readonly isManaged: boolean
  /** Reason and message of the condition that keeps the key from working. */
  readonly problem?: { readonly reason: string; readonly message: string } | undefined
  /** Entries of the allow-list; `['*']`: all models of the plan. */
  readonly models: readonly string[]
  readonly limits: readonly LimitView[]
  readonly budgets: readonly BudgetView[]
  readonly createdAt: string
  /** RFC 3339; absent: never. */
  readonly expiresAt?: string | undefined
  /** The end that the key itself asks for; absent: none of its own. */
  readonly ownExpiresAt?: string | undefined
  /** To the hour; absent: never used. */
  readonly lastUsedAt?: string | undefined
  /** The former value works until this time. */
  readonly formerValueUntil?: string | undefined
  /** Gateways that have acknowledged the newest change; absent before the operator has seen the key. */
  readonly programmed?: { readonly ready: number; readonly total: number } | undefined
}

/** GET /api/keys: newest first, revoked ones too. */
export interface Keys {
  readonly keys: readonly KeyView[]
  /** Keys that are neither revoked nor expired. */
  readonly used: number
  /** Most of them; absent where the plan is missing. */
  readonly most?: number | undefined
}

/** Body of POST /api/keys and PATCH /api/keys/:key. Absent fields: none of its own. */
export interface KeyForm {
  readonly name: string
  /** `['*']`: all models of the plan. */
  readonly models: readonly string[]
  /** Currency, decimal. */
  readonly budget?: { readonly amount: string; readonly window: BudgetWindow } | undefined
  readonly requestsPerMinute?: number | undefined
  readonly tokensPerMinute?: number | undefined
  /** RFC 3339; absent: never. */
  readonly expiresAt?: string | undefined
}

/** POST /api/keys with `KeyForm & { attempt }`: `attempt` is drawn once for each dialog, so that a retry makes no second key. */
export interface NewKey {
  readonly key: KeyView
  /** The value. Shown once: no later answer has it. */
  readonly value: string
}

/** GET /api/plan */
export interface PlanView {
  readonly name: string
  readonly displayName?: string | undefined
  /** undefined: the Plan does not exist. */
  readonly most?: number | undefined
  /** Models that keys of the account may call, by name. */
  readonly models: readonly ModelView[]
  readonly limits: readonly {
    readonly limit: LimitName
    /** No key has more. */
    readonly ceiling?: number | undefined
    /** Of a key without its own. */
    readonly default?: number | undefined
    /** All keys together. */
    readonly shared?: number | undefined
    readonly sharedOwner?: Owner | undefined
  }[]
  /** Budgets of each key beside its own, and those that all keys share. */
  readonly budgets: readonly BudgetView[]
  /** s */
  readonly ttl: { readonly default?: number | undefined; readonly ceiling?: number | undefined } | undefined
  /** For example `EUR`. */
  readonly currency: string
}

/** Decimal amounts: for a million tokens, and for each call. */
export interface PriceView {
  readonly input: string
  readonly cachedInput?: string | undefined
  readonly cacheWrite?: string | undefined
  readonly output: string
  readonly perRequest?: string | undefined
}

export interface ModelView {
  readonly name: string
  /** Absent: the model has no price, so prepaid keys cannot call it. */
  readonly price?: PriceView | undefined
  readonly contextTokens?: number | undefined
}

/*
 * Routes:
 *   GET   /api/keys                                    → Keys
 *   POST  /api/keys {…KeyForm, attempt}                → NewKey; 409 `conflict` with `fields.key` = id: this attempt has made its key already
 *   GET   /api/keys/:key                               → KeyView
 *   PATCH /api/keys/:key KeyForm                       → KeyView
 *   POST  /api/keys/:key/suspend {}                    → KeyView
 *   POST  /api/keys/:key/resume {}                     → KeyView
 *   POST  /api/keys/:key/revoke {name}                 → KeyView; `name` is typed to confirm
 *   POST  /api/keys/:key/replace {overlapSeconds} → NewKey: the former value works for so long; 0, 3600 or 86400
 *   POST  /api/keys/:key/end-former {}                 → KeyView: the former value stops now
 *   GET   /api/plan                                    → PlanView
 */
