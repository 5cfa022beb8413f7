/** Messages for a server that speaks chat completions alone: what the server and the client get, and what the call costs. */
import { beforeAll, describe, expect, it } from 'vitest'
import { checkMessageStream } from '../../test/support/message-grammar.ts'
import { saidIn } from '../../test/support/rebuilt-message.ts'
import { sharedBodyReader } from '../../test/support/shared-body-reader.ts'
import type { BodyReader } from '../dialects/body-reader.ts'
import { GatewayError } from '../errors.ts'
import { BodyBudget } from '../http/body-budget.ts'
import type { BackendRecord } from '#contract/records/model-record.ts'
import {
  type Answer,
  backendRecord,
  chunk,
  deadAddress,
  DONE,
  gatewayTo,
  Harness,
  json,
  MESSAGES,
  type Reply,
  sse,
  startBackend,
  until,
} from '../../test/support/upstream-harness.ts'

const CHAT_ONLY = { routes: ['chat/completions'], engine: 'LlamaCpp', upstreamModel: 'up' }
const HELLO = { model: 'llama', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] }
const USAGE = { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 6 } }
const ANSWER = {
  id: 'c1',
  model: 'up',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: USAGE,
}
const COUNTS = `data: ${JSON.stringify({ choices: [], usage: USAGE })}\n\n`
const STREAM = chunk('hel') + chunk('lo') + chunk('', 'stop') + COUNTS + DONE

interface Called {
  readonly answer: Answer
  readonly gateway: Harness
  readonly sent: { readonly path: string; readonly body: Record<string, unknown>; readonly headers: Record<string, unknown> }
}

async function call(reply: Reply, body: object = {}, headers: Record<string, string> = {}): Promise<Called> {
  const { gateway, backend } = await gatewayTo(reply, { tickMs: 60_000, backend: CHAT_ONLY })
  gateway.job = { inputTokens: 5 }
  const answer = await gateway.post(MESSAGES, { ...HELLO, ...body }, headers)
  await until(() => gateway.outcomes.length + gateway.refusals.length === 1)
  const received = backend.received[0]
  return {
    answer,
    gateway,
    sent: {
      path: received?.path ?? '',
      body: JSON.parse(String(received?.body ?? '{}')) as Called['sent']['body'],
      headers: { ...received?.headers },
    },
  }
}

const streaming =
  (text: string): Reply =>
  (response) =>
    sse(response).end(text)

/** Large answers are translated in the worker. */
beforeAll(() => sharedBodyReader.start())

