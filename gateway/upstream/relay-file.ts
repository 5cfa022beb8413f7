import { settledUsage, tokensOfBytes, type Usage } from '../dialects/usage.ts'
import type { GatewayError } from '../errors.ts'
import { backendBroken } from './backend-error.ts'
import type { AnswerHead, AnswerRelay, RelayPort } from './forward-job.ts'
import { returnedHeaders } from './upstream-headers.ts'

const FILE_TYPES = /^(audio\/|text\/(plain|vtt|srt)|application\/(octet-stream|x-subrip|ogg))/

/** Whether an answer of this content type, in lower case, is sound or text. */
export function isFile(type: string): boolean {
  return FILE_TYPES.test(type)
}

/** Relays sound or text as it comes. Such an answer has no usage and no name of a model. */
export class FileRelay implements AnswerRelay {
  isOpen = false
  readonly #host: RelayPort
  readonly #head: AnswerHead
  #bytes = 0

  constructor(host: RelayPort, head: AnswerHead) {
    this.#host = host
    this.#head = head
    host.began()
  }

  data(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (!this.isOpen) this.#open()
    this.#host.write(chunk)
  }

  end(): void {
    if (this.isOpen) this.#host.finish()
    else this.#host.fail(backendBroken('its answer is empty'))
  }

  usage(inputTokens: number): Usage | undefined {
    const { job } = this.#host
    if (job.isMetered === false || this.#bytes === 0) return undefined
    return settledUsage(undefined, job.dialect.hasOutput ? { inputTokens, outputTokens: tokensOfBytes(this.#bytes) } : { inputTokens })
  }

  /** Cuts the connection, so that a truncated answer does not look complete. */
  broken(error: GatewayError): GatewayError {
    this.#host.job.exchange.response.destroy()
    return error
  }

  #open(): void {
    this.isOpen = true
    const headers = returnedHeaders(this.#head.headers)
    const length = this.#head.isDecoded ? undefined : this.#head.headers['content-length']
    if (length !== undefined) headers.push('content-length', length)
    this.#host.open(headers)
  }
}
