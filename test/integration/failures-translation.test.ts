/** Programs that die in a translated stream: what the client reads, and what the call costs. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startStubModel, type StubModel } from '../../examples/stub-model/stub-model.ts'
import { ask, callHeaders, PATHS, smallBody, WIRE_FORMATS, type WireFormat } from '../support/ask.ts'
import { openLab } from '../support/lab.ts'
import { checkMessageStart, checkMessageStream } from '../support/message-grammar.ts'
import { ModelServerPart, UPSTREAM_MODEL } from '../support/model-server-part.ts'
import { rebuilt } from '../support/rebuilt-message.ts'
import type { Stack } from '../support/stack.ts'
import { waitFor } from '../support/wait-for.ts'

const STUB = 'worded'
/** Of a token: a unit for a million, so a token costs a micro-unit. */
const PRICING = { inputPerMillion: '1', outputPerMillion: '1' }
const BUDGET = { name: 'life', amount: '100', unit: 'Currency', window: 'Lifetime' }
const MOST_TOKENS = 4_000
/** A stream has so many events when its gateway is killed. */
const EVENTS = 10

const lab = openLab()
let stack: Stack
let stub: StubModel

beforeAll(async () => {
  stack = await lab.stack({ gateways: 1 })
  stub = await startStubModel({ host: lab.address.ip })
  await serve(STUB, stub.port)
})
afterAll(async () => {
  await stub.close()
})

const backendOf = (name: string, port: number, messages: 'Translate' | 'Native' = 'Translate') => ({
  ...{ name, service: { name, port }, upstreamModel: UPSTREAM_MODEL, engine: 'LlamaCpp', messages },
})

async function serve(name: string, port: number): Promise<void> {
  await stack.exposeService(name, port)
  await stack.serveModel(name, { backends: [backendOf(name, port)], pricing: PRICING })
}

interface Call {
  readonly url: string
  readonly credential: string
  readonly body: object
  readonly headers?: Readonly<Record<string, string>>
  readonly format?: WireFormat
}

/** Reads a stream, and runs `act` once when its text so far is enough. @returns the text, and whether the connection broke */
async function readUntil(
  { url, credential, body, headers, format = 'anthropic' }: Call,
  isEnough: (text: string) => boolean,
  act: () => Promise<unknown>,
): Promise<{ readonly text: string; readonly isTorn: boolean }> {
  const init = { method: 'POST', headers: { ...callHeaders(credential), ...headers }, body: JSON.stringify(body) }
  const answer = await fetch(url + PATHS[format], init)
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
  let text = ''
  let acting: Promise<unknown> | undefined
  try {
    for await (const chunk of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString()
      if (acting === undefined && isEnough(text)) acting = act()
    }
    return { text: lab.record(text), isTorn: false }
  } catch {
    return { text: lab.record(text), isTorn: true }
  } finally {
    expect(acting, 'the stream was long enough').toBeDefined()
    await acting
  }
}

interface Money {
  readonly used: number
  readonly held: number
}

/** The only budget of a key, in micro-units. */
async function moneyOf(credential: string): Promise<Money> {
  const answer = await fetch(`${stack.gateway.url}/v1/key`, { headers: callHeaders(credential) })
  const { budgets } = JSON.parse(lab.record(await answer.text())) as {
    budgets: readonly { readonly used: string; readonly held: string }[]
  }
  const micros = (text = ''): number => Math.round(1_000_000 * Number(text))
  return { used: micros(budgets[0]?.used), held: micros(budgets[0]?.held) }
}

/** What a key can no longer spend: what it has spent, and what a killed process still holds. */
async function taken(credential: string): Promise<number> {
  const { used, held } = await moneyOf(credential)
  return used + held
}

/** What a key has spent once nothing is held any more. */
async function settled(credential: string): Promise<number> {
  return await waitFor('the call to be settled', async () => {
    const { used, held } = await moneyOf(credential)
    return held === 0 && used > 0 ? used : undefined
  })
}

describe('a gateway killed in a translated stream', () => {
  it('leaves no end that a client could take for one, and the call costs what it costs as a chat completion', async () => {
    const costs: Partial<Record<WireFormat, number>> = {}
    for (const format of ['openai', 'anthropic'] as const) {
      const credential = await stack.issueKey(`killed-gateway-${format}`, { budgets: [BUDGET] })
      const gateway = await stack.addGateway()
      const body = smallBody(STUB, { stream: true, max_tokens: MOST_TOKENS })
      const call: Call = { url: gateway.url, credential, body, format, headers: { 'x-session-id': 'stub:words=2000,gap=50' } }
      const { text, isTorn } = await readUntil(
        call,
        (part) => part.split('\n\n').length > EVENTS,
        () => gateway.kill('SIGKILL'),
      )
      stack.gateways.pop()
      expect(isTorn).toBe(true)
      if (format === 'anthropic') expect(rebuilt(checkMessageStart(text)).ends).toEqual([])
      else expect(text).not.toContain('[DONE]')
      costs[format] = await waitFor('the call to count', async () => (await taken(credential)) || undefined)
    }
    expect(costs.anthropic).toBe(costs.openai)
    expect(costs.anthropic).toBeGreaterThan(EVENTS)
  })
})

