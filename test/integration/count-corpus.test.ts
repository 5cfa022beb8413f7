/** 500 requests are counted alike by llama-server itself and by the gateway, which asks the tokenizer of llama-server with the translated request. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { CORPUS_KINDS, countCorpus } from '../support/count-corpus.ts'
import { openLab } from '../support/lab.ts'
import { ModelServerPart, UPSTREAM_MODEL } from '../support/model-server-part.ts'
import type { Stack } from '../support/stack.ts'

const NATIVE = 'counted-native'
const TRANSLATED = 'counted-translated'
const SERVICE = 'counted'
/** The template of the tiny model shows no tools. */
const TEMPLATE = `{%- for tool in tools or [] %}{{ tool | tojson }}
{% endfor %}{%- for m in messages %}{{ m['role'] }}: {{ m['content'] }}{% for call in m['tool_calls'] or [] %}{{ call | tojson }}{% endfor %}
{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}`
/** Questions that are under way at the same time. */
const AT_ONCE = 4

const lab = openLab()
let stack: Stack
let credential: string
let server: ModelServerPart

beforeAll(async () => {
  stack = await lab.stack({ gateways: 1, gatewayEnv: { COUNT_TOKENS_PER_MINUTE: '10000' } })
  const file = join(lab.folder, 'template-with-tools.jinja')
  writeFileSync(file, TEMPLATE)
  server = await ModelServerPart.start(lab.folder, lab.address.ip, 'chat', ['--jinja', '--chat-template-file', file, '--ctx-size', '65536'])
  const { port } = server
  await stack.exposeService(SERVICE, port)
  const backend = { name: 'main', service: { name: SERVICE, port }, upstreamModel: UPSTREAM_MODEL, engine: 'LlamaCpp' }
  await stack.serveModel(NATIVE, { backends: [{ ...backend, messages: 'Native' }] })
  await stack.serveModel(TRANSLATED, { backends: [{ ...backend, messages: 'Translate' }] })
  credential = await stack.issueKey('counting-key')
})

afterAll(() => server.stop())

async function post(path: string, model: string, body: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
  const response = await fetch(stack.gateway.url + path, { method: 'POST', headers, body: JSON.stringify({ model, ...body }) })
  return response.json()
}

const count = (model: string, body: object): Promise<unknown> => post('/v1/messages/count_tokens', model, body)

it.each(CORPUS_KINDS)('100 requests of the kind: %s', async (kind) => {
  const requests = countCorpus().filter((request) => request.kind === kind)
  expect(requests).toHaveLength(100)
  for (let at = 0; at < requests.length; at += AT_ONCE) {
    const some = requests.slice(at, at + AT_ONCE)
    const [native, translated] = await Promise.all(
      [NATIVE, TRANSLATED].map((model) => Promise.all(some.map(({ body }) => count(model, body)))),
    )
    expect(native).toEqual(some.map(() => ({ input_tokens: expect.any(Number) })))
    expect(translated, `from request ${at}`).toEqual(native)
  }
})

it('the count has the tools of a request', async () => {
  const { body } = countCorpus().find(({ kind }) => kind === 'tools') ?? {}
  const [bare, whole] = await Promise.all([{ ...body, tools: [] }, body].map((one) => count(TRANSLATED, one ?? {})))
  const tokensOf = (counted: unknown): number => (counted as { input_tokens: number }).input_tokens
  expect(tokensOf(whole) - tokensOf(bare)).toBeGreaterThan(100)
})

it.each(CORPUS_KINDS)('the count is that of the call: %s', async (kind) => {
  const [body] = countCorpus()
    .filter((request) => request.kind === kind)
    .map((request) => request.body)
  const counted = await count(TRANSLATED, body ?? {})
  const answer = (await post('/v1/messages', TRANSLATED, { max_tokens: 1, ...body })) as { usage?: Record<string, number> }
  const { input_tokens: fresh = 0, cache_read_input_tokens: cached = 0 } = answer.usage ?? {}
  expect(counted, JSON.stringify(answer)).toEqual({ input_tokens: fresh + cached })
})
