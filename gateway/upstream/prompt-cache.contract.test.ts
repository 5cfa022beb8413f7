/** Tenants of one model server that try to learn what is in its cache. */
import { beforeAll, describe, expect, it } from 'vitest'
import { sharedBodyReader } from '../../test/support/shared-body-reader.ts'
import { CHAT, chunk, DONE, HELLO, HELLO_STREAM, Harness, json, MESSAGES, sse, startBackend } from '../../test/support/upstream-harness.ts'
import { HiddenCache, withoutCached } from '../dialects/cached-counts.ts'

const USAGE = { prompt_tokens: 4711, completion_tokens: 1, total_tokens: 4712, prompt_tokens_details: { cached_tokens: 4096 } }
const OK = { id: 'c1', object: 'chat.completion', model: 'llama', choices: [], usage: USAGE, timings: { cache_n: 4096, prompt_n: 615 } }
const ANTHROPIC = {
  type: 'message',
  model: 'llama',
  content: [],
  usage: { input_tokens: 615, cache_read_input_tokens: 4096, output_tokens: 1 },
}
const SHARED = { allowedNamespaces: ['shop', 'other'] }
const SALTED = { ...SHARED, cacheSalt: 'ab'.repeat(32) }

beforeAll(() => sharedBodyReader.start())

async function gatewayFor(answer: Parameters<typeof startBackend>[0], model: object, tenant?: string) {
  const backend = await startBackend(answer)
  const gateway = await new Harness().start()
  if (tenant !== undefined) gateway.job = { tenant }
  gateway.serve([backend.address], model)
  return { gateway, backend }
}

describe('what a server had cached', () => {
  it.each([
    ['chat completions', CHAT, OK],
    ['messages', MESSAGES, ANTHROPIC],
  ] as const)('of a model that other namespaces may use is not shown in %s, and is charged as before', async (_what, path, answer) => {
    const { gateway } = await gatewayFor(json(200, answer), SHARED)
    const { text, headers } = await gateway.post(path, HELLO)
    expect(text).not.toContain('4096')
    expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(answer).replaceAll('4096', '0').replace('"prompt_n":615', '"prompt_n":0')))
    expect(headers['content-length']).toBe(String(Buffer.byteLength(text)))
    expect(gateway.outcomes[0]?.usage).toMatchObject({ cachedInputTokens: 4096 })
  })

  it('is not shown in a stream', async () => {
    const events = [chunk('hi', 'stop'), `data: ${JSON.stringify({ ...OK, object: 'chat.completion.chunk' })}\n\n`, DONE]
    const { gateway } = await gatewayFor((response) => void sse(response).end(events.join('')), SHARED)
    const { text } = await gateway.post(CHAT, { ...HELLO_STREAM, stream_options: { include_usage: true } })
    expect(text).toContain('cached_tokens')
    expect(text).not.toContain('4096')
  })

  it('is not shown in a large answer that passes in pieces', async () => {
    const large = JSON.stringify({ ...OK, choices: [{ text: 'x'.repeat(300_000) }], more: 'y'.repeat(500) })
    const { gateway } = await gatewayFor(json(200, large), SHARED)
    const { text } = await gateway.post(CHAT, HELLO)
    expect(JSON.parse(text)).toEqual(JSON.parse(large.replaceAll('4096', '0').replace('"prompt_n":615', '"prompt_n":0')))
  })

  it.each([1, 300_000])('is not shown in a plain answer of %i characters that becomes a stream', async (characters) => {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'x'.repeat(characters) }, finish_reason: 'stop' }]
    const { gateway } = await gatewayFor(json(200, { ...OK, choices }), SHARED)
    const { text } = await gateway.post(CHAT, { ...HELLO_STREAM, stream_options: { include_usage: true } })
    expect(text).toMatch(/"cached_tokens":0 {3}.*\n\ndata: \[DONE\]/s)
    expect(text).not.toContain('4096')
    expect(gateway.outcomes[0]?.usage).toMatchObject({ cachedInputTokens: 4096, isEstimated: false })
  })

  it('of a model of one namespace, or with a salt, is shown', async () => {
    const own = await gatewayFor(json(200, OK), { allowedNamespaces: ['shop'] })
    expect((await own.gateway.post(CHAT, HELLO)).text).toBe(JSON.stringify(OK))
    const salted = await gatewayFor(json(200, OK), SALTED, 'shop')
    expect((await salted.gateway.post(CHAT, HELLO)).text).toBe(JSON.stringify(OK))
  })

  it.each([
    ['"cached_tokens":4096.5,"x":1', '"cached_tokens":0     ,"x":1'],
    ['"prompt_tokens_details":{"cache_write_tokens": 12}', '"prompt_tokens_details":{"cache_write_tokens": 0 }'],
    ['"timings":{"prompt_n":9,"prompt_ms":1.5e-3,"predicted_n":7}', '"timings":{"prompt_n":0,"prompt_ms":0     ,"predicted_n":7}'],
    [
      '"prompt_progress":{"total":99,"cache":64,"processed":70,"time_ms":8}',
      '"prompt_progress":{"total":99,"cache":0 ,"processed":0 ,"time_ms":0}',
    ],
    ['"input":{"cache":5,"processed":6}', '"input":{"cache":5,"processed":6}'],
    ['"prompt_tokens":4711,"text":"\\"cached_tokens\\": 5"', '"prompt_tokens":4711,"text":"\\"cached_tokens\\": 5"'],
  ])('of %s shows %s', (fields, shown) => {
    expect(withoutCached(Buffer.from(`{${fields}}`)).toString()).toBe(`{${shown}}`)
    expect(() => JSON.parse(`{${shown}}`)).not.toThrow()
  })

  it('is found wherever the pieces end', () => {
    const text = Buffer.from(JSON.stringify({ pad: 'x'.repeat(200), usage: USAGE, tail: 'y'.repeat(200) }))
    const whole = withoutCached(text).toString()
    expect(whole).not.toContain('4096')
    for (let at = 1; at < text.length; at++) {
      const hidden = new HiddenCache()
      const parts = [hidden.push(text.subarray(0, at)), hidden.push(text.subarray(at)), hidden.end()]
      expect(Buffer.concat(parts).toString()).toBe(whole)
    }
  })
})

