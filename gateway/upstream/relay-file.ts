import { settledUsage, tokensOfBytes, type Usage } from '../dialects/usage.ts'
import type { GatewayError } from '../errors.ts'
import { backendBroken } from './backend-error.ts'
import type { AnswerHead, AnswerRelay, RelayPort } from './forward-job.ts'
import { returnedHeaders } from './upstream-headers.ts'

/** Sound, and its rate and channels where it is raw. */
const SOUND = /^(audio\/[a-z0-9][a-z0-9.+-]*(?: *; *(?:rate|channels|codecs)=[a-z0-9.]+)*|application\/(?:octet-stream|ogg)) *(?:;.*)?$/
/** Text in UTF-8, as Whisper and its relatives write it. */
const TEXT = /^(text\/(?:plain|vtt|srt)|application\/x-subrip) *(?:;.*)?$/

/** The content type of sound or text, without any other parameter; undefined for anything else. @param type of the server, in lower case */
function fileType(type: string): string | undefined {
  const text = TEXT.exec(type)?.[1]
  return text === undefined ? SOUND.exec(type)?.[1] : `${text}; charset=utf-8`
}

/** Relays sound or text as it comes. Such an answer has no usage and no name of a model. */
export class FileRelay implements AnswerRelay {
  isOpen = false
  readonly #host: RelayPort
  readonly #head: AnswerHead
  readonly #type: string
  #bytes = 0

  private constructor(host: RelayPort, head: AnswerHead, type: string) {
    this.#host = host
    this.#head = head
    this.#type = type
    host.began()
  }

  /** @returns undefined for an answer that is neither sound nor text */
  static of(host: RelayPort, head: AnswerHead): FileRelay | undefined {
    const type = fileType(String(head.headers['content-type'] ?? '').toLowerCase())
    return type === undefined ? undefined : new FileRelay(host, head, type)
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
    const headers = returnedHeaders(this.#head.headers, this.#type)
    const length = this.#head.isDecoded ? undefined : this.#head.headers['content-length']
    if (length !== undefined) headers.push('content-length', length)
    this.#host.open(headers)
  }
}
