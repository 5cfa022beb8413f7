/** A tenant with many keys takes its own share of a pod and no more. A whole gateway with small bounds, and a model server that may be silent. */
import { createServer, type Server, type ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MemoryProjection } from '../standalone/memory-projection.ts'
import { listening } from '../test/support/listening.ts'
import { backendRecord, issuedKey, modelText, recordText, writer } from '../test/support/records.ts'
import { runningGateway } from '../test/support/running-gateway.ts'
import { eventually } from '../test/support/wait-for.ts'
import type { Gateway } from './gateway.ts'
import { bodyLimits } from './http/body-budget.ts'

const MIB = 2 ** 20
/** 2 MiB of bodies in all, 512 KiB of one tenant, 256 KiB of one key. */
const BODIES = bodyLimits(8 * MIB)
/** 8 calls of one tenant, 4 of one key. */
const CALLS = 32
const KEYS = 12

const ANSWER = JSON.stringify({ model: 'llama', choices: [{ message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }] })

const greedy = Array.from({ length: KEYS }, (_, number) => issuedKey(`greedy-${number}`, { namespace: 'greedy' }))
const modest = issuedKey('modest')

let gateway: Gateway
let store: MemoryProjection
let modelOf: (name: string, servedName?: string) => string
let url: string
let stop: () => Promise<void>
let server: Server
let endpoints: string[]
/** Calls that the server has answered. */
let sent: Array<{ readonly path: string; readonly bytes: number }>
/** Calls of the model `silent`, which are never answered. */
let waiting: ServerResponse[]

beforeEach(async () => {
  waiting = []
  sent = []
  server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk) => (text += chunk))
    request.on('end', () => {
      if (text.includes('"silent"')) return void waiting.push(response)
      sent.push({ path: request.url ?? '', bytes: text.length })
      response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER)
    })
  })
  endpoints = [`127.0.0.1:${await listening(server)}`]
  const backends = (upstreamModel: string) => [backendRecord({ endpoints, upstreamModel })]
  store = new MemoryProjection()
  modelOf = (name, servedName = name) => modelText(name, { servedName, allowedNamespaces: '*', backends: backends(name) })
  ;({ gateway, url, stop } = await runningGateway(store, { bodyLimits: BODIES, maxCalls: CALLS }))
  await store.rebuild(writer(), 'e1', 1, [
    ...[...greedy, modest].map(({ record }) => ({ kind: 'key', op: 'put', id: record.uid, text: recordText(record) }) as const),
    ...['llama', 'silent'].map((name) => ({ kind: 'model', op: 'put', id: name, text: modelOf(name) }) as const),
  ])
  await gateway.start()
  await untilReady()
})
afterEach(async () => {
  await stop()
  server.close()
  server.closeAllConnections()
})

const untilReady = (): Promise<void> => eventually(() => expect(gateway.health.isReady()).toBe(true))
const aborts: AbortController[] = []
afterEach(() => {
  for (const abort of aborts.splice(0)) abort.abort()
})

interface Asked {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly retryAfter: string | null
  readonly connection: string | null
}

async function ask(credential: string, model: string, bytes = 2_000): Promise<Asked> {
  const abort = new AbortController()
  aborts.push(abort)
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    signal: abort.signal,
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'x'.repeat(bytes) }] }),
  })
  const { error = {} } = (await response.json()) as { error?: { code?: string; message?: string } }
  const [retryAfter, connection] = [response.headers.get('retry-after'), response.headers.get('connection')]
  return { status: response.status, code: error.code ?? '', message: error.message ?? '', retryAfter, connection }
}

/** Starts calls that the silent server holds. @returns their answers, of the refused ones alone */
function hold(count: number, bytes?: number): { refused: Asked[] } {
  const held = { refused: [] as Asked[] }
  for (let number = 0; number < count; number++) {
    const { credential } = greedy[number % KEYS] ?? modest
    void ask(credential, 'silent', bytes).then(
      (answer) => held.refused.push(answer),
      () => undefined, // the test has ended
    )
  }
  return held
}

describe('many keys of one tenant with large bodies to their own silent server', () => {
  test('fill the share of the tenant, and every call of the others is served', async () => {
    const { refused } = hold(KEYS, 200_000)
    await eventually(() => expect([waiting.length, refused.length]).toEqual([2, KEYS - 2]))
    for (let call = 0; call < 20; call++) expect((await ask(modest.credential, 'llama')).status).toBe(200)
    expect((await ask(modest.credential, 'llama', 200_000)).status).toBe(200)
    for (const answer of refused) {
      expect(answer).toMatchObject({ status: 429, code: 'too_many_bodies', message: expect.stringContaining('of this namespace') })
    }
  })
})

