/** What a route is: a row of the table in routes.ts. */
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Accounts } from '../accounts/accounts.ts'
import type { Action } from '../accounts/members.ts'
import type { Answer, Exchange } from '../http/exchange.ts'
import type { Identity } from '../identity/identity.ts'
import type { Keys } from '../keys/keys.ts'
import type { Session } from '../identity/sessions.ts'
import type { DashboardMetrics } from '../metrics.ts'
import type { Site } from '../pages/layout.ts'
import type { Money } from '../usage/routes.ts'

export interface RouteDeps {
  readonly identity: Identity
  readonly accounts: Accounts
  readonly keys: Keys
  /** Since when the API server does not answer. */
  readonly outage: { readonly sinceMs: number | undefined } | undefined
  readonly site: Site
  readonly money: Money
  /** Base URL of the API, without /v1. */
  readonly apiURL: string
  readonly clock: Clock
  /** With the fields `audit` (what was done), `person` and `request`: the audit log. */
  readonly log: Log
  readonly metrics: Pick<DashboardMetrics, 'answered' | 'databaseFailed' | 'signIn' | 'signUp'>
}

export type OpenHandler = (deps: RouteDeps, exchange: Exchange) => Promise<Answer>
export type MemberHandler = (deps: RouteDeps, exchange: Exchange, session: Session) => Promise<Answer>

interface Place {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** `/api/…` answers JSON and takes JSON; every other path answers pages and takes forms. */
  readonly path: string
  /** The route is there only where people may have passwords. */
  readonly needsPasswords?: true
}

/** A route that needs no session. */
export interface OpenRoute extends Place {
  readonly access: 'anyone'
  readonly handler: OpenHandler
}

/** A route for signed-in people whose role may do `access`. */
export interface MemberRoute extends Place {
  readonly access: Action
  /** Needs a proof of identity of the last ten minutes. */
  readonly isSensitive?: true
  readonly handler: MemberHandler
}

export type Route = OpenRoute | MemberRoute
