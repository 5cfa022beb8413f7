/** The cost of calls through the whole upstream side, however they end. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import {
  CHAT,
  chunk,
  DONE,
  gatewayTo,
  type Harness,
  HELLO,
  HELLO_STREAM,
  json,
  MESSAGES,
  type Reply,
  sse,
  startBackend,
  until,
} from '../../test/support/upstream-harness.ts'
import type { Usage } from '../dialects/usage.ts'
import type { ForwardJob } from './forward-job.ts'

const PROMPT_TOKENS = 19
const usage = { prompt_tokens: 11, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 8 } }
const REPORTED: Usage = { inputTokens: 11, cachedInputTokens: 8, outputTokens: 4, isEstimated: false }
const estimated = (outputTokens: number): Usage => ({ inputTokens: PROMPT_TOKENS, cachedInputTokens: 0, outputTokens, isEstimated: true })
const USAGE_CHUNK = `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', model: 'llama', choices: [], usage })}\n\n`
const FINISH = chunk('', 'stop')
const finishWith = (counts: object): string => FINISH.replace('}\n\n', `,"usage":${JSON.stringify(counts)}}\n\n`)
const event = (type: string, data: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
const messageStart = (counts: object): string =>
  event('message_start', { message: { id: 'm', model: 'llama', content: [], usage: counts } })
const messageText = (...texts: readonly string[]): string =>
  [
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ...texts.map((text) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })),
    event('content_block_stop', { index: 0 }),
  ].join('')
const messageEnd = (counts: object): string =>
  event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: counts }) + event('message_stop', {})

/** A gateway before one server. */
async function metered(reply: Reply, job: Partial<ForwardJob> = {}): Promise<Harness> {
  const { gateway } = await gatewayTo(reply, { tickMs: 60_000 })
  gateway.job = { inputTokens: PROMPT_TOKENS, ...job }
  return gateway
}

/** The client's text of a stream, and the cost of the stream. */
async function streamed(text: string, path = CHAT, body: object = HELLO_STREAM): Promise<{ text: string; usage: Usage | undefined }> {
  const gateway = await metered((response) => sse(response).end(text))
  const answer = await gateway.post(path, body)
  return { text: answer.text, usage: gateway.outcomes[0]?.usage }
}

/** The cost of an answer that is not a stream. */
async function answered(reply: Reply, path = CHAT): Promise<Usage | undefined> {
  const gateway = await metered(reply)
  await gateway.post(path, HELLO)
  return gateway.outcomes[0]?.usage
}

describe('the usage of a stream', () => {
  it('S2 that the gateway has requested is counted, and hidden from the client', async () => {
    const before = chunk('a') + chunk('b')
    expect(await streamed(before + FINISH + USAGE_CHUNK + DONE)).toEqual({ text: before + FINISH + DONE, usage: REPORTED })
  })

  it('S2 that the client has requested is counted, and forwarded unchanged', async () => {
    const text = chunk('a') + FINISH + USAGE_CHUNK + DONE
    const asking = { ...HELLO_STREAM, stream_options: { include_usage: true } }
    expect(await streamed(text, CHAT, asking)).toEqual({ text, usage: REPORTED })
  })

  it('S2 is hidden also as the first event, and from a renamed stream', async () => {
    expect(await streamed(USAGE_CHUNK.replace('llama', 'up') + chunk('a', 'stop', 'up') + DONE)).toMatchObject({
      text: chunk('a', 'stop') + DONE,
    })
  })

  it('S2 beside choices, or in a list of choices that is empty for another reason, is shown', async () => {
    const filter = 'data: {"choices":[],"prompt_filter_results":[]}\n\n'
    const text = filter + chunk('a') + finishWith(usage) + DONE
    expect(await streamed(text)).toEqual({ text, usage: REPORTED })
  })

  it.each<[string, string]>([
    ['on the finish', chunk('a') + finishWith(usage)],
    ['on the finish, without an end marker', chunk('a') + finishWith(usage).trimEnd()],
    ['in two parts', chunk('a').replace('}\n\n', ',"usage":{"prompt_tokens":11}}\n\n') + FINISH + USAGE_CHUNK + DONE],
    ['after events with null', chunk('a').replace('}\n\n', ',"usage":null}\n\n') + FINISH + USAGE_CHUNK + DONE],
  ])('S3 reported %s is right', async (_what, text) => {
    expect((await streamed(text)).usage).toEqual(REPORTED)
  })

  it('S3 of Messages is reported at the start and at the end', async () => {
    const start = messageStart({ input_tokens: 3, cache_read_input_tokens: 8, output_tokens: 1 })
    const text = start + messageText('a') + messageEnd({ output_tokens: 4 })
    expect(await streamed(text, MESSAGES)).toEqual({ text, usage: REPORTED })
  })

  it.each<[string, string, string]>([
    ['chat', CHAT, ['one', ' two', ' three', ' four', ' five'].map((word) => chunk(word)).join('') + FINISH + DONE],
    ['messages', MESSAGES, messageStart({}) + messageText('one', ' two', ' three', ' four', ' five') + messageEnd({})],
  ])('S3 #33736 that is missing is estimated from the relayed text, and marked: %s', async (_what, path, text) => {
    expect((await streamed(text, path)).usage).toEqual(estimated(5))
  })
})

