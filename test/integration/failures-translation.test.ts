/** Programs that die in a translated stream: what the client reads, and what the call costs. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startStubModel, type StubModel } from '../../examples/stub-model/stub-model.ts'
import { callHeaders, PATHS, smallBody, type WireFormat } from '../support/ask.ts'
import { openLab } from '../support/lab.ts'
import { messageEvents } from '../support/message-grammar.ts'
import { UPSTREAM_MODEL } from '../support/model-server-part.ts'
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

async function serve(name: string, port: number): Promise<void> {
  await stack.exposeService(name, port)
  const backend = { name: 'main', service: { name, port }, upstreamModel: UPSTREAM_MODEL, engine: 'LlamaCpp', messages: 'Translate' }
  await stack.serveModel(name, { backends: [backend], pricing: PRICING })
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

/** What a key can no longer spend: what it has spent, and what a killed process still holds. */
async function taken(credential: string): Promise<number> {
  const answer = await fetch(`${stack.gateway.url}/v1/key`, { headers: callHeaders(credential) })
  const { budgets } = JSON.parse(lab.record(await answer.text())) as {
    budgets: readonly { readonly used: string; readonly held: string }[]
  }
  return Math.round(1_000_000 * (Number(budgets[0]?.used) + Number(budgets[0]?.held)))
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
      if (format === 'anthropic') {
        const whole = text.slice(0, text.lastIndexOf('\n\n') + 2)
        expect(rebuilt(messageEvents(whole)).ends).toEqual([])
      } else expect(text).not.toContain('[DONE]')
      costs[format] = await waitFor('the call to count', async () => (await taken(credential)) || undefined)
    }
    expect(costs.anthropic).toBe(costs.openai)
    expect(costs.anthropic).toBeGreaterThan(EVENTS)
  })
})
