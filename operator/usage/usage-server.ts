/** `GET /usage/v1/accounts/<name>?from=&to=&by=day,model,key&format=json|csv`: what the keys of an account have used. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Clock } from '#platform/clock.ts'
import { messageOf } from '#platform/message-of.ts'
import type { UsageAccess } from './usage-access.ts'
import { answerOf, csvOf, questionOf } from './usage-query.ts'
import type { AccountUsage } from './usage-reader.ts'

export interface UsageServerDeps {
  readonly access: UsageAccess
  /** @throws errors that pass; the answer is then 503 */
  readonly read: (account: string) => Promise<AccountUsage>
  readonly clock: Pick<Clock, 'now'>
  readonly outage: { failed(line: string): void; works(): void }
}

interface Answer {
  readonly status: number
  readonly body: string
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
}

const PATH = /^\/usage\/v1\/accounts\/([a-z0-9]([-.a-z0-9]*[a-z0-9])?)$/
const MAX_NAME = 253
const METHODS = ['GET', 'HEAD']
const RETRY_AFTER_SECONDS = 2

export function createUsageServer(deps: UsageServerDeps): Server {
  return createServer({ requestTimeout: 10_000, headersTimeout: 10_000 }, (request, response) => {
    answer(request, deps).then(
      (one) => send(response, one),
      (error: unknown) => {
        deps.outage.failed(`usage cannot be read: ${messageOf(error)}`)
        send(response, unavailable())
      },
    )
  })
}

async function answer(request: IncomingMessage, deps: UsageServerDeps): Promise<Answer> {
  const url = new URL(request.url ?? '', 'http://usage')
  const account = PATH.exec(url.pathname)?.[1] ?? ''
  if (account === '' || account.length > MAX_NAME) return failure(404, 'there is only /usage/v1/accounts/<name of an Account>')
  if (!METHODS.includes(request.method ?? '')) return failure(405, 'use GET', { allow: METHODS.join(', ') })
  const refusal = await deps.access.check(request.headers, account)
  if (refusal) return failure(refusal.status, refusal.message, refusal.status === 401 ? { 'www-authenticate': 'Bearer' } : {})
  return await usageOf(account, url.searchParams, formatOf(url.searchParams, request.headers), deps)
}

/** `format` counts, else the header Accept. */
function formatOf(search: URLSearchParams, { accept = '' }: IncomingMessage['headers']): string {
  return search.get('format') ?? (accept.includes('text/csv') ? 'csv' : 'json')
}

async function usageOf(
  account: string,
  search: URLSearchParams,
  format: string,
  { read, clock, outage }: UsageServerDeps,
): Promise<Answer> {
  const question = questionOf(search, clock.now())
  if (typeof question === 'string') return failure(400, question)
  const { open, closed } = await read(account)
  outage.works()
  const found = answerOf(account, open, closed, question)
  if (format === 'csv') return { status: 200, body: csvOf(found, question.by), type: 'text/csv; charset=utf-8' }
  return { status: 200, body: `${JSON.stringify(found)}\n` }
}

function failure(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, body: `${JSON.stringify({ error: { message } })}\n`, headers }
}

function unavailable(): Answer {
  return failure(503, 'usage cannot be read now; try again', { 'retry-after': String(RETRY_AFTER_SECONDS) })
}

function send(response: ServerResponse, { status, body, type = 'application/json', headers = {} }: Answer): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store', 'content-length': Buffer.byteLength(body), ...headers })
  response.end(response.req.method === 'HEAD' ? undefined : body)
}
