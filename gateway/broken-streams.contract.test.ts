/** A stream that breaks after its first byte leaves a trace for the operator: one line of the log, and two metrics. */
import { createServer, type Server, type ServerResponse } from 'node:http'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { LogMethod } from '#platform/log.ts'
import { MemoryProjection } from '../standalone/memory-projection.ts'
import { listening } from '../test/support/listening.ts'
import { backendRecord, issuedKey, modelText, recordText, writer } from '../test/support/records.ts'
import { runningGateway } from '../test/support/running-gateway.ts'
import { waitFor } from '../test/support/wait-for.ts'
import type { Gateway } from './gateway.ts'

const CHUNK = 'data: {"id":"1","object":"chat.completion.chunk","model":"llama","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
const FAILED = 'data: {"error":{"message":"CUDA out of memory at 10.0.0.7:8000","type":"server_error","code":500}}\n\n'
const { credential, record } = issuedKey('a')

interface Line extends Readonly<Record<string, unknown>> {
  readonly level: string
}

let store: MemoryProjection
let gateway: Gateway
let url: string
let stop: () => Promise<void>
let backend: Server
let streams: ServerResponse[]
let lines: Line[]

beforeEach(async () => {
  streams = []
  lines = []
  const at =
    (level: string): LogMethod =>
    (fields: Readonly<Record<string, unknown>> | string) =>
      void (typeof fields === 'object' && 'requestId' in fields && lines.push({ level, ...fields }))
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  backend = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(CHUNK)
    streams.push(response)
  })
  const endpoints = [`127.0.0.1:${await listening(backend)}`]
  store = new MemoryProjection()
  ;({ gateway, url, stop } = await runningGateway(store, { log }))
  await store.rebuild(writer(), 'e1', 1, [
    { kind: 'key', op: 'put', id: 'a', text: recordText(record) },
    { kind: 'model', op: 'put', id: 'llama', text: modelText('llama', { backends: [backendRecord({ endpoints })] }) },
  ])
  await gateway.start()
  await waitFor('the gateway', () => gateway.health.isReady())
})
afterEach(async () => {
  await stop()
  backend.close()
  backend.closeAllConnections()
})

interface Asked {
  readonly stream?: boolean
  readonly signal?: AbortSignal | null
  readonly path?: string
}

