/** Clients that read, read slowly or leave early, over one keep-alive agent. No client may receive the answer to another one's call. */
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SeededRandom } from './seeded-random.ts'

export interface RandomCall {
  readonly path: '/v1/chat/completions' | '/v1/messages'
  readonly body: string
  readonly manner: 'reads' | 'reads slowly' | 'leaves at once' | 'leaves at the head' | 'leaves in the body'
}

/** The answer that a client got. `broken`: the connection ended before the answer did. */
export interface SeenAnswer {
  readonly status: number
  /** Content type. */
  readonly type: string
  readonly text: string
  readonly end: 'whole' | 'broken' | 'left'
  readonly why?: string
}

/** @param mark the word that only this call and its answer may hold */
export function randomCall(random: SeededRandom, model: string, mark: string): RandomCall {
  const path = random.pick<RandomCall['path']>(['/v1/chat/completions', '/v1/messages'])
  const stream = random.pick([true, false, undefined])
  const body = JSON.stringify({ model, stream, max_tokens: 3, messages: [{ role: 'user', content: mark }] })
  const manner = random.chance(0.75)
    ? 'reads'
    : random.pick<RandomCall['manner']>(['reads slowly', 'leaves at once', 'leaves at the head', 'leaves in the body'])
  return { path, body, manner }
}

export class RandomClients {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 48 })
  readonly #base: string
  readonly #credential: string

  constructor(base: string, credential: string) {
    this.#base = base
    this.#credential = credential
  }

  close(): void {
    this.#agent.destroy()
  }

  call({ path, body, manner }: RandomCall): Promise<SeenAnswer> {
    const headers = { authorization: `Bearer ${this.#credential}`, 'content-type': 'application/json' }
    return new Promise((resolve) => {
      let [status, type, text] = [0, '', '']
      const ended = (end: SeenAnswer['end'], why?: string): void => resolve({ status, type, text, end, ...(why ? { why } : {}) })
      const sent = request(`${this.#base}${path}`, { agent: this.#agent, method: 'POST', headers }, (answer) => {
        status = answer.statusCode ?? 0
        type = answer.headers['content-type'] ?? ''
        if (manner === 'leaves at the head') return leave()
        answer.setEncoding('utf8').on('data', (part: string) => {
          text += part
          if (manner === 'leaves in the body') leave()
          if (manner === 'reads slowly') void sleep(5, answer.pause()).then((paused) => paused.resume())
        })
        answer.on('error', (error: NodeJS.ErrnoException) => ended('broken', error.code))
        answer.on('end', () => ended(answer.complete ? 'whole' : 'broken'))
      })
      const leave = (): void => {
        ended('left')
        sent.destroy()
      }
      sent.on('error', (error: NodeJS.ErrnoException) => ended('broken', error.code ?? error.message))
      sent.end(body)
      if (manner === 'leaves at once') setImmediate(leave)
    })
  }
}