describe('a message for a server of chat completions', () => {
  it('goes there as a chat completion, without the headers of Anthropic', async () => {
    const { sent } = await call(json(200, ANSWER), { system: 'be kind' }, { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'x' })
    expect(sent.path).toBe('/v1/chat/completions')
    expect(sent.body).toEqual({
      ...{ model: 'up', stream: false, max_tokens: 10 },
      messages: [
        { role: 'system', content: 'be kind' },
        { role: 'user', content: 'hi' },
      ],
    })
    expect(Object.keys(sent.headers).filter((name) => name.startsWith('anthropic'))).toEqual([])
  })

  it('comes back as a message of the name that was asked for, and costs what the server reported', async () => {
    const { answer, gateway } = await call(json(200, ANSWER), { context_management: {} })
    expect(JSON.parse(answer.text)).toEqual({
      ...{ id: expect.stringMatching(/^msg_/) as string, type: 'message', role: 'assistant', model: 'llama' },
      content: [{ type: 'text', text: 'hello' }],
      ...{ stop_reason: 'end_turn', stop_sequence: null },
      usage: { input_tokens: 1, cache_read_input_tokens: 6, output_tokens: 3 },
    })
    expect(answer.headers).toMatchObject({ 'content-type': 'application/json', 'x-headgate-dropped': 'context_management' })
    expect(gateway.outcomes[0]?.usage).toEqual({ inputTokens: 7, cachedInputTokens: 6, outputTokens: 3, isEstimated: false })
  })

  it('comes back as a stream of correct grammar, however the network cuts it', async () => {
    const drips: Reply = (response) => {
      const out = sse(response)
      for (const byte of Buffer.from(STREAM)) out.write(Buffer.from([byte]))
      out.end()
    }
    for (const reply of [streaming(STREAM), drips]) {
      const { answer, gateway, sent } = await call(reply, { stream: true })
      expect(sent.body).toMatchObject({ stream: true, stream_options: { include_usage: true } })
      const events = checkMessageStream(answer.text)
      expect(events.map(({ delta }) => (delta as { text?: string } | undefined)?.text ?? '').join('')).toBe('hello')
      expect(events.at(-2)).toMatchObject({ usage: { input_tokens: 1, output_tokens: 3 }, delta: { stop_reason: 'end_turn' } })
      expect(gateway.outcomes[0]).toMatchObject({ usage: { inputTokens: 7, outputTokens: 3, isEstimated: false }, error: undefined })
    }
  })

  it('ends at its finish without an end marker, and with an estimate where the usage never comes', async () => {
    const { gateway } = await gatewayTo((response) => void sse(response).write(chunk('hello') + chunk('', 'stop')), { backend: CHAT_ONLY })
    gateway.job = { inputTokens: 5 }
    const { text } = await gateway.post(MESSAGES, { ...HELLO, stream: true })
    expect(checkMessageStream(text).at(-2)).toMatchObject({ usage: { input_tokens: 5, output_tokens: 1 } })
    await until(() => gateway.outcomes.length === 1)
    expect(gateway.outcomes[0]).toMatchObject({ usage: { inputTokens: 5, outputTokens: 1, isEstimated: true } })
  })

  it('X25: ends with one error event where the server reports an error or breaks off', async () => {
    const error = { message: 'the model broke', code: 500 }
    const beside = { error, choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }] } // OpenRouter
    const failures = [`data: ${JSON.stringify({ error })}\n\n${DONE}`, `data: ${JSON.stringify(beside)}\n\n${DONE}`, '']
    for (const failure of failures) {
      const { answer, gateway } = await call(streaming(chunk('hel') + failure), { stream: true })
      const events = checkMessageStream(answer.text)
      expect(events.map(({ type }) => type).filter((type) => type === 'error' || type === 'message_stop')).toEqual(['error'])
      expect(gateway.outcomes[0]?.error?.row.id).toBe('streamBroken')
      if (failure !== '') expect(answer.text).toContain('the model broke')
      expect(gateway.outcomes[0]?.usage?.outputTokens).toBeGreaterThan(0)
    }
  })

  it('X25: is an error with a status where the server fails before its first event', async () => {
    for (const stream of [true, false]) {
      const { answer } = await call(json(400, { error: { message: 'tools are not supported' } }), { stream })
      expect([answer.status, JSON.parse(answer.text)]).toMatchObject([
        400,
        { type: 'error', error: { type: 'invalid_request_error', message: 'tools are not supported' } },
      ])
    }
  })

  it('X25: is an error where an event of the server is no chunk, because its text would be lost', async () => {
    const { answer } = await call(streaming(`${chunk('hel')}data: not JSON\n\n${chunk('', 'stop')}${DONE}`), { stream: true })
    expect([answer.status, answer.text]).toEqual([502, expect.stringContaining('Backend error')])
  })

  it('X22: costs one answer, whatever number a body asks for: the server is asked for one', async () => {
    const { gateway, backend } = await gatewayTo(json(200, ANSWER), { tickMs: 60_000, backend: CHAT_ONLY })
    gateway.job = { inputTokens: 5, choices: 5 }
    await gateway.post(MESSAGES, { ...HELLO, n: 5 })
    await until(() => gateway.outcomes.length === 1)
    expect(gateway.outcomes[0]?.usage).toEqual({ inputTokens: 7, cachedInputTokens: 6, outputTokens: 3, isEstimated: false })
    expect(String(backend.received[0]?.body)).not.toContain('"n":')
  })

  it('X22: costs what the last report of the server says', async () => {
    const early = `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: 'stop' }], usage: { prompt_tokens: 7, completion_tokens: 1 } })}\n\n`
    const { answer, gateway } = await call(streaming(chunk('hello') + early + COUNTS + DONE), { stream: true })
    expect(checkMessageStream(answer.text).at(-2)).toMatchObject({ usage: { output_tokens: 3 } })
    expect(gateway.outcomes[0]?.usage).toEqual({ inputTokens: 7, cachedInputTokens: 6, outputTokens: 3, isEstimated: false })
  })

  it.each([false, true])('X22: shows nothing of a cache that other namespaces share (stream: %s)', async (stream) => {
    const { gateway } = await gatewayTo(stream ? streaming(STREAM) : json(200, ANSWER), {
      ...{ tickMs: 60_000, backend: CHAT_ONLY, model: { allowedNamespaces: ['shop', 'other'] } },
    })
    const { text } = await gateway.post(MESSAGES, { ...HELLO, stream })
    expect(text).toMatch(/"usage":\{"input_tokens":7,"output_tokens":3\}/)
    await until(() => gateway.outcomes.length === 1)
    expect(gateway.outcomes[0]?.usage?.cachedInputTokens).toBe(6)
  })

  it('X25: becomes a stream where the server ignores that one was asked for, and is charged', async () => {
    const { answer, gateway } = await call(json(200, ANSWER), { stream: true })
    expect(answer.headers['content-type']).toContain('text/event-stream')
    const events = checkMessageStream(answer.text)
    expect(events.map(({ delta }) => (delta as { text?: string } | undefined)?.text ?? '').join('')).toBe('hello')
    expect(gateway.outcomes[0]?.usage).toEqual({ inputTokens: 7, cachedInputTokens: 6, outputTokens: 3, isEstimated: false })
    const failed = await call(json(200, { error: { message: 'no', code: 400 } }), { stream: true })
    expect([failed.answer.status, JSON.parse(failed.answer.text)]).toMatchObject([400, { type: 'error' }])
  })

  const long = (bytes: number): object => ({
    ...ANSWER,
    choices: [{ message: { content: 'x'.repeat(bytes) }, finish_reason: 'stop' }],
  })

  it('is an error of the backend above the bound, and is charged', async () => {
    const { gateway } = await gatewayTo(json(200, long(100_000)), { ...{ tickMs: 60_000, backend: CHAT_ONLY }, maxAnswerBytes: 70_000 })
    gateway.job = { inputTokens: 5 }
    const { status, text } = await gateway.post(MESSAGES, HELLO)
    expect([status, text]).toEqual([502, expect.stringContaining('its answer is too large to be translated')])
    expect(gateway.refused[0]?.usage).toMatchObject({ inputTokens: 5, isEstimated: true })
  })

  it.each([
    { room: 400_000, perTenant: 400_000, perKey: 400_000, status: 200 },
    { room: 150_000, perTenant: 400_000, perKey: 400_000, status: 529 },
    { room: 400_000, perTenant: 150_000, perKey: 400_000, status: 429 },
    { room: 400_000, perTenant: 400_000, perKey: 150_000, status: 502 }, // no later attempt would have room
  ])(
    'takes room among the bodies while a large answer is read: $status of $room bytes, $perTenant a tenant, $perKey a key',
    async ({ room, perTenant, perKey, status }) => {
      const bodies = new BodyBudget({ process: 2 * room, large: room, perTenant, perKey })
      const { gateway } = await gatewayTo(
        (response, received) => {
          const [exchange] = gateway.exchanges
          if (exchange) exchange.bodyHold = bodies.open({ tenant: 'shop', key: 'key' })
          exchange?.bodyHold?.take(100_000)
          json(200, long(200_000))(response, received)
        },
        { tickMs: 60_000, backend: CHAT_ONLY },
      )
      expect((await gateway.post(MESSAGES, HELLO)).status).toBe(status)
      await until(() => bodies.bytes === 0)
    },
  )

  it.each([false, true])('is translated in the worker if it is large, and costs what the server reported (stream: %s)', async (stream) => {
    const { answer, gateway } = await call(json(200, long(400_000)), { stream })
    expect(answer.text).toContain('x'.repeat(400_000))
    expect(gateway.outcomes[0]).toMatchObject({ usage: { inputTokens: 7, outputTokens: 3, isEstimated: false }, error: undefined })
  })

  it('is answered once if its key ends while the worker has it', async () => {
    let isEnded = false
    const suspended = new GatewayError('inactiveKey', { state: 'suspended' })
    const answers: Pick<BodyReader, 'answer'> = {
      answer: async (...order) => {
        isEnded = true
        await until(() => gateway.refusals.length === 1)
        return sharedBodyReader.answer(...order)
      },
    }
    const { gateway } = await gatewayTo(json(200, long(400_000)), { backend: CHAT_ONLY, answers })
    gateway.job = { inputTokens: 5, reasonToEnd: () => (isEnded ? suspended : undefined) }
    expect((await gateway.post(MESSAGES, HELLO)).status).toBe(401)
    expect([gateway.outcomes.length, gateway.refused[0]?.usage?.inputTokens]).toEqual([0, 5])
  })

  it('is an error of the backend if the arguments of a call are nested too deep to be written', async () => {
    const args = '{"a":'.repeat(30_000) + '1' + '}'.repeat(30_000)
    const called = (argumentText: string): string =>
      `{"choices":[{"message":{"tool_calls":[{"id":"c1","function":{"name":"f","arguments":${argumentText}}}]},"finish_reason":"stop"}]}`
    const replies = [json(200, called(args)), json(200, called(JSON.stringify(args))), streaming(`data: ${called(args)}\n\n${DONE}`)]
    for (const reply of replies) {
      const { answer } = await call(reply, { stream: reply === replies[2] })
      expect([answer.status, JSON.parse(answer.text)]).toMatchObject([502, { error: { type: 'api_error' } }])
    }
  })

  it('is refused before any server is asked if it cannot be translated', async () => {
    const content = [{ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'x' } }]
    const { answer, sent } = await call(json(200, ANSWER), { messages: [{ role: 'user', content }] })
    expect([answer.status, sent.path]).toEqual([400, ''])
    expect(JSON.parse(answer.text)).toMatchObject({
      error: { message: expect.stringContaining('Unsupported: messages.0.content.0.source') as string },
    })
  })

  it.each([
    ['not an object', '[]'],
    ['without a finish_reason', { choices: [{ message: { content: 'x' } }] }],
    ['without choices', { id: 'x' }],
  ])('is an error of the backend if the answer is %s', async (_, body) => {
    const { answer } = await call(json(200, body))
    expect([answer.status, JSON.parse(answer.text)]).toMatchObject([502, { type: 'error', error: { type: 'api_error' } }])
  })
})