const SCHEMA = { type: 'object', properties: { text: { type: 'string', minLength: 1_900, maxLength: 1_999 } }, required: ['text'] }
/** A demand for a call whose arguments are long. */
const DEMANDS: Readonly<Record<WireFormat, object>> = {
  openai: { tools: [{ type: 'function', function: { name: 'write', parameters: SCHEMA } }], tool_choice: 'required' },
  anthropic: { tools: [{ name: 'write', input_schema: SCHEMA }], tool_choice: { type: 'any' } },
}

describe('llama-server killed inside a call of a tool', () => {
  it('is one error event in the block of the call, and what it has written is paid as in a chat completion', async () => {
    for (const format of WIRE_FORMATS) {
      const server = await ModelServerPart.startCaller(lab.folder, lab.address.ip)
      const name = `calling-${format}`
      await serve(name, server.port)
      const credential = await stack.issueKey(`killed-server-${format}`, { budgets: [BUDGET] })
      const body = smallBody(name, { stream: true, max_tokens: 12_000, temperature: 0, ...DEMANDS[format] })
      const { text, isTorn } = await readUntil(
        { url: stack.gateway.url, credential, body, format },
        (part) => part.split('<tool_call>').length > EVENTS,
        () => server.process.kill('SIGKILL'),
      )
      expect(isTorn).toBe(false)
      const marks = text.split('<tool_call>').length - 1
      if (format === 'anthropic') {
        const events = checkMessageStream(text)
        expect(rebuilt(events)).toMatchObject({ ends: ['error'], calls: [{ name: 'write' }] })
        expect(events.at(-2)).toMatchObject({ type: 'content_block_delta', delta: { type: 'input_json_delta' } })
      } else expect(text.split('"error"')).toHaveLength(2)
      const spent = await settled(credential)
      expect([spent > marks, spent < 12_000], `${spent} for ${marks} tokens of the call`).toEqual([true, true])
      await server.stop()
    }
  })
})

describe('a stream that its server cuts without an end', () => {
  it('is one error event, and costs what it costs as a chat completion', async () => {
    const costs: Partial<Record<WireFormat, number>> = {}
    for (const format of WIRE_FORMATS) {
      const credential = await stack.issueKey(`cut-${format}`, { budgets: [BUDGET] })
      const headers = { 'x-session-id': 'stub:words=20,cut=6' }
      const fields = { stream: true, max_tokens: 40 }
      const { status, text } = await ask(lab, stack.gateway.url, { format, credential, model: STUB, headers, fields })
      expect(status).toBe(200)
      if (format === 'anthropic') expect(rebuilt(checkMessageStream(text)).ends).toEqual(['error'])
      costs[format] = await settled(credential)
    }
    expect(costs.anthropic).toBe(costs.openai)
  })
})

describe('a model with a server of Messages and a server of chat completions', () => {
  it.each([
    { dead: 'Native', living: 'Translate' },
    { dead: 'Translate', living: 'Native' },
  ] as const)('answers each call once and charges it once after its $dead server was killed', async ({ dead, living }) => {
    const server = await ModelServerPart.start(lab.folder, lab.address.ip)
    const [mixed, mortal] = [`mixed-${dead.toLowerCase()}`, `mortal-${dead.toLowerCase()}`]
    await stack.exposeService(mortal, server.port)
    await stack.serveModel(mixed, {
      backends: [backendOf(mortal, server.port, dead), backendOf(STUB, stub.port, living)],
      pricing: PRICING,
    })
    await server.process.kill('SIGKILL')
    const credential = await stack.issueKey(`key-of-${mixed}`, { budgets: [BUDGET] })
    const call = async (stream: boolean): Promise<number> => {
      const fields = { stream, max_tokens: 40 }
      const before = (await moneyOf(credential)).used
      const how = { format: 'anthropic', credential, model: mixed, fields, headers: { 'x-session-id': 'stub:words=20' } } as const
      const { status, text } = await ask(lab, stack.gateway.url, how)
      expect(status, text).toBe(200)
      if (stream) expect(rebuilt(checkMessageStream(text)).ends).toEqual(['message_stop'])
      return await waitFor('the call to be settled', async () => {
        const { used, held } = await moneyOf(credential)
        return held === 0 && used > before ? used - before : undefined
      })
    }
    const costs = new Set<number>()
    for (let i = 0; i < 4; i++) for (const stream of [true, false]) costs.add(await call(stream))
    expect([...costs]).toHaveLength(1)
  })
})
