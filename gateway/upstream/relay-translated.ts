import { answerTokens } from '../dialects/prompt-size.ts'
import { settledUsage, tokensOfBytes, type Usage, type UsageReport } from '../dialects/usage.ts'
import { type JsonObject, readJson } from '../dialects/json-body.ts'
import { UnreadableAnswer } from '../dialects/unreadable-answer.ts'
import type { GatewayError } from '../errors.ts'
import { backendBroken, statusIn } from './backend-error.ts'
import type { AnswerHead, AnswerRelay, RelayPort } from './forward-job.ts'
import { isError } from './relay-plain.ts'
import type { TranslatedAttempt } from './translated-call.ts'
import { returnedHeaders } from './upstream-headers.ts'

/** Largest answer, bytes, that is read whole to be translated. */
const MAX_ANSWER_BYTES = 32 * 2 ** 20

/** Relays a plain answer in the client's format. The answer is read whole, because its parts have another order there. */
export class TranslatedRelay implements AnswerRelay {
  readonly isOpen = false
  readonly #host: RelayPort
  readonly #head: AnswerHead
  readonly #translated: TranslatedAttempt
  #chunks: Buffer[] = []
  #bytes = 0
  #report: UsageReport | undefined = undefined
  #writtenTokens: number | undefined = undefined

  constructor(host: RelayPort, head: AnswerHead, translated: TranslatedAttempt) {
    this.#host = host
    this.#head = head
    this.#translated = translated
    host.began()
  }

  data(chunk: Buffer): void {
    this.#bytes += chunk.length
    this.#chunks.push(chunk)
    if (this.#bytes > MAX_ANSWER_BYTES) this.#host.fail(backendBroken('its answer is too large to be translated'))
  }

  end(): void {
    const body = readJson(Buffer.concat(this.#chunks))
    this.#chunks = []
    if (body === undefined) return this.#host.fail(backendBroken('its answer is not a JSON object'))
    if (isError(body.value)) return this.#host.refused({ status: statusIn(body.value), body: body.value })
    this.#writtenTokens = answerTokens(body.value)
    this.#report = this.#translated.translator.events.usageIn(body.value)
    const answer = this.#answer(body.value)
    if (answer === undefined) return
    const bytes = Buffer.from(JSON.stringify(answer))
    this.#host.open([...returnedHeaders(this.#head.headers, 'application/json'), 'content-length', String(bytes.length)])
    this.#host.finish(bytes)
  }

  usage(inputTokens: number): Usage | undefined {
    if (this.#host.job.isMetered === false || this.#bytes === 0) return undefined
    return settledUsage(this.#report, { inputTokens, outputTokens: this.#writtenTokens ?? tokensOfBytes(this.#bytes) })
  }

  broken(error: GatewayError): GatewayError {
    return error
  }

  #answer(answer: JsonObject): JsonObject | undefined {
    const { translator, asked } = this.#translated
    try {
      return translator.answer(answer, asked, Math.max(1, this.#writtenTokens ?? 0))
    } catch (cause) {
      if (!(cause instanceof UnreadableAnswer)) throw cause
      this.#host.fail(backendBroken('its answer is not complete', { cause }))
      return undefined
    }
  }
}