describe('a message for a server of Messages', () => {
  const event = (type: string, fields: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
  const NATIVE_STREAM = [
    event('message_start', {
      message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'llama', content: [], usage: { input_tokens: 4 } },
    }),
    event('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } }),
    event('content_block_delta', { index: 0, delta: { type: 'signature_delta', signature: 'c2lnbmVk' } }),
    event('content_block_stop', { index: 0 }),
    event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } }),
    event('message_stop', {}),
  ].join('')
  const SIGNED = { type: 'thinking', thinking: '', signature: 'c2lnbmVk' }

  it('X28: passes blocks of empty signed thinking unchanged, there and back', async () => {
    const { gateway, backend } = await gatewayTo(streaming(NATIVE_STREAM), { tickMs: 60_000, backend: { routes: ['messages'] } })
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [SIGNED, { type: 'text', text: 'a' }] },
      { role: 'user', content: 'go' },
    ]
    const body = JSON.stringify({ ...HELLO, stream: true, messages })
    const { text } = await gateway.post(MESSAGES, body)
    expect(String(backend.received[0]?.body)).toBe(body)
    expect(text).toBe(NATIVE_STREAM)
    expect(checkMessageStream(text)).toHaveLength(6)
  })

  it('X28: passes a plain answer with empty signed thinking unchanged', async () => {
    const plain = JSON.stringify({ type: 'message', role: 'assistant', model: 'llama', content: [SIGNED], usage: { output_tokens: 2 } })
    const { gateway } = await gatewayTo(json(200, plain), { tickMs: 60_000, backend: { routes: ['messages'] } })
    expect((await gateway.post(MESSAGES, HELLO)).text).toBe(plain)
  })
})