describe('tenants that together take all calls', () => {
  test('get an answer that says when to ask again, on a connection that ends, from a pod that stays Ready', async () => {
    const keys = ['a', 'b', 'c', 'd'].flatMap((namespace) => [1, 2].map((number) => issuedKey(`${namespace}-${number}`, { namespace })))
    const changes = keys.map(({ record }) => ({ kind: 'key', op: 'put', id: record.uid, text: recordText(record) }) as const)
    await store.write(writer(), 'e1', changes)
    const last = keys.at(-1) ?? modest
    await eventually(async () => expect((await ask(last.credential, 'llama')).status).toBe(200))
    const held = keys.flatMap(({ credential }) => Array.from({ length: CALLS / keys.length }, () => ask(credential, 'silent')))
    await eventually(() => expect(waiting).toHaveLength(CALLS))
    expect(await ask(modest.credential, 'llama')).toMatchObject({
      ...{ status: 503, code: 'server_is_overloaded' },
      ...{ retryAfter: '1', connection: 'close' },
    })
    expect(gateway.health.isReady()).toBe(true)
    for (const response of waiting.splice(0)) response.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":[]}')
    expect((await Promise.all(held)).map(({ status }) => status)).toEqual(held.map(() => 200))
    await eventually(async () => expect((await ask(modest.credential, 'llama')).status).toBe(200))
  })
})

describe('a message that is translated', () => {
  const NATIVE = { name: 'native', routes: ['messages'] }
  const CHAT_ONLY = { name: 'chat-only', routes: ['chat/completions'] }
  const serve = (...backends: object[]): Promise<unknown> => {
    const records = backends.map((backend) => backendRecord({ endpoints, upstreamModel: 'm', ...backend }))
    const text = modelText('message', { servedName: 'message', allowedNamespaces: '*', backends: records })
    return store.write(writer(), 'e1', [{ kind: 'model', op: 'put', id: 'message', text }])
  }
  const send = async (fields: object): Promise<Response> => {
    const headers = { authorization: `Bearer ${modest.credential}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'message', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }], ...fields })
    return await fetch(`${url}/v1/messages`, { method: 'POST', headers, body: body.replaceAll('100000000000000000000', '1e20') })
  }
  const served = (): Promise<void> => eventually(async () => expect((await send({})).status).toBe(200))
  const LARGE = { system: 'x'.repeat(200_000) } // more than half of the share of a key

  test('needs the room of one body, and its bytes are given back', async () => {
    await serve(CHAT_ONLY)
    await served()
    for (let call = 0; call < 5; call++) expect((await send(LARGE)).status).toBe(200)
    expect(sent.at(-1)).toMatchObject({ path: '/v1/chat/completions', bytes: expect.toSatisfy((bytes) => bytes > 200_000) })
  })

  test('without room for two bodies goes to a server that takes the original', async () => {
    await serve(NATIVE, { ...CHAT_ONLY, weight: 1000 })
    await served()
    for (let call = 0; call < 5; call++) {
      expect((await send(LARGE)).status).toBe(200)
      expect(sent.at(-1)?.path).toBe('/v1/messages')
    }
  })

  test('that would never fit is refused for good', async () => {
    await serve(CHAT_ONLY)
    await served()
    const tools = [{ name: 'a', input_schema: { type: 'object', enum: Array.from({ length: 20_000 }, () => 1e20) } }]
    const answer = await send({ tools })
    expect([answer.status, answer.headers.get('x-should-retry'), answer.headers.get('retry-after')]).toEqual([413, 'false', null])
  })
})

describe('many keys of one tenant with many calls to their own silent server', () => {
  test('fill a quarter of the calls, and every call of the others is served', async () => {
    const { refused } = hold(40)
    await eventually(() => expect([waiting.length, refused.length]).toEqual([CALLS / 4, 40 - CALLS / 4]))
    for (let call = 0; call < 20; call++) expect((await ask(modest.credential, 'llama')).status).toBe(200)
    const namespace = { status: 503, code: 'too_many_calls', retryAfter: '1', message: expect.stringContaining('of this namespace') }
    for (const answer of refused) expect(answer).toMatchObject(namespace)
    expect(gateway.health.isReady()).toBe(true)
  })

  test('one key fills an eighth, and its namespace is still served; a call that ends makes room', async () => {
    const [{ credential }, other] = [greedy[0] ?? modest, greedy[1] ?? modest]
    const held = Array.from({ length: CALLS / 8 }, () => ask(credential, 'silent'))
    await eventually(() => expect(waiting).toHaveLength(CALLS / 8))
    expect(await ask(credential, 'llama')).toMatchObject({ status: 503, message: expect.stringContaining('of this key') })
    expect((await ask(other.credential, 'llama')).status).toBe(200)
    for (const response of waiting.splice(0)) response.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":[]}')
    expect((await Promise.all(held)).map(({ status }) => status)).toEqual(held.map(() => 200))
    await eventually(async () => expect((await ask(credential, 'llama')).status).toBe(200))
  })
})

test('a model that is renamed again and again leaves no series behind', async () => {
  const lines: number[] = []
  for (let round = 0; round < 4; round++) {
    await store.write(writer(), 'e1', [{ kind: 'model', op: 'put', id: 'llama', text: modelOf('llama', `name-${round}`) }])
    await eventually(async () => expect((await ask(modest.credential, `name-${round}`)).status).toBe(200))
    await eventually(async () => expect(await gateway.health.metrics.render()).toContain(`model="name-${round}",status="2xx"`))
    const text = await gateway.health.metrics.render()
    lines.push(text.split('\n').filter((line) => line.includes('model_namespace="shop"')).length)
  }
  expect(new Set(lines).size).toBe(1)
})
