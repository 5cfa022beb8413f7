/**
 * The two ports of the payments program. The provider sends events to `/webhooks/stripe` on the one, which the internet reaches. The dashboard asks
 * for pages of the provider on the other, which the chart closes to all other pods.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { z } from 'zod'
import { ChunkList } from '#platform/chunk-list.ts'
import type { Log } from '#platform/log.ts'
import { messageOf } from '#platform/message-of.ts'
import { minorOf } from './minor-units.ts'
import { METADATA } from './payment.ts'
import { checkoutRequest, type CheckoutRequest, type ReceiptRequest, receiptRequest, topUpRequest, type TopUpRequest } from './protocol.ts'
import { ForgedEvent, type PaymentProvider } from './provider.ts'
import type { Settlement } from './settlement.ts'

export interface ServerDeps {
  readonly provider: PaymentProvider
  readonly settlement: Settlement
  readonly installation: string
  readonly currency: string
  /** That the dashboard sends. */
  readonly token: string
  readonly log: Log
  /** Of each event: its type and what became of it. */
  readonly onEvent: (type: string, outcome: string) => void
}

interface Answer {
  readonly status: number
  readonly body?: object
}

const WEBHOOK = '/webhooks/stripe'
const MAX_EVENT_BYTES = 1_048_576
const MAX_QUESTION_BYTES = 10_240
/** Requests that are worked on at once; the provider sends again what is refused. */
const MAX_AT_ONCE = 64
const TIMEOUTS = { requestTimeout: 10_000, headersTimeout: 10_000 }

/** Takes the events of the provider. 200 only after the API server has the Credits, so that the provider sends everything else again. */
export function createWebhookServer(deps: ServerDeps): Server {
  return serving(deps, async (request) => {
    if (request.method !== 'POST' || request.url !== WEBHOOK) return { status: 404 }
    const body = await bodyOf(request, MAX_EVENT_BYTES)
    if (body === undefined) return { status: 413 }
    const event = deps.provider.read(body, String(request.headers['stripe-signature'] ?? ''))
    const outcome = await deps.settlement.ofEvent(event).catch((error: unknown) => {
      deps.onEvent(event.type, 'failed')
      throw error
    })
    deps.onEvent(event.type, outcome)
    return { status: 200 }
  })
}

/** Answers the dashboard. */
export function createCheckoutServer(deps: ServerDeps): Server {
  return serving(deps, async (request) => {
    if (!isFromDashboard(request, deps.token)) return { status: 401 }
    if (request.method !== 'POST') return { status: 404 }
    const body = await bodyOf(request, MAX_QUESTION_BYTES)
    if (body === undefined) return { status: 413 }
    switch (request.url) {
      case '/checkout':
        return await checkout(deps, parsed(checkoutRequest, body))
      case '/top-up':
        return await topUp(deps, parsed(topUpRequest, body))
      case '/receipt':
        return await receipt(deps, parsed(receiptRequest, body))
      default:
        return { status: 404 }
    }
  })
}

async function checkout({ provider, currency }: ServerDeps, asked: CheckoutRequest | undefined): Promise<Answer> {
  const amount = asked && minorOf(asked.amount, currency)
  if (asked === undefined) return { status: 400 }
  if (amount === undefined) return { status: 422 } // the currency does not have it, such as half a cent
  const { account, email, attempt } = asked
  const { url } = await provider.open({ account, email, attempt, amount })
  return { status: 200, body: { url } }
}

async function topUp({ provider, settlement, installation }: ServerDeps, asked: TopUpRequest | undefined): Promise<Answer> {
  if (asked === undefined) return { status: 400 }
  const payment = await provider.bySession(asked.session)
  if (payment === undefined || !isOf(asked.account, payment.session.metadata, installation)) return { status: 404 }
  await settlement.settle(payment)
  return { status: 200, body: { state: payment.session.state } }
}

async function receipt({ provider, installation }: ServerDeps, asked: ReceiptRequest | undefined): Promise<Answer> {
  if (asked === undefined) return { status: 400 }
  const found = await provider.receipt(asked.payment)
  if (found === undefined || !isOf(asked.account, found.metadata, installation)) return { status: 404 }
  return { status: 200, body: { url: found.url } }
}

/** Whether a payment is of an account of this installation. */
function isOf({ name, uid }: TopUpRequest['account'], metadata: Readonly<Record<string, string>>, installation: string): boolean {
  return metadata[METADATA.installation] === installation && metadata[METADATA.account] === name && metadata[METADATA.uid] === uid
}

function isFromDashboard({ headers }: IncomingMessage, token: string): boolean {
  const digest = (text: string): Buffer => hash('sha256', text, 'buffer')
  return timingSafeEqual(digest(headers.authorization ?? ''), digest(`Bearer ${token}`))
}

function parsed<T>(schema: z.ZodType<T>, body: Buffer): T | undefined {
  try {
    return schema.safeParse(JSON.parse(body.toString('utf8'))).data
  } catch {
    return undefined
  }
}

/** @returns undefined if it is longer than `most` bytes */
async function bodyOf(request: IncomingMessage, most: number): Promise<Buffer | undefined> {
  const chunks = new ChunkList()
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes <= most) chunks.add(chunk) // the rest is read and dropped: a loop that ends early would close the connection without an answer
  }
  return bytes > most ? undefined : chunks.take()
}

function serving({ log }: ServerDeps, answerTo: (request: IncomingMessage) => Promise<Answer>): Server {
  let running = 0
  return createServer(TIMEOUTS, (request, response) => {
    if (running >= MAX_AT_ONCE) return send(response, { status: 503 })
    running += 1
    answerTo(request)
      .catch((error: unknown): Answer => {
        if (error instanceof ForgedEvent) {
          log.warn('an event was refused, because the provider has not signed it')
          return { status: 400 }
        }
        log.error({ error: messageOf(error) }, 'a request failed; it works when it is sent again')
        return { status: 503 }
      })
      .then((answer) => send(response, answer))
      .finally(() => (running -= 1))
      .catch(() => response.destroy())
  })
}

function send(response: ServerResponse, { status, body = {} }: Answer): void {
  const text = JSON.stringify(body)
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store', 'content-length': Buffer.byteLength(text) }
  response.writeHead(status, status === 413 ? { ...headers, connection: 'close' } : headers).end(text)
}