describe('a model with both kinds of backends', () => {
  const NATIVE = {
    ...ANSWER,
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'native' }],
    usage: { input_tokens: 4, output_tokens: 2 },
  }
  const backend = (name: string, address: string, routes: readonly string[]): BackendRecord =>
    backendRecord({ name, endpoints: [address], routes: [...routes], upstreamModel: 'up' })

  const NATIVE_STREAM = [
    `event: message_start\ndata: ${JSON.stringify({ type: 'message_start', message: { id: 'm', model: 'llama', content: [], usage: { input_tokens: 4 } } })}\n\n`,
    'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"native"}}\n\n',
    'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
    'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}\n\n',
    'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  ].join('')
  const answers: Reply = (response, received) => {
    const isNative = received.path === MESSAGES
    const { stream } = JSON.parse(String(received.body)) as { readonly stream: boolean }
    if (stream) sse(response).end(isNative ? NATIVE_STREAM : STREAM)
    else json(200, isNative ? NATIVE : ANSWER)(response, received)
  }
  /** Ways in which a server dies before the first byte of its answer. */
  const DEATHS: Readonly<Record<string, Reply>> = {
    'closes the connection': (response) => void response.socket?.end(),
    'resets the connection': (response) => void response.socket?.resetAndDestroy(),
    'resets the connection after its headers': (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      setImmediate(() => response.socket?.resetAndDestroy())
    },
    'ends after its headers': (response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(),
  }
  const addressOf = async (death: string): Promise<string> => {
    const reply = DEATHS[death]
    return reply === undefined ? await deadAddress() : (await startBackend(reply)).address
  }
  const KINDS = [
    { dead: 'messages', living: 'chat/completions', text: 'hello', inputTokens: 7, outputTokens: 3 },
    { dead: 'chat/completions', living: 'messages', text: 'native', inputTokens: 4, outputTokens: 2 },
  ]
  const CASES = KINDS.flatMap((kind) =>
    ['refuses the connection', ...Object.keys(DEATHS)].flatMap((death) =>
      [true, false].map((stream) => ({ ...kind, death, stream })).filter((one) => one.stream || !death.includes('headers')),
    ),
  )

  it.each(CASES)(
    'answers once and charges once when its backend of $dead $death (stream: $stream)',
    async ({ dead, living, death, stream, text, inputTokens, outputTokens }) => {
      const other = await startBackend(answers)
      const gateway = await new Harness({ tickMs: 60_000 }).start()
      gateway.serve([], { backends: [backend('dead', await addressOf(death), [dead]), backend('living', other.address, [living])] })
      const answer = await gateway.post(MESSAGES, { ...HELLO, stream })
      expect(answer.status, answer.text).toBe(200)
      if (stream) expect(saidIn(checkMessageStream(answer.text))).toMatchObject({ text, stopReason: 'end_turn' })
      else expect(JSON.parse(answer.text)).toMatchObject({ type: 'message', model: 'llama', content: [{ type: 'text', text }] })
      await until(() => gateway.outcomes.length === 1)
      expect(gateway.outcomes).toMatchObject([{ error: undefined, usage: { inputTokens, outputTokens, isEstimated: false } }])
      expect(gateway.refusals).toEqual([])
      expect(other.received.map(({ path }) => path)).toEqual([`/v1/${living}`])
    },
  )
})

it('X28: a native backend gets thinking that is empty but signed, byte for byte', async () => {
  const { gateway, backend } = await gatewayTo(json(200, { type: 'message', usage: { input_tokens: 4, output_tokens: 2 } }), {
    backend: { routes: ['messages'], upstreamModel: 'llama' },
  })
  const thought = {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: '', signature: 'c2lnbmVk' },
      { type: 'text', text: 'a' },
    ],
  }
  const body = JSON.stringify({ ...HELLO, messages: [...HELLO.messages, thought, ...HELLO.messages] }, null, 1)
  expect((await gateway.post(MESSAGES, body)).status).toBe(200)
  expect(String(backend.received[0]?.body)).toBe(body)
})