describe('a stream that ends early', () => {
  /** Writes this many tokens, and then runs `then`. */
  const after = (tokens: number, then: (response: ServerResponse) => void): Reply => {
    return (response) => {
      const text = Array.from({ length: tokens }, (_, i) => chunk(` w${i}`)).join('')
      sse(response).write(text, () => then(response))
    }
  }

  it.each([1, 20, 200])('S7 #33736 #36008 open-ace#3422 suna#4821 by the client costs the %i generated tokens', async (tokens) => {
    const gateway = await metered(after(tokens, () => undefined))
    const answer = await gateway.open(CHAT, HELLO_STREAM)
    await readUntil(answer, `w${tokens - 1}"`)
    answer.destroy()
    await until(() => gateway.outcomes.length === 1)
    expect(gateway.outcomes[0]).toEqual({ usage: estimated(tokens), wasSent: true, error: undefined })
  })

  it('S7 by the client after its usage was reported costs just that', async () => {
    const gateway = await metered((response) => sse(response).write(chunk('a') + finishWith(usage)))
    const answer = await gateway.open(CHAT, HELLO_STREAM)
    await readUntil(answer, 'finish_reason":"stop"')
    answer.destroy()
    await until(() => gateway.outcomes.length === 1)
    expect(gateway.outcomes[0]?.usage).toEqual(REPORTED)
  })

  it.each<[string, (response: ServerResponse) => void]>([
    ['a reset of its server', (response) => response.socket?.resetAndDestroy()],
    ['an end without a finish', (response) => response.end()],
    ['an error event', (response) => response.end('data: {"error":{"message":"dead","code":500}}\n\n')],
    ['an event that is too large', (response) => response.end(`data: ${'x'.repeat(1_100_000)}`)],
  ])('#33736 by %s costs the relayed text', async (_what, then) => {
    const gateway = await metered(after(30, then))
    await gateway.post(CHAT, HELLO_STREAM)
    expect(gateway.outcomes[0]).toMatchObject({ usage: estimated(30), wasSent: true, error: { row: { number: 35 } } })
  })

  it.each<[string, (response: ServerResponse) => void]>([
    ['breaks off', (response) => response.end()],
    ['ends without a report', (response) => response.end(messageEnd({}))],
  ])('of messages that %s costs the relayed text, not the first tokens that its start reports', async (_how, then) => {
    const words = Array.from({ length: 30 }, (_, i) => ` w${i}`)
    const gateway = await metered((response) => {
      sse(response).write(messageStart({ input_tokens: 11, output_tokens: 2 }) + messageText(...words), () => then(response))
    })
    await gateway.post(MESSAGES, { ...HELLO_STREAM, max_tokens: 99 })
    expect(gateway.outcomes[0]?.usage).toEqual({ inputTokens: 11, cachedInputTokens: 0, outputTokens: 30, isEstimated: true })
  })

  it.each<[string, number, Reply]>([
    ['after text', 200, after(30, (response) => response.end(`data: ${JSON.stringify({ error: { message: 'dead' }, usage })}\n\n`))],
    ['as its first event', 502, (response) => sse(response).end(`data: ${JSON.stringify({ error: { message: 'dead' }, usage })}\n\n`)],
  ])('by an error event costs what that event reports: %s', async (_where, status, reply) => {
    const gateway = await metered(reply)
    expect((await gateway.post(CHAT, HELLO_STREAM)).status).toBe(status)
    expect([...gateway.outcomes, ...gateway.refused].map((outcome) => outcome.usage)).toEqual([REPORTED])
  })

  it('#33736 by a shutdown costs the relayed text', async () => {
    const gateway = await metered(after(5, () => undefined))
    const answer = await gateway.open(CHAT, HELLO_STREAM)
    await readUntil(answer, 'w4"')
    await Promise.all([gateway.drain(0), readUntil(answer, 'shutting down')])
    expect(gateway.outcomes[0]?.usage).toEqual(estimated(5))
  })
})

