/** A model server that adds up the usage that it reports, for tests that compare it with what was counted. Its answers can be held back. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

const PROMPT = 7
const CACHED = 2
/** Longest wait of a silent stream, ms: its client ends it long before. */
const SILENCE_MS = 60_000

export interface Reported {
  requests: number
  inputTokens: number
  cachedInputTokens: number
  outputTokens: number
}

const NOTHING: Reported = { requests: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 }

export class CountingModel {
  readonly reported: Reported = { ...NOTHING }
  /** The same by the header `x-session-id` of the request, counted when the request arrives. */
  readonly bySession = new Map<string, Reported>()
  readonly url: string
  readonly #server: Server
  #held: PromiseWithResolvers<void> | undefined

  private constructor(server: Server, url: string) {
    this.#server = server
    this.url = url
  }

  static async start(ip: string): Promise<CountingModel> {
    const server = createServer()
    await once(server.listen(0, ip), 'listening')
    const { port } = server.address() as AddressInfo // a listener on TCP has no pipe name
    const model = new CountingModel(server, `http://${ip}:${port}`)
    server.on('request', (request, response) => {
      void text(request).then(async (body) => {
        const { stream = false, max_tokens: completion } = JSON.parse(body) as { readonly stream?: boolean; readonly max_tokens: number }
        const usage = model.#report(completion, String(request.headers['x-session-id']))
        await model.#held?.promise
        if (!stream) {
          const choices = [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }]
          return void response
            .setHeader('content-type', 'application/json')
            .end(JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
        }
        response.setHeader('content-type', 'text/event-stream')
        const chunk = (delta: object, finish: string | null): string =>
          `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }], usage })}\n\n`
        response.write(chunk({ content: 'x' }, null))
        if (!body.includes('be silent')) return void response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`)
        const timer = setTimeout(() => response.end(), SILENCE_MS)
        response.on('close', () => clearTimeout(timer))
      })
    })
    return model
  }

  /** From now on answers wait until `release`. */
  hold(): void {
    this.#held = Promise.withResolvers()
  }

  release(): void {
    this.#held?.resolve()
    this.#held = undefined
  }

  #report(completion: number, session: string): object {
    const ofSession = this.bySession.get(session) ?? { ...NOTHING }
    this.bySession.set(session, ofSession)
    for (const sum of [this.reported, ofSession]) {
      sum.requests += 1
      sum.inputTokens += PROMPT
      sum.cachedInputTokens += CACHED
      sum.outputTokens += completion
    }
    return {
      prompt_tokens: PROMPT,
      completion_tokens: completion,
      total_tokens: PROMPT + completion,
      prompt_tokens_details: { cached_tokens: CACHED },
    }
  }

  async close(): Promise<void> {
    this.#server.close().closeAllConnections()
  }
}
