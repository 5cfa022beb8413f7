import { answerTokens } from '../dialects/prompt-size.ts'
import { settledUsage, tokensOfBytes, type Usage, type UsageReport } from '../dialects/usage.ts'
import { type JsonObject, readJson } from '../dialects/json-body.ts'
import { UnreadableAnswer } from '../dialects/unreadable-answer.ts'
import { type GatewayError, sharedError } from '../errors.ts'
import { backendBroken, gatewayFailure, statusIn } from './backend-error.ts'
import type { AnswerHead, AnswerRelay, RelayPort } from './forward-job.ts'
import { isError } from './relay-plain.ts'
import type { StreamRelay } from './relay-stream.ts'
import type { TranslatedAttempt } from './translated-call.ts'
import { returnedHeaders } from './upstream-headers.ts'

/** Answers up to this size, bytes, need no room in the budget of bodies, and leave a second attempt possible: nearly all are smaller. */
const SMALL_BYTES = 65_536

/**
 * Relays a plain answer in the client's format. The answer is read whole, because its parts have another order there. Where the client has
 * asked for a stream and the server ignores that, the answer becomes a stream.
 */
export class TranslatedRelay implements AnswerRelay {
  readonly isOpen = false
  readonly #host: RelayPort
  readonly #head: AnswerHead
  readonly #translated: TranslatedAttempt
  /** Of a client that has asked for a stream. */
  readonly #stream: StreamRelay | undefined
  #chunks: Buffer[] = []
  #bytes = 0
  /** Bytes that the budget of bodies counts. */
  #booked = 0
  #report: UsageReport | undefined = undefined
  #writtenTokens: number | undefined = undefined

  constructor(host: RelayPort, head: AnswerHead, translated: TranslatedAttempt, stream: StreamRelay | undefined) {
    this.#host = host
    this.#head = head
    this.#translated = translated
    this.#stream = stream
    host.began()
  }

  data(chunk: Buffer): void {
    this.#bytes += chunk.length
    this.#chunks.push(chunk)
    if (this.#bytes > this.#translated.maxAnswerBytes) {
      this.#chunks = []
      this.#host.fail(backendBroken('its answer is too large to be translated'))
    } else if (this.#bytes > SMALL_BYTES && !this.#book()) {
      this.#chunks = []
      this.#host.fail(gatewayFailure(sharedError('bodiesFull')))
    }
  }

  end(): void {
    const body = readJson(Buffer.concat(this.#chunks))
    this.#chunks = []
    if (body === undefined) return this.#host.fail(backendBroken('its answer is not a JSON object'))
    if (isError(body.value)) return this.#host.refused({ status: statusIn(body.value), body: body.value })
    this.#report = this.#translated.translator.events.usageIn(body.value)
    if (!this.#report?.outputTokens) this.#writtenTokens = answerTokens(body.value)
    const text = this.#text(body.value)
    if (text !== undefined) this.#send(Buffer.from(text))
  }

  usage(inputTokens: number): Usage | undefined {
    if (this.#host.job.isMetered === false || this.#bytes === 0) return undefined
    const length = Number(this.#head.headers['content-length'] ?? 0) // the server has produced the whole answer, even if the client left
    const outputTokens = this.#writtenTokens ?? tokensOfBytes(Math.max(this.#bytes, length))
    return settledUsage(this.#report, { inputTokens, outputTokens })
  }

  broken(error: GatewayError): GatewayError {
    return error
  }

  /** The first bytes beyond a small answer replace the body of the request. @returns whether there is room */
  #book(): boolean {
    if (this.#booked === 0) this.#host.dropBody()
    const taken = this.#host.job.exchange.bodyHold?.take(this.#bytes - this.#booked) ?? 'Taken'
    this.#booked = this.#bytes
    return taken === 'Taken'
  }

  /** @returns undefined if the answer cannot be translated; the attempt has failed then */
  #text(answer: JsonObject): string | undefined {
    const { translator, asked } = this.#translated
    const tokens = this.#writtenTokens ?? 0
    try {
      if (this.#stream === undefined) return JSON.stringify(translator.answer(answer, asked, tokens))
      const stream = translator.stream(asked)
      return stream.push(answer, tokens) + stream.end(tokens)
    } catch (cause) {
      if (!(cause instanceof UnreadableAnswer || cause instanceof RangeError)) throw cause // a RangeError: nested too deep
      this.#host.fail(backendBroken('its answer cannot be translated', { cause }))
      return undefined
    }
  }

  #send(bytes: Buffer): void {
    if (this.#stream) this.#stream.finishWith(bytes)
    else {
      this.#host.open([...returnedHeaders(this.#head.headers, 'application/json'), 'content-length', String(bytes.length)])
      this.#host.finish(bytes)
    }
    if (this.#booked > 0) this.#host.job.exchange.bodyHold?.take(bytes.length) // until a slow client has it
  }
}