describe('an answer that is not streamed', () => {
  const OK = {
    id: 'c1',
    model: 'llama',
    choices: [{ index: 0, message: { role: 'assistant', content: 'one two three' }, finish_reason: 'stop' }],
  }
  const large = (content: string): object => ({ ...OK, choices: [{ message: { content } }] })

  it('costs what its server reports', async () => {
    expect(await answered(json(200, { ...OK, usage }))).toEqual(REPORTED)
  })

  it.each<[string, object]>([
    ['without usage', OK],
    ['with usage that says 0', { ...OK, usage: { prompt_tokens: 0, completion_tokens: 0 } }],
  ])('#33736 %s costs an estimate of its text', async (_what, body) => {
    expect(await answered(json(200, body))).toEqual(estimated(3))
  })

  it('of Messages without usage costs an estimate of its text', async () => {
    const body = { id: 'm', type: 'message', model: 'llama', content: [{ type: 'text', text: 'one two three' }] }
    expect(await answered(json(200, body), MESSAGES)).toEqual(estimated(3))
  })

  it('that is large and flows through costs what stands at its end, and its bytes are untouched', async () => {
    const text = JSON.stringify({ ...large('x'.repeat(3_000_000)), usage, timings: { a: [1] } })
    const gateway = await metered(json(200, text))
    expect((await gateway.post(CHAT, HELLO)).text === text).toBe(true)
    expect(gateway.outcomes[0]?.usage).toEqual(REPORTED)
  })

  it('#33736 that is large and reports nothing costs an estimate of its bytes', async () => {
    const text = JSON.stringify(large('x'.repeat(300_000)))
    expect(await answered(json(200, text))).toEqual(estimated(Math.ceil(text.length / 4)))
  })

  it('#36008 whose client leaves while it flows costs all of it', async () => {
    const text = JSON.stringify({ ...large('x'.repeat(20_000_000)), usage })
    const gateway = await metered(json(200, text, { 'content-length': String(text.length) }))
    const answer = await gateway.open(CHAT, HELLO)
    await new Promise((resolve) => answer.once('data', resolve))
    answer.destroy()
    await until(() => gateway.outcomes.length === 1)
    expect(gateway.outcomes[0]?.usage).toEqual(estimated(Math.ceil(text.length / 4)))
  })

  it('that is nested as deep as a parser takes it costs an estimate, and arrives', async () => {
    const text = `{"model":"llama","choices":${'['.repeat(8_000)}"one"${']'.repeat(8_000)}}`
    const gateway = await metered(json(200, text))
    expect((await gateway.post(CHAT, HELLO)).text).toBe(text)
    expect(gateway.outcomes[0]?.usage).toEqual(estimated(1))
  })

  it('that breaks off costs what was relayed', async () => {
    const gateway = await metered((response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write(`{"choices":["${'x'.repeat(200_000)}`, () => response.destroy())
    })
    await expect(gateway.post(CHAT, HELLO)).rejects.toThrow('aborted')
    expect(gateway.outcomes[0]).toMatchObject({ wasSent: true, error: { row: { number: 32 } } })
    expect(gateway.outcomes[0]?.usage?.outputTokens).toBeGreaterThan(40_000)
  })
})

