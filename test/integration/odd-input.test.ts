/**
 * Requests that clients send by mistake or with bad intent, to a real gateway in front of a real model. Each answer is the exact row of the
 * catalogue in both dialects, every SDK sends one request only, and no request gets around the scope of the key.
 */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mintCredential } from '#contract/values/credential.ts'
import { startStubModel, type StubModel, type StubReceived } from '../../examples/stub-model/stub-model.ts'
import {
  ask,
  callHeaders,
  expectRow,
  PATHS,
  smallBody,
  WIRE_FORMATS,
  type Answer,
  type ExpectedRow,
  type WireFormat,
} from '../support/ask.ts'
import { openLab } from '../support/lab.ts'
import { openRaw, readAnswer } from '../support/raw-http.ts'
import {
  DENIED,
  MALFORMED,
  NO_KEY,
  NOT_FOUND,
  NOT_JSON,
  overflow,
  REVOKED,
  SUSPENDED,
  TOO_LARGE,
  UNKNOWN,
  wrongField,
} from '../support/rows.ts'
import type { Stack } from '../support/stack.ts'

const lab = openLab()
let stack: Stack
/** A model server that records the bytes of its requests. */
let stub: StubModel
let received: StubReceived[] = []
/** A key that may call only `real-*` and `stub-allowed`. */
let key = ''
let revoked = ''
let suspended = ''

beforeAll(async () => {
  stack = await lab.stack()
  stub = await startStubModel({ host: lab.address.ip, onRequest: (request) => received.push(request) })
  const backend = { name: 'stub', url: stub.url, messages: 'Native' }
  await Promise.all([
    stack.serveModel('real-model'),
    stack.serveModel('stub-allowed', { backends: [backend] }),
    stack.serveModel('stub-hidden', { backends: [backend] }),
    stack.serveModel('real-completions', { backends: [{ ...backend, messages: 'Translate', routes: ['completions'] }] }),
  ])
  key = await stack.issueKey('key', { models: ['real-*', 'stub-allowed'] })
  ;[revoked, suspended] = await Promise.all([stack.issueKey('revoked'), stack.issueKey('suspended')])
  await stack.setState('revoked', 'Revoked')
  await stack.setState('suspended', 'Suspended')
  for (const name of ['revoked', 'suspended']) await stack.untilCondition('ApiKey', name, 'Ready', { status: 'False' })
})
afterAll(() => stub.close())

/** A request over a plain socket. `headers` are sent line by line, so that a header may occur twice. */
async function raw(format: WireFormat, headers: readonly string[], body: string | Buffer): Promise<Answer> {
  const lines = [`POST ${PATHS[format]} HTTP/1.1`, 'host: gateway', 'content-type: application/json', ...headers, '', '']
  const socket = openRaw(stack.gateway.port, Buffer.concat([Buffer.from(lines.join('\r\n')), Buffer.from(body)]))
  const answer = await readAnswer(socket)
  socket.destroy()
  lab.record(`${answer.head}\n${answer.body}`)
  return { status: answer.status, headers: new Headers(answer.headers), text: answer.body }
}

const length = (body: string): string => `content-length: ${Buffer.byteLength(body)}`
const withKey = (credential = key): string => `authorization: Bearer ${credential}`

