/** A gateway with CORS_ORIGINS on a real port, in front of a model server, asked as browsers ask. */
import { createServer, type Server } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MemoryProjection } from '../../standalone/memory-projection.ts'
import { listening } from '../../test/support/listening.ts'
import { backendRecord, issuedKey, modelText, recordText, writer } from '../../test/support/records.ts'
import { runningGateway } from '../../test/support/running-gateway.ts'
import { waitFor } from '../../test/support/wait-for.ts'
import { settingsWith } from '../config.ts'
import type { Gateway } from '../gateway.ts'
import { corsOrigins } from './cors.ts'

const CHAT = 'https://chat.example.com'
const STREAM = 'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
const { credential, record } = issuedKey('a', { limits: { requestsPerMinute: 3 } })

let gateway: Gateway
let url: string
let stop: () => Promise<void>
let backend: Server

beforeEach(async () => {
  backend = createServer((request, response) => {
    request
      .resume()
      .on('end', () => response.writeHead(200, { 'content-type': 'text/event-stream', 'access-control-allow-origin': '*' }).end(STREAM))
  })
  await listening(backend)
})
afterEach(async () => {
  await stop()
  backend.close()
  backend.closeAllConnections()
})

async function start(origins: string): Promise<void> {
  const store = new MemoryProjection()
  const settings = settingsWith({ podName: 'p', accessLog: 'errors', maxBodyBytes: 10_000, corsOrigins: corsOrigins(origins) })
  ;({ gateway, url, stop } = await runningGateway(store, { settings }))
  const address = backend.address()
  const endpoints = [`127.0.0.1:${typeof address === 'object' ? address?.port : ''}`]
  await store.rebuild(writer(), 'e1', 1, [
    { kind: 'key', op: 'put', id: 'a', text: recordText(record) },
    { kind: 'model', op: 'put', id: 'llama', text: modelText('llama', { backends: [backendRecord({ endpoints })] }) },
  ])
}

async function serving(): Promise<void> {
  await gateway.start()
  await waitFor('the gateway', () => gateway.health.isReady())
}

function preflight(origin: string, headers = 'authorization,content-type', path = '/v1/chat/completions'): Promise<Response> {
  const asked = { 'access-control-request-method': 'POST', 'access-control-request-headers': headers }
  return fetch(url + path, { method: 'OPTIONS', headers: { origin, ...asked } })
}

function ask(origin: string, change: { path?: string; key?: string; body?: string } = {}): Promise<Response> {
  const { path = '/v1/chat/completions', key = credential } = change
  const { body = JSON.stringify({ model: 'llama', stream: true, messages: [{ role: 'user', content: 'hi' }] }) } = change
  return fetch(url + path, { method: 'POST', headers: { origin, authorization: `Bearer ${key}` }, body })
}