function ask({ stream = true, signal = null, path = '/v1/chat/completions' }: Asked = {}): Promise<Response> {
  const prompt = { messages: [{ role: 'user', content: 'hi' }], prompt: 'hi', input: 'hi' }
  return fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}` },
    signal,
    body: JSON.stringify({ model: 'llama', stream, ...prompt }),
  })
}

/** Makes the model server begin its streams otherwise. */
function streamBegins(event: string): void {
  backend.removeAllListeners('request')
  backend.on('request', (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(event)
    streams.push(response)
  })
}

async function suspend(): Promise<void> {
  await store.write(writer(), 'e1', [{ kind: 'key', op: 'put', id: 'a', text: recordText({ ...record, state: 'Suspended' }) }])
}

/** The series of finished requests and of errors, once no request runs. */
async function counted(): Promise<string> {
  const text = await waitFor('the end of all requests', async () => {
    const metrics = await gateway.health.metrics.render()
    return metrics.includes('headgate_requests_in_flight 0\n') && metrics
  })
  return text.match(/^headgate_(?:requests|errors)_total\{.*$/gm)?.join('\n') ?? ''
}

interface Broken {
  readonly end: (answer: ServerResponse) => unknown
  readonly row: number
  readonly error: string
  readonly cause: RegExp
}

const BROKEN: Readonly<Record<string, Broken>> = {
  'that the model server cuts': {
    end: (answer) => answer.socket?.resetAndDestroy(),
    ...{ row: 35, error: 'streamBroken', cause: /backendError.*(ECONNRESET|UND_ERR_SOCKET)/ },
  },
  'with an error frame': {
    end: (answer) => answer.end(FAILED),
    ...{ row: 35, error: 'streamBroken', cause: /backend answered 500: CUDA out of memory at \[host\]/ },
  },
  'that ends too early': {
    end: (answer) => answer.end(),
    ...{ row: 35, error: 'streamBroken', cause: /its stream ended early/ },
  },
  'whose model server is overloaded': {
    end: (answer) => answer.end(FAILED.replace('500', '503')),
    ...{ row: 27, error: 'backendOverloaded', cause: /backend answered 503: CUDA/ },
  },
  'whose key is suspended meanwhile': { end: suspend, row: 4, error: 'inactiveKey', cause: /suspended/ },
  'at the deadline of a shutdown': {
    end: () => void gateway.drain(0),
    ...{ row: 35, error: 'streamBroken', cause: /The gateway is shutting down/ },
  },
}

test.each(Object.entries(BROKEN))('a stream %s is one warning with its row and its cause, and counts as broken', async (_, broken) => {
  const { end, row, error, cause } = broken
  const answer = await ask()
  await end(streams[0] as ServerResponse)
  expect(await answer.text()).toMatch(/"content":"a"[^]*"error"/)
  const metrics = await counted()
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatchObject({ level: 'warn', status: 200, row, error, model: 'llama', backend: 'one' })
  expect(JSON.stringify(lines[0]?.['cause'])).toMatch(cause)
  expect(metrics).toContain(`headgate_errors_total{row="${row}",error="${error}"} 1`)
  expect(metrics).toContain(
    'headgate_requests_total{route="/v1/chat/completions",model_namespace="shop",model="llama",status="broken",backend="one"} 1',
  )
  expect(metrics).not.toContain('status="2xx"')
})

const TOLD = 'CUDA out of memory at 10.0.0.7:8000'
/** The first event of a stream, and an error event. */
const ROUTES = {
  '/v1/completions': { begins: 'data: {"choices":[{"index":0,"text":"a"}]}\n\n', fails: FAILED },
  '/v1/messages': {
    begins: 'event: message_start\ndata: {"type":"message_start","message":{"id":"m","model":"llama","content":[]}}\n\n',
    fails: `event: error\ndata: {"type":"error","error":{"type":"api_error","message":"${TOLD}"}}\n\n`,
  },
  '/v1/responses': {
    begins: 'event: response.created\ndata: {"type":"response.created","response":{"id":"r","model":"llama"},"sequence_number":0}\n\n',
    fails: `event: error\ndata: {"type":"error","code":"server_error","message":"${TOLD}","param":null,"sequence_number":1}\n\n`,
  },
}

test.each(Object.entries(ROUTES))('a stream of %s with an error event leaves the same trace', async (path, { begins, fails }) => {
  streamBegins(begins)
  const answer = await ask({ path })
  streams[0]?.end(fails)
  const text = await answer.text()
  expect(text.startsWith(begins)).toBe(true)
  expect(text).toContain('Backend error: CUDA out of memory at [host]')
  expect(text).not.toContain('10.0.0.7')
  expect(await counted()).toContain(
    `headgate_requests_total{route="${path}",model_namespace="shop",model="llama",status="broken",backend="one"} 1`,
  )
  expect(lines).toMatchObject([{ level: 'warn', status: 200, row: 35, route: path }])
  expect(JSON.stringify(lines[0]?.['cause'])).toContain('CUDA out of memory at [host]')
})

test('a response that its model server reports as failed leaves the same trace', async () => {
  const failed = {
    type: 'response.failed',
    response: { id: 'r', model: 'llama', error: { code: 'server_error', message: 'CUDA out of memory' } },
  }
  streamBegins(ROUTES['/v1/responses'].begins)
  const answer = await ask({ path: '/v1/responses' })
  streams[0]?.end(`event: response.failed\ndata: ${JSON.stringify(failed)}\n\n`)
  expect(await answer.text()).toContain('CUDA out of memory')
  expect(await counted()).toContain(
    'headgate_requests_total{route="/v1/responses",model_namespace="shop",model="llama",status="broken",backend="one"} 1',
  )
  expect(lines).toMatchObject([{ level: 'warn', row: 35, route: '/v1/responses' }])
  expect(JSON.stringify(lines[0]?.['cause'])).toContain('CUDA out of memory')
})

test('a plain answer that the model server cuts counts as broken too', async () => {
  backend.removeAllListeners('request')
  backend.on('request', (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': 300_000 }).write(`{"x":"${'x'.repeat(200_000)}`)
    streams.push(response)
  })
  const answer = await ask({ stream: false })
  streams[0]?.socket?.resetAndDestroy()
  await expect(answer.text()).rejects.toThrow()
  expect(await counted()).toContain('status="broken"')
  expect(lines).toMatchObject([{ level: 'warn', status: 200, row: 32, error: 'backendError' }])
})

test('a stream that its client leaves is not a failure', async () => {
  const leaving = new AbortController()
  const answer = await ask({ signal: leaving.signal })
  const text = answer.text()
  leaving.abort()
  await expect(text).rejects.toThrow()
  expect(await counted()).toMatch(/^headgate_requests_total\{.*status="2xx".*\} 1$/)
  expect(lines).toEqual([])
})