describe.each(WIRE_FORMATS)('in the %s dialect', (format) => {
  const call = (question: Omit<Parameters<typeof ask>[2], 'format'>): Promise<Answer> =>
    ask(lab, stack.gateway.url, { format, ...question })
  const small = JSON.stringify(smallBody('real-model'))

  it('the valid key gets an answer of the real model', async () => {
    const answer = await call({ credential: key, model: 'real-model' })
    expect([answer.status, (JSON.parse(answer.text) as { model: string }).model]).toEqual([200, 'real-model'])
    expect(answer.headers.get('request-id')).toBe(answer.headers.get('x-request-id'))
  })

  it.each<[string, () => readonly string[], ExpectedRow]>([
    ['no credential', () => [], NO_KEY],
    ['an empty credential', () => ['authorization: '], NO_KEY],
    ['another scheme', () => [`authorization: Basic ${key}`], MALFORMED],
    ['a key that was cut', () => [withKey(key.slice(0, -1))], MALFORMED],
    ['a value that another gateway might have issued', () => [withKey('sk-1234567890abcdefghij')], UNKNOWN],
    ['a key with a typo', () => [withKey(key.slice(0, 30) + (key[30] === 'a' ? 'b' : 'a') + key.slice(31))], MALFORMED],
    ['`Bearer Bearer`', () => [withKey(`Bearer ${key}`)], MALFORMED],
    ['two spaces', () => [withKey(` ${key}`)], MALFORMED],
    ['text that is not a key', () => [withKey('let-me-in')], MALFORMED],
    ['two Authorization headers', () => [withKey(), withKey()], MALFORMED],
    ['two Authorization headers of which one is wrong', () => [withKey(), withKey(mintCredential().credential)], MALFORMED],
    ['a wrong Authorization beside a good x-api-key', () => [withKey('let-me-in'), `x-api-key: ${key}`], MALFORMED],
    ['two x-api-key headers', () => [`x-api-key: ${key}`, `x-api-key: ${key}`], MALFORMED],
    ['a well-formed key that was never issued', () => [withKey(mintCredential().credential)], UNKNOWN],
    ['a revoked key', () => [withKey(revoked)], REVOKED],
    ['a suspended key', () => [withKey(suspended)], SUSPENDED],
  ])('E1 E16 %s is refused', async (_, headers, row) => {
    expectRow(await raw(format, [...headers(), length(small)], small), format, row)
  })

  it('E16 a good Authorization beside a wrong x-api-key decides, and neither reaches the model server', async () => {
    received = []
    const body = JSON.stringify(smallBody('stub-allowed'))
    expect((await raw(format, [withKey(), 'x-api-key: let-me-in', 'cookie: a=b', length(body)], body)).status).toBe(200)
    expect((await raw(format, [`x-api-key: ${key}`, length(body)], body)).status).toBe(200)
    expect(received).toHaveLength(2)
    for (const { headers } of received) expect(JSON.stringify(headers)).not.toMatch(/let-me-in|sk-hg1|a=b/)
  })

  it('E2 outside the scope an existing and an invented name get the same answer, except for its id', async () => {
    const known = await call({ credential: key, model: 'stub-hidden' })
    const invented = await call({ credential: key, model: 'no-such-one' })
    for (const answer of [known, invented]) expectRow(answer, format, DENIED)
    const plain = ({ text, headers }: Answer, name: string): string =>
      text.replaceAll(name, '<name>').replaceAll(headers.get('x-request-id') ?? '', '<id>')
    expect(plain(known, 'stub-hidden')).toBe(plain(invented, 'no-such-one'))
    expect([...known.headers.keys()]).toEqual([...invented.headers.keys()])
  })

  it('E3 a name inside the scope that no model has is not found', async () => {
    expect(expectRow(await call({ credential: key, model: 'real-but-absent' }), format, NOT_FOUND)).toBe(
      'model not found: real-but-absent; GET /v1/models lists the models that this key may call',
    )
  })

  it('a body of 200 KB reaches the real model: answered, or refused by its context length', async () => {
    const padded = smallBody('real-model', { metadata: { note: 'x'.repeat(200_000) } })
    expect((await call({ credential: key, body: padded })).status).toBe(200)
    const long = { ...smallBody('real-model'), messages: [{ role: 'user', content: 'many words '.repeat(18_500) }] }
    expectRow(await call({ credential: key, body: long }), format, overflow(format))
  })

  it.each(['declared', 'chunked', 'with Expect'] as const)('E5 a body of 40 MB, %s, gets a readable 413', async (how) => {
    const bytes = 40_000_000
    const size = how === 'chunked' ? 'transfer-encoding: chunked' : `content-length: ${bytes}`
    const expectation = how === 'with Expect' ? ['expect: 100-continue'] : []
    const body = how === 'with Expect' ? '' : Buffer.alloc(bytes, ' ') // a client with Expect sends no body before the 100
    const framed =
      how === 'chunked' ? Buffer.concat([Buffer.from(`${bytes.toString(16)}\r\n`), Buffer.from(body), Buffer.from('\r\n0\r\n\r\n')]) : body
    const answer = await raw(format, [withKey(), size, ...expectation], framed)
    expect(expectRow(answer, format, TOO_LARGE)).toBe('Request too large: the body may have at most 32 MiB')
    expect(answer.headers.get('connection')).toBe('close')
  })

  it.each<[string, string | object, ExpectedRow]>([
    ['broken JSON', '{"model": "real-model", "messages": [', NOT_JSON],
    ['nothing', '', NOT_JSON],
    ['an array', [smallBody('real-model')], NOT_JSON],
    ['a text', '"real-model"', NOT_JSON],
    ['no model', smallBody('x', { model: undefined }), wrongField('model')],
    ['a model that is not text', smallBody('x', { model: 7 }), wrongField('model')],
    ['an empty model', smallBody(''), wrongField('model')],
    ['no messages', { model: 'real-model' }, wrongField('messages')],
    ['empty messages', { model: 'real-model', messages: [] }, wrongField('messages')],
    ['a stream that is not a boolean', smallBody('real-model', { stream: 'yes' }), wrongField('stream')],
    ['Model beside model', smallBody('real-model', { Model: 'stub-hidden' }), wrongField('Model')],
    ['MODEL before model', { MODEL: 'stub-hidden', ...smallBody('real-model') }, wrongField('MODEL')],
    ['Stream', smallBody('real-model', { Stream: true }), wrongField('Stream')],
  ])('E4 E15 %s is refused', async (_, body, row) => {
    expectRow(await call({ credential: key, body }), format, row)
  })

  it('E15 names are compared exactly: a name with other case or spaces is another name', async () => {
    for (const name of ['Real-Model', 'real-model ', ' real-model', 'STUB-ALLOWED']) {
      const answer = await call({ credential: key, model: name })
      expectRow(answer, format, name.startsWith('real-') ? NOT_FOUND : DENIED)
    }
  })

  describe('E15 E16 never reaches a model outside its scope', () => {
    const tail = '"max_tokens":3,"messages":[{"role":"user","content":"Say something."}]}'

    it('by ?model= or headers', async () => {
      received = []
      const headers = { 'x-model': 'stub-hidden', model: 'stub-hidden', 'x-headgate-model': 'stub-hidden' }
      expect((await call({ credential: key, model: 'stub-allowed', query: '?model=stub-hidden', headers })).status).toBe(200)
      expect(received.map(({ path, body }) => [path, modelsIn(body)])).toEqual([[PATHS[format], ['stub-allowed']]])
      expectRow(await call({ credential: key, model: 'stub-hidden', query: '?model=stub-allowed' }), format, DENIED)
    })

    it.each([
      ['an escape in the key', '{"mod\\u0065l":"stub-allowed",', 200],
      ['an escape in the value', '{"model":"stub-\\u0061llowed",', 200],
      ['an escaped key after the plain one', '{"model":"stub-hidden","mod\\u0065l":"stub-allowed",', 200],
      ['an escaped key that names a hidden model', '{"model":"stub-allowed","mod\\u0065l":"stub-hidden",', 403],
      ['two keys, the hidden model first', '{"model":"stub-hidden","model":"stub-allowed",', 200],
      ['two keys, the hidden model last', '{"model":"stub-allowed","model":"stub-hidden",', 403],
      ['two equal keys', '{"model":"stub-allowed","model":"stub-allowed",', 200],
    ])('by %s', async (_, head, status) => {
      received = []
      const answer = await call({ credential: key, body: head + tail })
      expect(answer.status).toBe(status)
      if (status === 403) expectRow(answer, format, DENIED)
      expect(received.map(({ body }) => modelsIn(body))).toEqual(status === 200 ? [['stub-allowed']] : [])
    })

    it('and the real model answers a request with an escaped key too', async () => {
      const body = `{"mod\\u0065l":"real-model",${tail}`
      expect((await call({ credential: key, body })).status).toBe(200)
    })
  })
})

