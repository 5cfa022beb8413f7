/**
 * Answers the number of tokens of a message for a model none of whose servers takes such a question: by the tokenizer of a server, else by the
 * estimate. A tokenizer that is slow, absent or broken is no failure: it changes neither the status of the answer nor the health of the server.
 */
import type { Dispatcher } from 'undici'
import { type JsonObject, parseObject } from '../dialects/json-body.ts'
import type { CountEstimate } from '../dialects/prompt-size.ts'
import { bytesFor, type RequestBody } from '../dialects/request-body.ts'
import { ENGINE_TRAITS, type TokenizerRoute } from '../dialects/translation/engine-traits.ts'
import { ChunkList } from '#platform/chunk-list.ts'
import { NO_SLOT } from '#platform/intrusive-set.ts'
import { type ForwardDeps, pickBackend } from './dispatch.ts'
import type { ForwardJob, Outcome } from './forward-job.ts'
import type { BackendEntry, Target } from './model-table.ts'
import type { Ticked } from './ticker.ts'
import { upstreamHeaders } from './upstream-headers.ts'

/** Ticks for all requests to a tokenizer together. */
const TIME_LIMIT_TICKS = 2
/** An answer with the tokens of a prompt is longer than the prompt. Reading more would delay other callers. */
const MAX_ANSWER_BYTES = 2 * 2 ** 20

export async function answerCount(job: ForwardJob, estimate: CountEstimate, deps: ForwardDeps): Promise<Outcome> {
  const counted = await countByServer(job, deps)
  const { exchange } = job
  if (exchange.response.destroyed) return { usage: undefined, wasSent: false, error: undefined } // the client has left
  // a tokenizer counts an image as the few tokens of its place
  const tokens = counted === undefined ? estimate.tokens : counted + estimate.mediaTokens
  const body = Buffer.from(JSON.stringify({ input_tokens: tokens }))
  exchange.response.writeHead(200, exchange.ownHeaders().concat('content-type', 'application/json', 'content-length', String(body.length)))
  exchange.response.end(body)
  return { usage: undefined, wasSent: true, error: undefined }
}

/** @returns undefined if no server has counted within the time */
async function countByServer(job: ForwardJob, deps: ForwardDeps): Promise<number | undefined> {
  const target = pickBackend(job.model, {
    tried: [],
    isUsable: (backend) => countBody(job, backend) !== undefined && deps.credentials(backend.credential) !== undefined,
    random: deps.random,
  })
  const tokenizer = target && ENGINE_TRAITS[target.backend.engine].tokenizer
  const body = target && countBody(job, target.backend)
  if (!target?.health.isUp || tokenizer === undefined || body === undefined) return undefined
  job.exchange.backend = target.backend.name
  const limit = new TimeLimit(deps.ticker.now)
  deps.ticker.add(limit)
  job.exchange.response.once('close', limit.end)
  try {
    const ask = asker(job, { target, tokenizer, signal: limit.signal }, deps)
    return whole(await COUNTS[tokenizer](ask, bytesFor(body, target.backend.upstreamModel, { asksUsage: false })))
  } catch {
    return undefined // no connection, no answer in time, or the client has left
  } finally {
    deps.ticker.delete(limit)
    job.exchange.response.off('close', limit.end)
  }
}

/** @returns undefined if the server has no tokenizer, or cannot get the message */
function countBody({ body, translations }: ForwardJob, { engine }: BackendEntry): RequestBody | undefined {
  const { tokenizer } = ENGINE_TRAITS[engine]
  return tokenizer === 'CountTokens' ? body : tokenizer && translations?.get(engine)?.body
}

class TimeLimit implements Ticked {
  slot = NO_SLOT
  readonly #startedAt: number
  readonly #controller = new AbortController()
  readonly signal = this.#controller.signal
  readonly end = (): void => this.#controller.abort()

  constructor(startedAt: number) {
    this.#startedAt = startedAt
  }

  onTick(now: number): void {
    if (now - this.#startedAt >= TIME_LIMIT_TICKS) this.end()
  }
}

/** Posts a body. @returns undefined unless the answer is a JSON object of bounded size with status 200 */
type Ask = (path: string, body: Buffer | string) => Promise<JsonObject | undefined>

const COUNTS: Readonly<Record<TokenizerRoute, (ask: Ask, body: Buffer) => Promise<unknown>>> = {
  ChatTokenize: async (ask, body) => (await ask('/tokenize', body))?.count,
  Template: async (ask, body) => {
    const prompt = (await ask('/apply-template', body))?.prompt
    if (typeof prompt !== 'string') return undefined
    const tokens = (await ask('/tokenize', JSON.stringify({ content: prompt, add_special: true, parse_special: true })))?.tokens
    return Array.isArray(tokens) ? tokens.length : undefined
  },
  CountTokens: async (ask, body) => (await ask('/v1/messages/count_tokens', body))?.input_tokens,
}

interface Asked {
  readonly target: Target
  readonly tokenizer: TokenizerRoute
  readonly signal: AbortSignal
}

function asker({ exchange, model }: ForwardJob, { target, tokenizer, signal }: Asked, { pools, forwarded, credentials }: ForwardDeps): Ask {
  const { prefix, health, backend } = target
  const headers = upstreamHeaders({
    sent: exchange.request.headers,
    ...{ forwarded, ofModel: model.forwardHeaders, isAnthropic: tokenizer === 'CountTokens', requestId: exchange.requestId },
    ...{ credential: credentials(backend.credential) ?? undefined, own: backend.headers },
  })
  return async (path, body) => {
    const options = { path: prefix + path, method: 'POST', headers, body, signal, headersTimeout: 0, bodyTimeout: 0 } as const
    const answer = await pools.of(health).request(options)
    const text = await textOf(answer.body)
    return answer.statusCode === 200 && text !== undefined ? parseObject(text) : undefined
  }
}

async function textOf(body: Dispatcher.ResponseData['body']): Promise<string | undefined> {
  const chunks = new ChunkList()
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.add(chunk)
    if (chunks.bytes > MAX_ANSWER_BYTES) return undefined // leaving the loop ends the request
  }
  return chunks.take().toString('utf8')
}

function whole(count: unknown): number | undefined {
  return typeof count === 'number' && Number.isSafeInteger(count) && count > 0 ? count : undefined
}