/** The headers that CORS knows. */
function corsOf({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-') || name === 'vary'))
}

const EXPOSED = expect.stringMatching(
  /^x-request-id, request-id, retry-after, retry-after-ms, x-should-retry, .*x-ratelimit-remaining-tokens.*anthropic-ratelimit-requests-reset/,
)
const READABLE = { 'access-control-allow-origin': CHAT, vary: 'origin', 'access-control-expose-headers': EXPOSED }

describe('a gateway with CORS_ORIGINS', () => {
  test('answers a preflight of such an origin without a key, and lets a page send what the SDKs send', async () => {
    await start(CHAT)
    await serving()
    const sent = ['Authorization', 'x-api-key', 'content-type', 'anthropic-version', 'anthropic-dangerous-direct-browser-access']
    const more = ['x-stainless-lang', 'x-stainless-retry-count', 'openai-organization', 'x-session-id', 'user-agent']
    const answer = await preflight(CHAT, [...sent, 'cookie', 'x-forwarded-for', ...more, 'x-stainless-\u00e9'].join(', '))
    expect([answer.status, await answer.text()]).toEqual([204, ''])
    expect(corsOf(answer)).toEqual({
      ...READABLE,
      'access-control-allow-methods': 'GET, HEAD, POST',
      'access-control-allow-headers': [...sent, ...more].join(', ').toLowerCase(),
      'access-control-max-age': '7200',
    })
    expect(answer.headers.get('x-request-id')).toMatch(/^req_/)
  })

  test('lets the page read every answer: streams, lists, refusals, unknown paths, and a gateway that is not ready', async () => {
    await start(CHAT)
    const early = await ask(CHAT)
    expect([early.status, corsOf(early)]).toEqual([503, READABLE])
    await serving()
    const stream = await ask(CHAT)
    expect([stream.status, await stream.text(), corsOf(stream)]).toEqual([200, STREAM, READABLE])
    expect(stream.headers.get('x-ratelimit-limit-requests')).toBe('3')
    const models = await fetch(`${url}/v1/models`, { headers: { origin: CHAT, authorization: `Bearer ${credential}` } })
    expect([models.status, corsOf(models)]).toEqual([200, READABLE])
    const refusals = [
      await ask(CHAT, { key: 'sk-wrong' }),
      await ask(CHAT, { body: '{' }),
      await ask(CHAT, { path: '/v1/messages', body: 'x'.repeat(20_000) }),
      await ask(CHAT, { path: '/v1/nothing' }),
      await fetch(`${url}/v1/models`, { method: 'DELETE', headers: { origin: CHAT } }),
    ]
    expect(refusals.map(({ status }) => status)).toEqual([401, 400, 413, 404, 405])
    for (const refusal of refusals) expect(corsOf(refusal)).toEqual(READABLE)
  })

  test('lets the page read when to ask again', async () => {
    await start(CHAT)
    await serving()
    for (let call = 0; call < 3; call++) await (await ask(CHAT)).text()
    const limited = await ask(CHAT)
    expect([limited.status, corsOf(limited)]).toEqual([429, READABLE])
    expect(limited.headers.get('retry-after-ms')).toMatch(/^\d+$/)
  })

  test.each(['https://chat.example.com.evil.example', 'http://chat.example.com', 'https://chat.example.com:8443', 'null'])(
    'tells a page of %s nothing',
    async (origin) => {
      await start(CHAT)
      await serving()
      const refused = await preflight(origin)
      expect([refused.status, corsOf(refused)]).toEqual([405, {}])
      expect(corsOf(await ask(origin))).toEqual({})
    },
  )

  test('with * answers every origin, and never allows the credentials of a browser', async () => {
    await start('*')
    await serving()
    for (const origin of [CHAT, 'null', 'https://other.example']) {
      const answers = [await preflight(origin), await ask(origin, { key: 'sk-wrong' })]
      expect(answers.map(({ status }) => status)).toEqual([204, 401])
      for (const answer of answers) expect(corsOf(answer)).toMatchObject({ ...READABLE, 'access-control-allow-origin': '*' })
      for (const answer of answers) expect(answer.headers.has('access-control-allow-credentials')).toBe(false)
    }
  })

  test('takes an OPTIONS request that is not a preflight for a wrong method', async () => {
    await start(CHAT)
    await serving()
    const answer = await fetch(`${url}/v1/models`, { method: 'OPTIONS', headers: { origin: CHAT } })
    expect([answer.status, answer.headers.get('allow'), corsOf(answer)]).toEqual([405, 'GET, HEAD', READABLE])
  })
})

test('without CORS_ORIGINS nothing is answered to browsers: OPTIONS is a wrong method, and no header of CORS is sent', async () => {
  await start('')
  await serving()
  const refused = await preflight(CHAT)
  expect([refused.status, refused.headers.get('allow'), corsOf(refused)]).toEqual([405, 'POST', {}])
  const stream = await ask(CHAT)
  expect([stream.status, await stream.text(), corsOf(stream)]).toEqual([200, STREAM, {}])
})