describe('W2 a call that ends before the first byte of its answer costs what such calls usually cost', () => {
  const OUTPUT_TOKENS = 300
  const USUAL = estimated(OUTPUT_TOKENS)
  const timeouts = { firstByteSeconds: 8, idleSeconds: 600, totalSeconds: 600 }

  /** A gateway before one server, with ticks of 5 ms. */
  async function ticking(reply: Reply): Promise<Harness> {
    const { gateway } = await gatewayTo(reply, { model: { timeouts } })
    gateway.job = { inputTokens: PROMPT_TOKENS, outputTokens: OUTPUT_TOKENS }
    return gateway
  }

  it.each<[string, object, Reply, Usage]>([
    ['a plain call that times out', HELLO, () => undefined, USUAL],
    ['a stream that times out', HELLO_STREAM, () => undefined, USUAL],
    ['a stream that times out after comments', HELLO_STREAM, (response) => sse(response).write(': processing\n\n'), USUAL],
    ['an answer that is not JSON', HELLO, json(200, 'not json'), estimated(2)],
    ['a server that breaks down late', HELLO, (response) => setTimeout(() => response.socket?.resetAndDestroy(), 30), USUAL],
  ])('%s', async (_what, body, reply, cost) => {
    const gateway = await ticking(reply)
    await gateway.post(CHAT, body)
    expect(gateway.refused[0]?.usage).toEqual(cost)
  })

  it('a plain answer that is cut before it is large enough to be sent costs its bytes', async () => {
    const gateway = await ticking((response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write(`{"choices":["${'x'.repeat(50 * 1024)}`, () => response.destroy())
    })
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 502 })
    expect(gateway.refused[0]?.usage?.outputTokens).toBeGreaterThan(12_000)
  })

  it('a plain call that a shutdown ends', async () => {
    const { gateway, backend } = await gatewayTo(() => undefined, { tickMs: 60_000 })
    gateway.job = { inputTokens: PROMPT_TOKENS, outputTokens: OUTPUT_TOKENS }
    const answer = gateway.post(CHAT, HELLO)
    await until(() => backend.received.length === 1)
    await gateway.drain(0)
    expect((await answer).status).toBe(503)
    expect(gateway.refused[0]?.usage).toEqual(USUAL)
  })

  it('a plain call whose client leaves', async () => {
    const { gateway, backend } = await gatewayTo(() => undefined, { tickMs: 60_000 })
    gateway.job = { inputTokens: PROMPT_TOKENS, outputTokens: OUTPUT_TOKENS }
    const text = JSON.stringify(HELLO)
    const socket = connect(gateway.port, '127.0.0.1')
    socket.write(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: ${text.length}\r\n\r\n${text}`)
    await until(() => backend.received.length === 1)
    socket.destroy()
    await until(() => gateway.outcomes.length === 1)
    expect(gateway.outcomes[0]?.usage).toEqual(USUAL)
  })

  it('only that of the server that answers, if a second one does', async () => {
    const late: Reply = (response) => setTimeout(() => response.socket?.resetAndDestroy(), 30)
    const [first, second] = [await startBackend(late), await startBackend(json(200, { choices: [], usage }))]
    const gateway = await ticking(late)
    gateway.serve([first.address, second.address], { timeouts })
    await gateway.post(CHAT, HELLO)
    expect(gateway.outcomes[0]?.usage).toEqual(REPORTED)
  })

  it('nothing, if the server resets the connection at once', async () => {
    const { gateway } = await gatewayTo((response) => response.socket?.resetAndDestroy(), { tickMs: 60_000 })
    gateway.job = { inputTokens: PROMPT_TOKENS, outputTokens: OUTPUT_TOKENS }
    await gateway.post(CHAT, HELLO)
    expect(gateway.refused[0]?.usage).toBeUndefined()
  })
})

describe('a call costs nothing', () => {
  it.each([HELLO, HELLO_STREAM])('where its server has refused it', async (body) => {
    const gateway = await metered(json(400, { error: { message: 'bad' } }))
    expect((await gateway.post(CHAT, body)).status).toBe(400)
    expect(gateway.outcomes).toEqual([])
    expect(gateway.refused[0]?.usage).toBeUndefined()
  })

  describe.each<[string, typeof CHAT, object]>([
    ['a plain call', CHAT, HELLO],
    ['a stream', CHAT, HELLO_STREAM],
    ['a translated call', MESSAGES, { ...HELLO, max_tokens: 9 }],
  ])('%s', (_, path, body) => {
    const refused = async (more: object): Promise<Usage | undefined> => {
      const error = { message: 'bad', code: 400 }
      const options = { tickMs: 60_000, backend: { routes: ['chat/completions' as const] } }
      const { gateway } = await gatewayTo(json(200, { error, ...more }), options)
      gateway.job = { inputTokens: PROMPT_TOKENS }
      expect((await gateway.post(path, body)).status).toBe(400)
      expect(gateway.refused).toHaveLength(1)
      return gateway.refused[0]?.usage
    }

    it.each<[string, object]>([
      ['no usage', {}],
      ['null', { usage: null }],
      ['a usage of 0', { usage: { prompt_tokens: 0, completion_tokens: 0 } }],
    ])('whose server answers an error in a 200, with %s', async (_usage, more) => {
      expect(await refused(more)).toBeUndefined()
    })

    it('unless the error comes with the work of the server', async () => {
      expect(await refused({ usage })).toEqual(REPORTED)
    })
  })

  it.each<[string, object, Reply]>([
    ['a plain answer', HELLO, json(200, { choices: [], usage })],
    ['a stream', HELLO_STREAM, (response) => sse(response).end(chunk('a', 'stop') + USAGE_CHUNK + DONE)],
  ])('if it is not metered, and shows the report of the server: %s', async (_what, body, reply) => {
    const gateway = await metered(reply, { isMetered: false })
    expect((await gateway.post(CHAT, body)).text).toContain('prompt_tokens')
    expect(gateway.outcomes[0]?.usage).toBeUndefined()
  })
})

/** Reads on until a text has come; the rest stays to be read. */
async function readUntil(answer: IncomingMessage, text: string): Promise<void> {
  let seen = ''
  for await (const part of answer.iterator({ destroyOnReturn: false })) {
    seen += String(part)
    if (seen.includes(text)) return
  }
  throw new Error(`the answer ended without ${text}`)
}
