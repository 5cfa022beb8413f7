/** Requests of Messages that other gateways got wrong, plain and streamed: what a server of chat completions gets, and what the client gets. */
import { describe, expect, it } from 'vitest'
import type { Engine } from '#contract/values/call-routes.ts'
import type { ModelRecord } from '#contract/records/model-record.ts'
import { checkMessageStream } from '../../test/support/message-grammar.ts'
import { saidIn } from '../../test/support/rebuilt-message.ts'
import {
  chunk,
  DONE,
  type FakeBackend,
  gatewayTo,
  type Harness,
  json,
  MESSAGES,
  type Reply,
  sse,
} from '../../test/support/upstream-harness.ts'

type Fields = Readonly<Record<string, unknown>>

const WAYS = [
  { way: 'plain', stream: false },
  { way: 'streamed', stream: true },
] as const
const USER = { role: 'user', content: 'hi' }
const HELLO = { model: 'llama', max_tokens: 10, messages: [USER] }
const IMAGE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
const IMAGE_PART = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
const TOOL = { name: 'read', input_schema: { type: 'object', properties: {} } }
const SEARCH = { type: 'web_search_20250305', name: 'web_search' }
const text = (words: string): Fields => ({ type: 'text', text: words })
const thinking = (words: string): Fields => ({ type: 'thinking', thinking: words, signature: '' })
const use = (id: string): Fields => ({ type: 'tool_use', id, name: 'read', input: {} })
const result = (id: string, content: unknown): Fields => ({ type: 'tool_result', tool_use_id: id, content })
const call = (id: string): Fields => ({ id, type: 'function', function: { name: 'read', arguments: '{}' } })
const assistant = (...content: readonly Fields[]): Fields => ({ role: 'assistant', content })
const user = (...content: readonly Fields[]): Fields => ({ role: 'user', content })

interface Sent {
  readonly request: Fields
  readonly engine?: Engine
  readonly model?: Partial<ModelRecord>
  /** Fields of the body that the server gets. */
  readonly server: Fields
  readonly dropped?: string
  readonly adjusted?: string
}

