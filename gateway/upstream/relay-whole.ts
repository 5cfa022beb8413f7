import type { AnswerCost, WholeAnswer } from '../dialects/whole-answer.ts'
import { reportsWork, settledUsage, tokensOfBytes, type Usage } from '../dialects/usage.ts'
import { ChunkList } from '#platform/chunk-list.ts'
import { GatewayError } from '../errors.ts'
import { refusalToHold } from '../http/read-body.ts'
import { whoseTenant } from '../http/shares.ts'
import { backendBroken, gatewayFailure, statusIn } from './backend-error.ts'
import type { AnswerHead, AnswerRelay, RelayPort } from './forward-job.ts'
import { hidesCached } from './prompt-cache.ts'
import type { StreamRelay } from './relay-stream.ts'
import { returnedHeaders } from './upstream-headers.ts'

/** Answers up to this size, bytes, need no room in the budget of bodies, and leave a second attempt possible: nearly all are smaller. */
const SMALL_BYTES = 65_536

/**
 * Relays a plain answer in another form: in the client's format, because its parts have another order there, or as the stream that the client
 * has asked for and the server has not sent. The answer is read whole.
 */
export class WholeRelay implements AnswerRelay {
  readonly isOpen = false
  readonly #host: RelayPort
  readonly #head: AnswerHead
  /** Of a client that has asked for a stream. */
  readonly #stream: StreamRelay | undefined
  readonly #chunks = new ChunkList()
  #bytes = 0
  /** Bytes that the budget of bodies counts. */
  #booked = 0
  #cost: AnswerCost = {}
  /** Whether the server has reported an error and no work. */
  #isRefused = false

  constructor(host: RelayPort, head: AnswerHead, stream: StreamRelay | undefined) {
    this.#host = host
    this.#head = head
    this.#stream = stream
    host.began()
  }

  data(chunk: Buffer): void {
    this.#bytes += chunk.length
    this.#chunks.add(chunk)
    if (this.#bytes > this.#host.maxAnswerBytes) this.#tooLarge()
    else if (this.#bytes > SMALL_BYTES) this.#book()
  }

  end(): void {
    const bytes = this.#chunks.take()
    const { job, translated } = this.#host
    const order = {
      isStream: this.#stream !== undefined,
      wantsUsage: job.wantsUsage === true,
      model: job.askedName,
      bytes: bytes.length,
      hidesCached: hidesCached(this.#host),
      asked: translated?.asked,
    }
    this.#host.writeAnswer(bytes, order, (answer) => this.#answered(answer))
  }

  usage(inputTokens: number): Usage | undefined {
    if (this.#host.job.isMetered === false || this.#bytes === 0 || this.#isRefused) return undefined
    const length = Number(this.#head.headers['content-length'] ?? 0) // the server has produced the whole answer, even if the client left
    const outputTokens = this.#cost.writtenTokens ?? tokensOfBytes(Math.max(this.#bytes, length))
    return settledUsage(this.#cost.report, { inputTokens, outputTokens })
  }

  broken(error: GatewayError): GatewayError {
    return error
  }

  #answered(answer: WholeAnswer | GatewayError): void {
    if (answer instanceof GatewayError) return this.#host.fail(gatewayFailure(answer))
    this.#cost = answer
    if (answer.kind === 'Error') {
      this.#isRefused = !reportsWork(answer.report)
      return this.#host.refused({ status: statusIn(answer.body), body: answer.body })
    }
    if (answer.kind === 'Unreadable') return this.#host.fail(backendBroken(answer.reason, { cause: answer.cause }))
    this.#send(answer.bytes)
  }

  /** Books what exceeds a small answer. Its first bytes replace the body of the request. */
  #book(): void {
    if (this.#booked === 0) this.#host.dropBody()
    const { exchange, tenant = '' } = this.#host.job
    const refusal = exchange.bodyHold && refusalToHold(exchange.bodyHold, this.#bytes - this.#booked, whoseTenant(tenant))
    this.#booked = this.#bytes
    if (refusal === undefined) return
    if (refusal.row.id === 'bodyTooLarge') return this.#tooLarge()
    this.#chunks.clear()
    this.#host.fail(gatewayFailure(refusal))
  }

  #tooLarge(): void {
    this.#chunks.clear()
    this.#host.fail(backendBroken(`its answer is too large to be ${this.#host.translated ? 'translated' : 'sent as a stream'}`))
  }

  #send(bytes: Buffer): void {
    if (this.#stream) this.#stream.finishWith(bytes)
    else {
      this.#host.open([...returnedHeaders(this.#head.headers, 'application/json'), 'content-length', String(bytes.length)])
      this.#host.finish(bytes)
    }
    if (this.#booked > 0) this.#host.job.exchange.bodyHold?.replace(bytes.length) // until a slow client has it
  }
}
