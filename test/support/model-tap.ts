/** Stands in front of a model server, and adds up the usage that its answers report. It reads the answers by itself, without code of the product. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

export interface ReportedUsage {
  readonly requests: number
  /** Cached ones too. */
  readonly input: number
  readonly cached: number
  readonly output: number
}

export const NO_USAGE: ReportedUsage = { requests: 0, input: 0, cached: 0, output: 0 }
const CALLS: ReadonlySet<string> = new Set(['/v1/chat/completions', '/v1/messages'])
const EVENT = /^data: (\{.*)$/gm

export class ModelTap {
  readonly url: string
  /** By the header `x-session-id` of the requests. */
  readonly #bySession = new Map<string, ReportedUsage>()
  /** When each answer was counted, ms of `performance.now()`. */
  readonly #times: number[] = []
  readonly #server: Server
  readonly #target: string

  private constructor(server: Server, target: string) {
    const { address, port } = server.address() as AddressInfo // a listener on TCP has no pipe name
    this.url = `http://${address}:${port}`
    this.#server = server
    this.#target = target
    server.on('request', (request, response) => {
      this.#pass(request, response).catch((error: unknown) => response.destroy(error as Error))
    })
  }

  /** @param target address of the model server */
  static async start(ip: string, target: string): Promise<ModelTap> {
    const server = createServer()
    await once(server.listen(0, ip), 'listening')
    return new ModelTap(server, target)
  }

  /** What the answers to the calls of a session have reported so far. */
  of(session: string): ReportedUsage {
    return this.#bySession.get(session) ?? NO_USAGE
  }

  /** Answers of all sessions in the last `ms`. */
  withinLast(ms: number): number {
    return this.#times.filter((time) => time >= performance.now() - ms).length
  }

  close(): void {
    this.#server.close().closeAllConnections()
  }

  /** An answer is counted before its last byte is passed on, so that nobody has an answer that is not counted. */
  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request)
    const { method = 'GET', url = '/', headers } = request
    const answer = await fetch(`${this.#target}${url}`, {
      method,
      headers: { 'content-type': headers['content-type'] ?? 'application/json' },
      ...(method === 'POST' ? { body } : {}),
    })
    const bytes = Buffer.from(await answer.arrayBuffer())
    if (answer.ok && CALLS.has(url)) this.#count(String(headers['x-session-id']), bytes.toString())
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'application/json' }).end(bytes)
  }

  #count(session: string, answer: string): void {
    const usage = usageOf(answer)
    this.#times.push(performance.now())
    this.#bySession.set(session, sumOfUsage([this.of(session), usage]))
  }
}

export function sumOfUsage(all: readonly ReportedUsage[]): ReportedUsage {
  const sum = (name: keyof ReportedUsage): number => all.reduce((total, usage) => total + usage[name], 0)
  return { requests: sum('requests'), input: sum('input'), cached: sum('cached'), output: sum('output') }
}

/** What an answer has reported, plain or streamed. @throws Error if it has no usage */
export function usageOf(answer: string): ReportedUsage {
  return answer.startsWith('{') ? usageIn([answer]) : usageIn([...answer.matchAll(EVENT)].map(([, data = '']) => data))
}

type Counts = Readonly<Record<string, number | undefined>> & { readonly prompt_tokens_details?: { readonly cached_tokens?: number } }

/** Messages report the input at their beginning and the output at their end; chat completions report all at once. */
function usageIn(parts: readonly string[]): ReportedUsage {
  const found: Counts[] = parts.flatMap((part) => {
    const { usage, message } = JSON.parse(part) as { readonly usage?: Counts | null; readonly message?: { readonly usage?: Counts } }
    return [message?.usage, usage].filter((one) => one !== undefined && one !== null)
  })
  const counts: Counts = Object.assign({}, ...found)
  if (counts['completion_tokens'] !== undefined) {
    const { prompt_tokens: input = 0, completion_tokens: output, prompt_tokens_details: details } = counts
    return { requests: 1, input, cached: details?.cached_tokens ?? 0, output }
  }
  const { input_tokens: fresh, cache_read_input_tokens: cached = 0, output_tokens: output } = counts
  if (fresh === undefined || output === undefined) throw new Error('the model server reported no usage')
  return { requests: 1, input: fresh + cached, cached, output }
}