const SENT: Readonly<Record<string, Sent>> = {
  'X11: a system message in the middle stays where it stood': {
    request: { messages: [USER, { role: 'system', content: 'note' }, { role: 'user', content: 'go' }] },
    server: { messages: [USER, { role: 'system', content: 'note' }, { role: 'user', content: 'go' }] },
  },
  'X11: a system message between a call and its result follows the result': {
    request: { messages: [USER, assistant(use('c1')), { role: 'system', content: 'note' }, user(result('c1', 'r'))] },
    server: {
      messages: [
        USER,
        { role: 'assistant', content: null, tool_calls: [call('c1')] },
        { role: 'tool', tool_call_id: 'c1', content: 'r' },
        { role: 'system', content: 'note' },
      ],
    },
  },
  'X12: reasoning before a call goes back in the field of the server': {
    engine: 'DeepSeek',
    request: { messages: [USER, assistant(thinking('hm'), use('c1')), user(result('c1', 'r'))] },
    server: {
      messages: [
        USER,
        { role: 'assistant', content: null, reasoning_content: 'hm', tool_calls: [call('c1')] },
        { role: 'tool', tool_call_id: 'c1', content: 'r' },
      ],
    },
  },
  'X13: thinking that is turned off is turned off by the switch of the server': {
    engine: 'SGLang',
    request: { thinking: { type: 'disabled' } },
    server: { chat_template_kwargs: { enable_thinking: false } },
  },
  'X14: thinking of earlier turns is left out for a server that takes none': {
    engine: 'TGI',
    request: { messages: [USER, assistant(thinking('hm'), text('a')), USER] },
    server: { messages: [USER, { role: 'assistant', content: 'a' }, USER] },
    dropped: 'messages.thinking',
  },
  'X15: an effort goes to a server that takes one': {
    engine: 'VLLM',
    request: { thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } },
    server: { reasoning_effort: 'medium', thinking: undefined, output_config: undefined },
    dropped: 'thinking',
  },
  'X15: an effort is named where the server takes none': {
    engine: 'TGI',
    request: { thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } },
    server: { reasoning_effort: undefined },
    dropped: 'thinking, output_config.effort',
  },
  'X17: an image of the user is a part': {
    request: { messages: [user(text('see'), IMAGE)] },
    server: { messages: [{ role: 'user', content: [text('see'), IMAGE_PART] }] },
  },
  'X18: an image of a result follows all results, in its order, and says whose it is': {
    request: {
      messages: [USER, assistant(use('c1'), use('c2')), user(result('c2', [text('two'), IMAGE]), result('c1', [IMAGE]), text('go'))],
    },
    server: {
      messages: [
        USER,
        { role: 'assistant', content: null, tool_calls: [call('c1'), call('c2')] },
        { role: 'tool', tool_call_id: 'c1', content: '' },
        { role: 'tool', tool_call_id: 'c2', content: 'two' },
        {
          role: 'user',
          content: [
            text('Image in the result of the tool call c1:'),
            IMAGE_PART,
            text('Image in the result of the tool call c2:'),
            IMAGE_PART,
            text('go'),
          ],
        },
      ],
    },
  },
  'X20: a tool that Anthropic runs is left out and named': {
    request: { tools: [SEARCH, TOOL], tool_choice: { type: 'auto' } },
    server: { tools: [{ type: 'function', function: { name: 'read', parameters: TOOL.input_schema } }], tool_choice: 'auto' },
    dropped: 'tools.web_search_20250305',
  },
  'X21: redacted thinking beside calls leaves each call with its result': {
    request: {
      messages: [
        USER,
        assistant({ type: 'redacted_thinking', data: 'x' }, use('c1'), use('c2')),
        user(result('c2', 'two'), result('c1', 'one')),
      ],
    },
    server: {
      messages: [
        USER,
        { role: 'assistant', content: null, tool_calls: [call('c1'), call('c2')] },
        { role: 'tool', tool_call_id: 'c1', content: 'one' },
        { role: 'tool', tool_call_id: 'c2', content: 'two' },
      ],
    },
    dropped: 'redacted_thinking',
  },
  'X24: the changing sum of Claude Code is a constant, and the text around it stays': {
    request: { system: [text('x-anthropic-billing-header: cc_version=2.1; cch=0a1b2; cc_entrypoint=cli;'), text('You are')] },
    server: {
      messages: [{ role: 'system', content: 'x-anthropic-billing-header: cc_version=2.1; cch=00000; cc_entrypoint=cli;\n\nYou are' }, USER],
    },
  },
  'X26: a long user is 32 digits of its hash': {
    request: { metadata: { user_id: `user_${'x'.repeat(300)}` } },
    server: { user: expect.stringMatching(/^[0-9a-f]{32}$/) as unknown, metadata: undefined },
  },
  'X27: max_tokens is lowered to what the context has left': {
    request: { max_tokens: 32_000 },
    model: { contextTokens: 1_000 },
    server: { max_tokens: expect.toSatisfy((cap: number) => cap < 1_000 && cap > 900) as unknown },
    adjusted: 'max_tokens',
  },
}

