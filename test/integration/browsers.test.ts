/** The official SDKs in a real browser, on a page of an origin that CORS_ORIGINS lists, and on a page of another one. */
import { createServer, type Server } from 'node:http'
import { build } from 'esbuild'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { settingsWith } from '../../gateway/config.ts'
import { corsOrigins } from '../../gateway/http/cors.ts'
import { MemoryProjection } from '../../standalone/memory-projection.ts'
import { missingBrowser, TestBrowser } from '../support/browser.ts'
import { listening } from '../support/listening.ts'
import { backendRecord, issuedKey, modelText, recordText, writer } from '../support/records.ts'
import { runningGateway } from '../support/running-gateway.ts'
import { waitFor } from '../support/wait-for.ts'

const CHUNK = '{"id":"c","object":"chat.completion.chunk","model":"llama","choices":[{"index":0,"delta":{"content":"good morning"}}]}'
const END = '{"id":"c","object":"chat.completion.chunk","model":"llama","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
const MESSAGE =
  '{"id":"m","type":"message","role":"assistant","model":"llama","content":[{"type":"text","text":"good evening"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}'

/** The script of the page. Functions of a page are called by name, because Chromium knows nothing of this file. */
const SCRIPT = `
import OpenAI from 'openai'
import Anthropic from '@anthropic-ai/sdk'
const shown = (error) => ({ name: error.constructor.name, status: error.status, message: error.message, requestId: error.requestID })
window.chat = async (base, apiKey) => {
  const client = new OpenAI({ apiKey, baseURL: base + '/v1', dangerouslyAllowBrowser: true, maxRetries: 0 })
  const messages = [{ role: 'user', content: 'hi' }]
  try {
    const asked = client.chat.completions.create({ model: 'llama', messages, stream: true })
    const { data, response, request_id: requestId } = await asked.withResponse()
    let text = ''
    for await (const chunk of data) text += chunk.choices[0]?.delta.content ?? ''
    return { text, requestId, limit: response.headers.get('x-ratelimit-limit-requests') }
  } catch (error) { return shown(error) }
}
window.message = async (base, apiKey) => {
  const client = new Anthropic({ apiKey, baseURL: base, dangerouslyAllowBrowser: true, maxRetries: 0 })
  try {
    const answer = await client.messages.create({ model: 'llama', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] })
    return { text: answer.content[0].text, requestId: answer._request_id }
  } catch (error) { return shown(error) }
}`

const withoutBrowser = missingBrowser()
const { credential, record } = issuedKey('a', { limits: { requestsPerMinute: 100 } })
const servers: Server[] = []
let browser: TestBrowser
let listed: string
let other: string
let gatewayURL: string
let received: string[]
let stop: () => Promise<void>

async function serve(server: Server): Promise<string> {
  servers.push(server)
  return `127.0.0.1:${await listening(server)}`
}

beforeAll(async () => {
  if (withoutBrowser !== undefined) return
  browser = await TestBrowser.start()
  const bundled = { bundle: true, write: false, format: 'iife', platform: 'browser', logLevel: 'error' } as const
  const { outputFiles } = await build({ stdin: { contents: SCRIPT, resolveDir: import.meta.dirname }, ...bundled })
  const page = `<!doctype html><meta charset="utf-8"><title>x</title><script>${outputFiles[0]?.text.replaceAll('</script', '<\\/script')}</script>`
  const pages = (): Server => createServer((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(page))
  listed = `http://${await serve(pages())}`
  other = `http://${await serve(pages())}`
})
afterAll(async () => {
  if (withoutBrowser === undefined) await browser.close()
  for (const server of servers) server.close().closeAllConnections()
})

beforeEach(async ({ skip }) => {
  skip(withoutBrowser !== undefined, withoutBrowser)
  received = []
  const endpoint = await serve(
    createServer((request, response) => {
      received.push(request.url ?? '')
      const isMessage = request.url === '/v1/messages'
      response.writeHead(200, { 'content-type': isMessage ? 'application/json' : 'text/event-stream' })
      request
        .resume()
        .on('end', () => response.end(isMessage ? MESSAGE : [CHUNK, END, '[DONE]'].map((data) => `data: ${data}\n\n`).join('')))
    }),
  )
  const store = new MemoryProjection()
  const settings = settingsWith({ podName: 'p', accessLog: 'errors', maxBodyBytes: 10_000, corsOrigins: corsOrigins(listed) })
  const running = await runningGateway(store, { settings })
  ;({ stop, url: gatewayURL } = running)
  await store.rebuild(writer(), 'e1', 1, [
    { kind: 'key', op: 'put', id: 'a', text: recordText(record) },
    { kind: 'model', op: 'put', id: 'llama', text: modelText('llama', { backends: [backendRecord({ endpoints: [endpoint] })] }) },
  ])
  await running.gateway.start()
  await waitFor('the gateway', () => running.gateway.health.isReady())
})
afterEach(() => stop?.())

/** Calls a function of the page's script. */
async function onPage(origin: string, name: 'chat' | 'message', key: string): Promise<unknown> {
  const { page, context } = await browser.open()
  try {
    await page.goto(origin)
    return await page.evaluate(`window.${name}(${JSON.stringify(gatewayURL)}, ${JSON.stringify(key)})`)
  } finally {
    await context.close()
  }
}

const REQUEST_ID = expect.stringMatching(/^req_/)

describe('a page of a listed origin', () => {
  test('streams with the OpenAI SDK, and reads the request id and the limits', async () => {
    expect(await onPage(listed, 'chat', credential)).toEqual({ text: 'good morning', requestId: REQUEST_ID, limit: '100' })
  })

  test('calls with the Anthropic SDK, and reads the request id', async () => {
    expect(await onPage(listed, 'message', credential)).toEqual({ text: 'good evening', requestId: REQUEST_ID })
  })

  test.each(['chat', 'message'] as const)('reads why a %s was refused', async (name) => {
    const refused = {
      name: expect.stringMatching(/^AuthenticationError/), // a bundler numbers classes of one name
      status: 401,
      message: expect.stringContaining('malformed API key'),
      requestId: REQUEST_ID,
    }
    expect(await onPage(listed, name, 'sk-hg1wrong')).toMatchObject(refused)
    expect(received).toEqual([])
  })
})

test.each(['chat', 'message'] as const)(
  'the browser keeps a page of another origin from a %s, and no model server is asked',
  async (name) => {
    expect(await onPage(other, name, credential)).toMatchObject({ name: expect.stringMatching(/^APIConnectionError/) })
    expect(received).toEqual([])
  },
)
