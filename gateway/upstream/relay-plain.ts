import { isAscii } from 'node:buffer'
import { AnswerUsage } from '../dialects/answer-usage.ts'
import { answerTokens } from '../dialects/prompt-size.ts'
import { reportsWork, settledUsage, tokensOfBytes, type Usage, type UsageReport } from '../dialects/usage.ts'
import type { GatewayError } from '../errors.ts'
import { ChunkList } from '#platform/chunk-list.ts'
import { backendBroken, statusIn } from './backend-error.ts'
import type { AnswerHead, AnswerRelay, RelayPort } from './forward-job.ts'
import { isError, type JsonObject, parseObject, readJson } from '../dialects/json-body.ts'
import { HiddenCache, withoutCached } from '../dialects/cached-counts.ts'
import { hidesCached } from './prompt-cache.ts'
import { renamedBody, renamedStart } from './rename-model.ts'
import { returnedHeaders } from './upstream-headers.ts'

/** Answers up to this size, bytes, are read whole before anything is sent, so that an unreadable one becomes a proper error. */
const READ_WHOLE_BYTES = 65_536
const OPENING_BRACE = /^\s*\{/
const OPENING = /^\s*[[{]/
const NO_OBJECT = 'its answer is not a JSON object'

/** Relays an answer that is not streamed. Small answers are checked, larger ones are passed through with back-pressure. */
export class PlainRelay implements AnswerRelay {
  isOpen = false
  readonly #host: RelayPort
  readonly #head: AnswerHead
  readonly #isMetered: boolean
  /** Of an answer that is too large to parse. */
  #found: AnswerUsage | undefined = undefined
  /** Of an answer that does not show what was cached. */
  readonly #hidden: HiddenCache | undefined
  readonly #chunks = new ChunkList()
  #bytes = 0
  #report: UsageReport | undefined = undefined
  /** Whether the server has reported an error and no work. */
  #isRefused = false
  /** Tokens of the text of a whole answer without usage. */
  #writtenTokens: number | undefined = undefined

  constructor(host: RelayPort, head: AnswerHead) {
    this.#host = host
    this.#head = head
    this.#isMetered = host.job.isMetered !== false
    this.#hidden = hidesCached(host) ? new HiddenCache() : undefined
    host.began()
  }

  data(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.isOpen) {
      this.#found?.add(chunk)
      return this.#host.write(this.#hidden?.push(chunk) ?? chunk)
    }
    this.#chunks.add(chunk)
    if (this.#bytes > READ_WHOLE_BYTES) this.#pipe()
  }

  end(): void {
    if (this.isOpen) return this.#host.finish(this.#hidden?.end())
    const bytes = this.#chunks.take()
    const body = readJson(bytes)
    if (body === undefined) return this.#endList(bytes)
    if (this.#isMetered) this.#meter(body.value)
    if (isError(body.value)) {
      this.#isRefused = !reportsWork(this.#report)
      return this.#host.refused({ status: statusIn(body.value), body: body.value })
    }
    const renamed = renamedBody(body, this.#host.job.askedName)
    const shown = this.#hidden ? withoutCached(renamed) : renamed
    this.#open(shown.length)
    // Node sends its head and a text in one piece, but a head and bytes in several
    this.#host.finish(shown === body.bytes && isAscii(shown) ? body.text : shown)
  }

  /** A list has neither usage nor the name of a model. */
  #endList(bytes: Buffer): void {
    if (!this.#host.job.dialect.mayAnswerList || !isList(bytes)) return this.#host.fail(backendBroken(NO_OBJECT))
    this.#open(bytes.length)
    this.#host.finish(bytes)
  }

  usage(inputTokens: number): Usage | undefined {
    if (!this.#isMetered || this.#bytes === 0 || this.#isRefused) return undefined
    const length = Number(this.#head.headers['content-length'] ?? 0) // the backend has produced the whole answer, even if the client left
    const { events, hasOutput } = this.#host.job.dialect
    const outputTokens = this.#writtenTokens ?? tokensOfBytes(Math.max(this.#bytes, length))
    const found = this.#found?.usage()
    return settledUsage(found ? events.usageIn(found) : this.#report, hasOutput ? { inputTokens, outputTokens } : { inputTokens })
  }

  /** Cuts the connection, so that a truncated answer does not look complete. */
  broken(error: GatewayError): GatewayError {
    this.#host.job.exchange.response.destroy()
    return error
  }

  #meter(answer: JsonObject): void {
    this.#report = this.#host.job.dialect.events.usageIn(answer)
    if (!this.#report?.outputTokens) this.#writtenTokens = answerTokens(answer)
  }

  #pipe(): void {
    const collected = this.#chunks.take()
    const opening = this.#host.job.dialect.mayAnswerList ? OPENING : OPENING_BRACE
    if (!opening.test(collected.toString('latin1', 0, 64))) return this.#host.fail(backendBroken(NO_OBJECT))
    const shown = renamedStart(collected, this.#host.job.askedName)
    const length = this.#head.isDecoded ? undefined : this.#head.headers['content-length']
    this.#open(length === undefined ? undefined : Number(length) + shown.length - collected.length)
    if (this.#isMetered) {
      this.#found = new AnswerUsage()
      this.#found.add(collected)
    }
    this.#host.write(this.#hidden?.push(shown) ?? shown)
  }

  #open(length: number | undefined): void {
    this.isOpen = true
    const headers = returnedHeaders(this.#head.headers, 'application/json')
    if (length !== undefined) headers.push('content-length', String(length))
    this.#host.open(headers)
  }
}

function isList(bytes: Buffer): boolean {
  try {
    return Array.isArray(JSON.parse(bytes.toString('utf8')))
  } catch {
    return false
  }
}

/** More of an error body is not read. */
const MAX_ERROR_BYTES = 65_536

/** Reads an unsuccessful answer, or JSON where a stream was asked for. Only a cleaned message reaches the client. */
export class ErrorAnswer implements AnswerRelay {
  readonly isOpen = false
  readonly #host: RelayPort
  readonly #head: AnswerHead
  readonly #chunks = new ChunkList()
  #bytes = 0

  constructor(host: RelayPort, head: AnswerHead) {
    this.#host = host
    this.#head = head
    host.began()
  }

  data(chunk: Buffer): void {
    this.#chunks.add(chunk)
    this.#bytes += chunk.length
    if (this.#bytes > MAX_ERROR_BYTES) this.end()
  }

  end(): void {
    const text = this.#chunks.take().toString('utf8')
    const { 'content-type': type = '', 'retry-after': retryAfter } = this.#head.headers
    const body = parseObject(text) ?? (type.startsWith('text/plain') ? text : undefined)
    const status = this.#head.status === 200 ? statusIn(body) : this.#head.status
    this.#host.refused({ status, body, retryAfter, isPage: type.startsWith('text/html') })
  }

  usage(): undefined {
    return undefined
  }

  broken(error: GatewayError): GatewayError {
    return error
  }
}