const ANSWER = {
  choices: [{ message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 7, completion_tokens: 1 },
}

/** An answer of the kind that the server was asked for. */
const answer: Reply = (response, received) => {
  const { stream } = JSON.parse(String(received.body)) as { readonly stream: boolean }
  if (stream) sse(response).end(chunk('ok') + chunk('', 'stop') + DONE)
  else json(200, ANSWER)(response, received)
}

async function serverOf(
  reply: Reply,
  { engine = 'LlamaCpp', model = {} }: Pick<Sent, 'engine' | 'model'> = {},
): Promise<{ readonly gateway: Harness; readonly backend: FakeBackend }> {
  return gatewayTo(reply, { tickMs: 60_000, model, backend: { routes: ['chat/completions'], engine, upstreamModel: 'up' } })
}

const received = ({ received: [first] }: FakeBackend): Fields => JSON.parse(String(first?.body)) as Fields

describe.each(WAYS)('a request for a $way answer', ({ stream }) => {
  it.each(Object.entries(SENT))('%s', async (_, { request, server, dropped, adjusted, ...how }) => {
    const { gateway, backend } = await serverOf(answer, how)
    const { status, headers, text: body } = await gateway.post(MESSAGES, { ...HELLO, ...request, stream })
    expect(status, body).toBe(200)
    const sent = received(backend)
    expect(sent.stream).toBe(stream)
    for (const [field, value] of Object.entries(server)) expect(sent[field], field).toEqual(value)
    expect([headers['x-headgate-dropped'], headers['x-headgate-adjusted']]).toEqual([dropped, adjusted])
  })

  it.each([
    ['X19: a PDF is refused by its place', { messages: [user(text('see'), { type: 'document', source: { type: 'base64', data: 'x' } })] }],
    [
      'X19: a document by URL is refused by its place',
      { messages: [user(text('see'), { type: 'document', source: { type: 'url', url: 'x' } })] },
    ],
    [
      'X20: a choice of a tool that Anthropic runs is refused',
      { tools: [SEARCH, TOOL], tool_choice: { type: 'tool', name: 'web_search' } },
    ],
  ])('%s, and no server is asked', async (_, request) => {
    const { gateway, backend } = await serverOf(answer)
    const refused = await gateway.post(MESSAGES, { ...HELLO, ...request, stream })
    expect([refused.status, refused.headers['content-type'], backend.received]).toEqual([400, 'application/json', []])
    expect(JSON.parse(refused.text)).toMatchObject({
      error: {
        type: 'invalid_request_error',
        message: expect.stringMatching(/^Unsupported: (?:messages\.0\.content\.1\.source|tools\.0) /) as string,
      },
    })
  })

  it('X17: an image for a model that takes none is a 400 that names the model, and the server stays in use', async () => {
    const words = 'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj'
    const failing = { error: { code: 500, message: words, type: 'server_error' } }
    const { gateway, backend } = await serverOf(json(500, failing))
    const asked = { ...HELLO, messages: [user(IMAGE)], stream }
    for (let i = 0; i < 8; i++) {
      const refused = await gateway.post(MESSAGES, asked)
      expect([refused.status, refused.headers['x-should-retry']]).toEqual([400, 'false'])
      expect(JSON.parse(refused.text)).toMatchObject({
        error: { type: 'invalid_request_error', message: `model llama does not take this input: ${words}` },
      })
    }
    expect(backend.received).toHaveLength(8)
  })

  it('X12: what a client keeps of a turn with reasoning and a call goes back as the server sent it', async () => {
    const tools = [{ index: 0, ...call('c1') }]
    const delta = (fields: Fields, finish: string | null = null): string =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: fields, finish_reason: finish }] })}\n\n`
    const message = { content: null, reasoning_content: 'hm', tool_calls: tools }
    const { gateway, backend } = await serverOf((response, asked) => {
      if (!stream) return json(200, { choices: [{ message, finish_reason: 'tool_calls' }] })(response, asked)
      sse(response).end(
        delta({ reasoning_content: 'h' }) + delta({ reasoning_content: 'm' }) + delta({ tool_calls: tools }, 'tool_calls') + DONE,
      )
    })
    const first = await gateway.post(MESSAGES, { ...HELLO, stream })
    const content = stream ? contentOf(first.text) : (JSON.parse(first.text) as { readonly content: readonly Fields[] }).content
    expect(content).toEqual([thinking('hm'), use('c1')])
    await gateway.post(MESSAGES, { ...HELLO, stream, messages: [USER, assistant(...content), user(result('c1', 'r'))] })
    expect(JSON.parse(String(backend.received[1]?.body))).toMatchObject({
      messages: [USER, { role: 'assistant', content: null, reasoning_content: 'hm', tool_calls: [call('c1')] }, { role: 'tool' }],
    })
  })

  it('X24: the prompt of a turn begins with the prompt of the turn before', async () => {
    const { gateway, backend } = await serverOf(answer)
    const system = (cch: string): Fields[] => [text(`x-anthropic-billing-header: cc_version=2.1; cch=${cch};`), text('You are')]
    await gateway.post(MESSAGES, { ...HELLO, stream, system: system('0a1b2') })
    await gateway.post(MESSAGES, { ...HELLO, stream, system: system('ffff9'), messages: [USER, assistant(text('ok')), USER] })
    const [before, after] = backend.received.map(
      ({ body }) => (JSON.parse(String(body)) as { readonly messages: readonly Fields[] }).messages,
    )
    expect(after?.slice(0, before?.length)).toEqual(before)
  })
})

/** The blocks that a client rebuilds of a stream with thinking and one call. */
function contentOf(stream: string): readonly Fields[] {
  const events = checkMessageStream(stream)
  const { thinking: thought, calls } = saidIn(events)
  const ids = events.flatMap(({ content_block: block }) => (block?.type === 'tool_use' ? [(block as { readonly id?: string }).id] : []))
  return [thinking(thought), ...calls.map(({ name, input }, index) => ({ type: 'tool_use', id: ids[index], name, input }))]
}