/** Every value that some parser could read as the model: of each key that equals `model` without escapes and in lower case. */
function modelsIn(body: Buffer): string[] {
  const found: string[] = []
  for (const [, name = '', value = ''] of body.toString().matchAll(/("(?:[^"\\]|\\.)*")\s*:\s*("(?:[^"\\]|\\.)*")/g)) {
    if ((JSON.parse(name) as string).toLowerCase() === 'model') found.push(JSON.parse(value) as string)
  }
  return found
}

describe('E17 unknown paths and methods', () => {
  it.each([
    ['GET', '/v1/chat/completions', 'openai', 405],
    ['POST', '/v1/nothing', 'openai', 404],
    ['DELETE', '/v1/messages', 'anthropic', 405],
    ['POST', '/v1/messages/nothing', 'anthropic', 404],
  ] as const)('%s %s', async (method, path, format, status) => {
    const answer = await fetch(stack.gateway.url + path, { method, headers: callHeaders(key) })
    const seen = { status: answer.status, headers: answer.headers, text: lab.record(await answer.text()) }
    const starts = status === 404 ? 'Invalid URL' : 'Method not allowed'
    const anthropic = status === 404 ? 'not_found_error' : 'invalid_request_error'
    expectRow(seen, format, { status, openai: ['invalid_request_error', null, null], anthropic, starts })
    expect(answer.headers.get('allow')).toBe(status === 405 ? 'POST' : null)
  })

  it('/v1/v1/messages is served as /v1/messages', async () => {
    const body = JSON.stringify(smallBody('real-model'))
    const answer = await fetch(`${stack.gateway.url}/v1/v1/messages`, { method: 'POST', headers: callHeaders(key), body })
    expect([answer.status, (JSON.parse(lab.record(await answer.text())) as { type: string }).type]).toEqual([200, 'message'])
  })
})

