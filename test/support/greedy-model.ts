/** A model server that generates the most that any known server generates for a body (the table in `docs/contract.md`), of any copy of a field. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { StubModel } from '../../examples/stub-model/stub-model.ts'
import { UID_HEADER } from './limit-processes.ts'

export const CAPS = ['max_tokens', 'max_completion_tokens', 'n_predict'] as const
export const MULTIPLIERS = ['n', 'best_of', 'n_cmpl'] as const
/** Caps of each server in groups, of which the first one with a cap decides; and the server's numbers of answers. */
const SERVERS = [
  { caps: [['max_tokens', 'max_completion_tokens']], multipliers: ['n', 'best_of'] }, // vLLM, SGLang
  { caps: [['n_predict'], ['max_tokens', 'max_completion_tokens']], multipliers: ['n', 'n_cmpl'] }, // llama.cpp
  { caps: [['max_tokens']], multipliers: [] }, // TGI, Ollama
]
const PROMPT_TOKENS = 5
/** No known server takes more (vLLM), however many a body asks for. */
const MAX_ANSWERS = 16_384

export interface GreedyModel extends StubModel {
  /** Tokens of prompts and answers by uid of the key, counted when a request arrives. */
  readonly tokens: ReadonlyMap<string, number>
}

export async function startGreedyModel(contextTokens: number): Promise<GreedyModel> {
  const tokens = new Map<string, number>()
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const completion = mostOutput(body, contextTokens - PROMPT_TOKENS)
      const uid = String(request.headers[UID_HEADER])
      tokens.set(uid, (tokens.get(uid) ?? 0) + PROMPT_TOKENS + completion)
      const usage = { prompt_tokens: PROMPT_TOKENS, completion_tokens: completion }
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ id: 'c', model: 'stub', choices: [], usage }))
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo // a listener on TCP has no pipe name
  const close = async (): Promise<void> => server.close().closeAllConnections()
  return { port, url: `http://127.0.0.1:${port}`, tokens, close }
}

function mostOutput(body: string, context: number): number {
  const outputs = SERVERS.map(({ caps, multipliers }) => {
    const deciding = caps.map((group) => group.flatMap((field) => readings(body, field))).find((group) => group.length > 0)
    if (deciding === undefined && body.includes('"max_completion_tokens"')) return 0 // documented: the server does not know the only cap
    const cap = Math.max(...(deciding ?? [0]).map((value) => (value > 0 ? Math.ceil(value) : context)))
    const answers = Math.max(1, ...multipliers.flatMap((field) => readings(body, field)))
    return Math.min(cap, context) * Math.min(answers, MAX_ANSWERS)
  })
  return Math.max(...outputs)
}

/** What servers may read in a field: each copy, and a text as a number or as none. */
function readings(body: string, field: string): number[] {
  const copies = body.matchAll(new RegExp(`"${field}":("?)([^",}]+)`, 'g'))
  return [...copies].flatMap(([, quote, value]) => (quote === '' ? [Number(value)] : [Number(value), 0]))
}
