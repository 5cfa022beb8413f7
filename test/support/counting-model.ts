/** A model server that adds up the usage that it reports, for tests that compare it with what was counted. */
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

export class CountingModel {
  readonly reported: Reported = { requests: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 }
  readonly url: string
  readonly #server: Server

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
      void text(request).then((body) => {
        const { stream = false, max_tokens: completion } = JSON.parse(body) as { readonly stream?: boolean; readonly max_tokens: number }
        const usage = model.#report(completion)
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

  #report(completion: number): object {
    this.reported.requests += 1
    this.reported.inputTokens += PROMPT
    this.reported.cachedInputTokens += CACHED
    this.reported.outputTokens += completion
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