interface Refused {
  readonly name: string
  readonly status: number
  readonly credential?: () => string
  readonly model?: string
  readonly content?: string
}

const REFUSED: readonly Refused[] = [
  { name: 'a malformed key', status: 401, credential: () => 'let-me-in' },
  { name: 'an unknown key', status: 401, credential: () => mintCredential().credential },
  { name: 'a revoked key', status: 401, credential: () => revoked },
  { name: 'a suspended key', status: 401, credential: () => suspended },
  { name: 'a model out of scope', status: 403, model: 'stub-hidden' },
  { name: 'a model that is not there', status: 404, model: 'real-but-absent' },
  { name: 'an invalid field', status: 400, model: '' },
  { name: 'a prompt longer than the context', status: 400, content: 'many words '.repeat(18_500) },
  { name: 'a body over the size limit', status: 413, content: ' '.repeat(40_000_000) },
]

describe('E1 a final refusal costs one request', () => {
  let requests = 0
  const counting: typeof fetch = (...call) => {
    requests += 1
    return fetch(...call)
  }
  const asked = ({ model = 'real-model', content = 'Say something.' }: Refused) => ({
    model,
    max_tokens: 3,
    messages: [{ role: 'user' as const, content }],
  })
  const failure = async (call: Promise<unknown>): Promise<{ status: unknown; requests: number }> => {
    const error: unknown = await call.then(
      () => 'an answer',
      (reason: unknown) => reason,
    )
    lab.record(String(error))
    return { status: error instanceof Error && 'status' in error ? error.status : error, requests }
  }

  it.each(REFUSED)('of the OpenAI SDK: $name', async (refused) => {
    requests = 0
    const client = new OpenAI({ apiKey: refused.credential?.() ?? key, baseURL: `${stack.gateway.url}/v1`, fetch: counting })
    expect(await failure(client.chat.completions.create(asked(refused)))).toEqual({ status: refused.status, requests: 1 })
  })

  it.each(REFUSED)('of the Anthropic SDK: $name', async (refused) => {
    requests = 0
    const authToken = refused.credential?.() ?? key
    const client = new Anthropic({ authToken, apiKey: null, baseURL: stack.gateway.url, fetch: counting })
    expect(await failure(client.messages.create(asked(refused)))).toEqual({ status: refused.status, requests: 1 })
  })

  it('of the Anthropic SDK: a model that serves neither Messages nor chat completions', async () => {
    requests = 0
    const client = new Anthropic({ authToken: key, apiKey: null, baseURL: stack.gateway.url, fetch: counting })
    const call = client.messages.create(asked({ name: '', status: 400, model: 'real-completions' }))
    expect(await failure(call)).toEqual({ status: 400, requests: 1 })
    expectRow(await ask(lab, stack.gateway.url, { format: 'anthropic', credential: key, model: 'real-completions' }), 'anthropic', {
      ...wrongField('model'),
      starts: 'model real-completions does not serve this route',
    })
  })
})
