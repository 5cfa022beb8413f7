/**
 * `GET /usage/v1/accounts/<name>?from=&to=&by=day,model,key&format=json|csv`: what the keys of an account have used.
 * `GET /usage/v1/accounts/<name>/ledger?format=json|csv`: every movement of the balance of an account.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Clock } from '#platform/clock.ts'
import { messageOf } from '#platform/message-of.ts'
import { ledgerCsvOf, ledgerOf, ledgerRefusal } from './ledger-query.ts'
import type { AccountLedger } from './ledger-reader.ts'
import { EntriesUnreadable } from './secret-reader.ts'
import type { Readable, UsageAccess } from './usage-access.ts'
import { answerOf, csvOf, questionOf } from './usage-query.ts'
import type { AccountUsage } from './usage-reader.ts'

export interface UsageServerDeps {
  readonly access: UsageAccess
  /** @throws errors that pass; the answer is then 503 */
  readonly read: (account: string) => Promise<AccountUsage>
  /** undefined: the name has no books. @throws errors that pass; the answer is then 503 */
  readonly readLedger: (account: string) => Promise<AccountLedger | undefined>
  /** Currency of all balances of this installation, for example `USD`. @throws errors that pass; the answer is then 503 */
  readonly currency: () => Promise<string>
  /** Whether the counts of gateways cannot be read now; absent: they always can. */
  readonly isStoreAway?: () => boolean
  readonly clock: Pick<Clock, 'now'>
  readonly outage: { failed(line: string): void; works(): void }
}

interface Answer {
  readonly status: number
  readonly body: string
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A request that may be answered. */
interface Question {
  readonly account: string
  readonly search: URLSearchParams
  readonly isCsv: boolean
}

const PATH = /^\/usage\/v1\/accounts\/([a-z0-9](?:[-.a-z0-9]*[a-z0-9])?)(\/ledger)?$/
const MAX_NAME = 253
const METHODS = ['GET', 'HEAD']
const RETRY_AFTER_SECONDS = 2
const CSV = 'text/csv; charset=utf-8'

export function createUsageServer(deps: UsageServerDeps): Server {
  return createServer({ requestTimeout: 10_000, headersTimeout: 10_000 }, (request, response) => {
    answer(request, deps).then(
      (one) => send(response, one),
      (error: unknown) => {
        deps.outage.failed(`usage cannot be read: ${messageOf(error)}`)
        send(response, unavailable(error))
      },
    )
  })
}

async function answer(request: IncomingMessage, deps: UsageServerDeps): Promise<Answer> {
  const { pathname, searchParams: search } = new URL(request.url ?? '', 'http://usage')
  const [, account = '', ledger] = PATH.exec(pathname) ?? []
  const what: Readable = ledger === undefined ? 'usage' : 'ledger'
  if (account === '' || account.length > MAX_NAME)
    return failure(404, 'there is only /usage/v1/accounts/<name of an Account>, and /ledger below it')
  const refusal = methodRefusal(request) ?? (await accessRefusal(request, account, what, deps))
  if (refusal) return refusal
  const question = { account, search, isCsv: formatOf(search, request.headers) === 'csv' }
  return what === 'usage' ? await usageAnswer(question, deps) : await ledgerAnswer(question, deps)
}

function methodRefusal({ method = '' }: IncomingMessage): Answer | undefined {
  return METHODS.includes(method) ? undefined : failure(405, 'use GET', { allow: METHODS.join(', ') })
}

async function accessRefusal(
  { headers }: IncomingMessage,
  account: string,
  what: Readable,
  { access }: UsageServerDeps,
): Promise<Answer | undefined> {
  const refusal = await access.check(headers, account, what)
  if (!refusal) return undefined
  return failure(refusal.status, refusal.message, refusal.status === 401 ? { 'www-authenticate': 'Bearer' } : {})
}

/** `format` counts, else the header Accept. */
function formatOf(search: URLSearchParams, { accept = '' }: IncomingMessage['headers']): string {
  return search.get('format') ?? (accept.includes('text/csv') ? 'csv' : 'json')
}

async function usageAnswer({ account, search, isCsv }: Question, deps: UsageServerDeps): Promise<Answer> {
  const { read, isStoreAway = () => false, clock, outage } = deps
  const question = questionOf(search, clock.now())
  if (typeof question === 'string') return failure(400, question)
  const { open, closed } = await read(account)
  outage.works()
  const found = { ...answerOf(account, open, closed, question), ...(isStoreAway() ? { isLate: true as const } : {}) }
  return isCsv ? { status: 200, body: csvOf(found, question.by), type: CSV } : json(found)
}

async function ledgerAnswer(
  { account, search, isCsv }: Question,
  { readLedger, currency, clock, outage }: UsageServerDeps,
): Promise<Answer> {
  const refusal = ledgerRefusal(search)
  if (refusal !== undefined) return failure(400, refusal)
  const ledger = await readLedger(account)
  outage.works()
  if (ledger === undefined) return failure(404, 'no Account of this name has ever been accepted')
  const found = ledgerOf(account, ledger, { currency: await currency(), nowMs: clock.now() })
  return isCsv ? { status: 200, body: ledgerCsvOf(found), type: CSV } : json(found)
}

function json(body: unknown): Answer {
  return { status: 200, body: `${JSON.stringify(body)}\n` }
}

function failure(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, body: `${JSON.stringify({ error: { message } })}\n`, headers }
}

function unavailable(error: unknown): Answer {
  const message = error instanceof EntriesUnreadable ? error.message : 'usage cannot be read now; try again'
  return failure(503, message, { 'retry-after': String(RETRY_AFTER_SECONDS) })
}

function send(response: ServerResponse, { status, body, type = 'application/json', headers = {} }: Answer): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store', 'content-length': Buffer.byteLength(body), ...headers })
  response.end(response.req.method === 'HEAD' ? undefined : body)
}
