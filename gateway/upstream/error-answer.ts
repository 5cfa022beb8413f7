import type { GatewayError } from '../errors.ts'
import { statusIn } from './backend-error.ts'
import type { AnswerHead, AnswerRelay, RelayPort } from './answer-relay.ts'
import { parseObject } from '../dialects/json-body.ts'

/** More of an error body is not read. */
const MAX_ERROR_BYTES = 65_536

/** Reads an unsuccessful answer, or JSON where a stream was asked for. Only a cleaned message reaches the client. */
export class ErrorAnswer implements AnswerRelay {
  readonly isOpen = false
  readonly #host: RelayPort
  readonly #head: AnswerHead
  readonly #chunks: Buffer[] = []
  #bytes = 0

  constructor(host: RelayPort, head: AnswerHead) {
    this.#host = host
    this.#head = head
    host.began()
  }

  data(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes > MAX_ERROR_BYTES) this.end()
  }

  end(): void {
    const body = parseObject(Buffer.concat(this.#chunks).toString('utf8'))
    const status = this.#head.status === 200 ? statusIn(body) : this.#head.status
    const retryAfter = this.#head.headers['retry-after']
    this.#host.refused({ status, body, retryAfter })
  }

  usage(): undefined {
    return undefined
  }

  broken(error: GatewayError): GatewayError {
    return error
  }
}