describe('cacheSalt: Tenant', () => {
  const sentBy = async (tenant: string, body: object | string = HELLO, model: object = SALTED): Promise<{ cache_salt?: string }> => {
    const { gateway, backend } = await gatewayFor(json(200, OK), model, tenant)
    expect((await gateway.post(CHAT, body)).status).toBe(200)
    return JSON.parse(backend.received[0]?.body.toString() ?? '')
  }

  it('gives each tenant a salt of its own, the same at each call', async () => {
    const [first, again, other] = [await sentBy('shop'), await sentBy('shop'), await sentBy('other')]
    expect(first.cache_salt).toMatch(/^[0-9a-f]{64}$/)
    expect(again.cache_salt).toBe(first.cache_salt)
    expect(other.cache_salt).not.toBe(first.cache_salt)
  })

  it('follows from the key in the record and from nothing that stands in the manifest', async () => {
    const [first, otherKey] = [await sentBy('shop'), await sentBy('shop', HELLO, { ...SALTED, cacheSalt: 'cd'.repeat(32) })]
    const [otherModel] = [await sentBy('shop', HELLO, { ...SALTED, uid: 'another', name: 'other' })]
    expect(otherKey.cache_salt).not.toBe(first.cache_salt)
    expect(otherModel.cache_salt).toBe(first.cache_salt)
  })

  it('changes nothing else of a body', async () => {
    const { cache_salt: _, ...rest } = await sentBy('shop', '{"stream":false,"model":"llama","messages":[],"seed":1}')
    expect(rest).toEqual({ stream: false, model: 'llama', messages: [], seed: 1 })
  })

  it('is in a message that goes to its server as a chat completion', async () => {
    const backend = await startBackend(
      json(200, { ...OK, choices: [{ message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }] }),
    )
    const gateway = await new Harness().start()
    gateway.job = { tenant: 'shop' }
    gateway.serve([backend.address], SALTED, { routes: ['chat/completions'] })
    expect((await gateway.post(MESSAGES, { ...HELLO, max_tokens: 10 })).status).toBe(200)
    const sent = JSON.parse(backend.received[0]?.body.toString() ?? '') as { cache_salt?: string }
    expect(sent.cache_salt).toBe((await sentBy('shop')).cache_salt)
  })

  it('is not sent to a model without it', async () => {
    const { gateway, backend } = await gatewayFor(json(200, OK), SHARED, 'shop')
    await gateway.post(CHAT, HELLO)
    expect(backend.received[0]?.body.toString()).not.toContain('cache_salt')
  })
})
