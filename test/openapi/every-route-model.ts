/** A model server with every route that a gateway passes calls to. Each call gets a good answer, so that an error is the gateway's own. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { CallRoute } from '#contract/values/call-routes.ts'
import { listening } from '../support/listening.ts'

const COUNTS = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const USAGE = { input_tokens: 3, output_tokens: 2, total_tokens: 5 }
const MESSAGE = { id: 'm', type: 'message', role: 'assistant', model: 'fuzzed', content: [{ type: 'text', text: 'hi' }] }
const RESPONSE = { id: 'r', object: 'response', model: 'fuzzed', status: 'completed', output: [], usage: USAGE }
const RANKS = [{ index: 0, score: 0.5, relevance_score: 0.5 }]

interface Answers {
  /** @param body as text */
  readonly plain: (body: string) => unknown
  readonly events?: readonly Readonly<Record<string, unknown>>[]
  /** The name of an event is its type, and the last event ends the stream. */
  readonly isNamed?: boolean
}

const chunk = (object: string, choice: object): Answers => ({
  plain: () => ({ id: 'c', object, model: 'fuzzed', choices: [choice], usage: COUNTS }),
  events: [
    { id: 'c', object: `${object}.chunk`, model: 'fuzzed', choices: [choice] },
    { id: 'c', object, choices: [], usage: COUNTS },
  ],
})

const ANSWERS: Readonly<Record<CallRoute, Answers>> = {
  'chat/completions': chunk('chat.completion', { index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }),
  completions: chunk('text_completion', { index: 0, text: 'hi', finish_reason: 'stop' }),
  responses: { plain: () => RESPONSE, events: [{ type: 'response.completed', response: RESPONSE }], isNamed: true },
  embeddings: {
    plain: () => ({ object: 'list', model: 'fuzzed', data: [{ object: 'embedding', index: 0, embedding: [0.5] }], usage: COUNTS }),
  },
  // TEI answers `texts` with a list
  rerank: { plain: (body) => (body.includes('"texts"') ? RANKS : { model: 'fuzzed', results: RANKS, usage: COUNTS }) },
  'audio/transcriptions': {
    plain: () => ({ text: 'hi', usage: { type: 'tokens', ...USAGE } }),
    events: [{ type: 'transcript.text.done', text: 'hi', usage: { type: 'tokens', ...USAGE } }],
  },
  'audio/speech': { plain: () => Buffer.from('RIFF') },
  messages: {
    plain: () => ({ ...MESSAGE, stop_reason: 'end_turn', usage: USAGE }),
    events: [
      { type: 'message_start', message: { ...MESSAGE, content: [], usage: USAGE } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ],
    isNamed: true,
  },
  'messages/count_tokens': { plain: () => ({ input_tokens: 3 }) },
}

/** A field of JSON, or of a form. The gateway has refused any other spelling. */
const ASKS_STREAM = /"stream"\s*:\s*true|name="stream"[^]*?\r\n\r\n(?:true|1)\r\n/

/** A running server. */
export interface EveryRouteModel {
  readonly url: string
  close(): Promise<void>
}

export async function startEveryRouteModel(): Promise<EveryRouteModel> {
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy()) // only a client that has left causes this
  })
  const port = await listening(server)
  const close = async (): Promise<void> => {
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  return { url: `http://127.0.0.1:${port}`, close }
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = (await buffer(request)).toString('latin1')
  const answers = ANSWERS[(request.url ?? '').replace('/v1/', '') as CallRoute] as Answers | undefined
  if (answers === undefined) return void response.writeHead(200).end('{}') // of probes
  if (answers.events !== undefined && ASKS_STREAM.test(body)) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of answers.events) response.write(`${nameOf(answers, event)}data: ${JSON.stringify(event)}\n\n`)
    return void response.end(answers.isNamed === true ? '' : 'data: [DONE]\n\n')
  }
  const plain = answers.plain(body)
  if (Buffer.isBuffer(plain)) return void response.writeHead(200, { 'content-type': 'audio/wav' }).end(plain)
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(plain))
}

function nameOf({ isNamed }: Answers, { type }: Readonly<Record<string, unknown>>): string {
  return isNamed === true ? `event: ${String(type)}\n` : ''
}
