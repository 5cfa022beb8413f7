import type { IncomingMessage } from 'node:http'
import type { Caller } from '../auth/key-table.ts'
import type { BodyReader } from '../dialects/body-reader.ts'
import { type GatewayError, orThrow } from '../errors.ts'
import type { BodyBudget } from '../http/body-budget.ts'
import type { Exchange } from '../http/exchange.ts'
import type { ShareOwner } from '../http/shares.ts'
import type { RequestTurns } from '../http/request-turns.ts'
import type { CallLimits } from '../limits/call-limits.ts'
import type { FreeCalls } from '../limits/free-calls.ts'
import type { Ledger } from '../limits/ledger.ts'
import type { UsageMeter } from '../usage/usage-meter.ts'
import type { LoopShare } from '#platform/loop-share.ts'
import type { ForwardJob, Outcome } from '../upstream/forward-job.ts'
import type { ModelTable } from '../upstream/model-table.ts'

/** The parts of the gateway that routes use. */
export interface RouteDeps {
  /** Authenticates a request: the Caller, or rows 1 to 4 and 24. It never waits. */
  authenticate(request: IncomingMessage): Caller | GatewayError
  readonly models: Pick<ModelTable, 'resolve' | 'visible'>
  /** Makes requests of one key take turns with those of other keys on the event loop. */
  readonly turns: Pick<RequestTurns, 'take'>
  isOverloaded(): boolean
  /** Counts a call of a known key, or refuses it with row 25 because its key or its tenant has too many. */
  admitted(exchange: Exchange, owner: ShareOwner): GatewayError | undefined
  /** The reason to end a call of this caller; read every second while the call runs. */
  reasonToEnd(caller: Caller): GatewayError | undefined
  forward(job: ForwardJob): Promise<Outcome>
  readonly bodies: BodyBudget
  readonly loop: LoopShare
  readonly bodyReader: Pick<BodyReader, 'read' | 'translate'>
  readonly maxBodyBytes: number
  readonly limits: Pick<CallLimits, 'reserve' | 'refusalUnread' | 'countOf'>
  readonly freeCalls: Pick<FreeCalls, 'take'>
  readonly ledger: Pick<Ledger, 'snapshot'>
  readonly usage: Pick<UsageMeter, 'refused'>
}

/**
 * Answers one request.
 * @param path without query
 * @returns a refusal that must cost little; the app answers it as if it were thrown
 * @throws GatewayError for any other refusal
 */
export type RouteHandler = (exchange: Exchange, path: string) => Refusal | Promise<Refusal>
type Refusal = GatewayError | void

/** Methods of a route, as the header `Allow` lists them. Express answers HEAD with the handler of GET. */
export type RouteMethods = 'POST' | 'GET, HEAD'

/** Authenticates a request and notes the key id on its exchange. @throws GatewayError for a request without a valid key */
export function identify(exchange: Exchange, deps: Pick<RouteDeps, 'authenticate'>): Caller {
  const caller = orThrow(deps.authenticate(exchange.request))
  exchange.keyID = caller.keyID
  return caller
}

/** Answers 200. */
export function send(exchange: Exchange, body: Buffer, type = 'application/json'): void {
  const { response } = exchange
  const headers = exchange.ownHeaders()
  headers.push('content-type', type, 'content-length', String(body.length))
  response.writeHead(200, headers)
  response.end(body)
}
