/** Model servers that stop, restart and move, and gateways that get SIGTERM during streams. */
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startStubModel, type StubModel, type StubModelOptions } from '../../examples/stub-model/stub-model.ts'
import { ask, callHeaders, expectRow, PATHS, smallBody, WIRE_FORMATS, type WireFormat } from '../support/ask.ts'
import { freePort } from '../support/free-port.ts'
import { openLab } from '../support/lab.ts'
import { ModelServerPart } from '../support/model-server-part.ts'
import type { Program } from '../support/program.ts'
import { NO_BACKEND, NOT_READY, overloaded, TIMED_OUT } from '../support/rows.ts'
import type { Stack } from '../support/stack.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

/** Bridge addresses that no gateway uses. */
const HOSTS = ['10.250.7.31', '10.250.7.32'] as const

const lab = openLab()
let stack: Stack
let key = ''
const stubs: StubModel[] = []

beforeAll(async () => {
  stack = await lab.stack({ gateways: 1, gatewayEnv: { DRAIN_SECONDS: '4' } })
  await stack.serveModel('real')
  key = await stack.issueKey('key')
})
afterEach(async () => {
  await Promise.all(stubs.splice(0).map((stub) => stub.close()))
})

async function startStub(options: StubModelOptions): Promise<StubModel> {
  const stub = await startStubModel(options)
  stubs.push(stub)
  return stub
}

async function serve(name: string, port: number, addresses: readonly string[], fields: object = {}): Promise<void> {
  await stack.exposeService(name, port, { addresses })
  const backend = { name: 'only', service: { name, port }, upstreamModel: 'tiny', messages: 'Native' }
  const spec = { backends: [backend], ...fields }
  await stack.apply('ServedModel', name, spec)
}

describe('the model server', () => {
  it.each(WIRE_FORMATS)('E8 stopped: 503 with Retry-After (%s); back: it answers at once; the conditions follow', async (format) => {
    const name = `mortal-${format}`
    const server = await ModelServerPart.start(lab.folder, lab.address.ip)
    const answer = () => ask(lab, stack.gateway.url, { format, credential: key, model: name })
    try {
      await serve(name, server.port, [lab.address.ip])
      await stack.untilCondition('ServedModel', name, 'Ready')
      await stack.untilCondition('ServedModel', name, 'BackendsHealthy', { reason: 'Healthy' })
      expect((await answer()).status).toBe(200)

      await server.process.kill('SIGKILL')
      const message = expectRow(await answer(), format, NO_BACKEND)
      expect(message).toBe(`No backend available for model ${name}`)
      await stack.untilCondition('ServedModel', name, 'BackendsHealthy', { status: 'False', reason: 'Unreachable' })
      await stack.untilCondition('ServedModel', name, 'Ready', { status: 'False', reason: 'NoEndpoints' })

      await server.start()
      expect((await answer()).status).toBe(200)
      await stack.untilCondition('ServedModel', name, 'BackendsHealthy', { reason: 'Healthy' })
      await stack.untilCondition('ServedModel', name, 'Ready')
    } finally {
      await server.stop()
    }
  })

  it('E8 without an endpoint in its slice: 503, NoEndpoints; the next endpoint serves', async () => {
    const port = await freePort()
    await startStub({ host: HOSTS[0], port })
    await serve('scaled', port, [])
    await stack.untilCondition('ServedModel', 'scaled', 'BackendsHealthy', { status: 'False', reason: 'NoEndpoints' })
    await stack.untilCondition('ServedModel', 'scaled', 'Ready', { status: 'False', reason: 'NoEndpoints' })
    for (const format of WIRE_FORMATS)
      expectRow(await ask(lab, stack.gateway.url, { format, credential: key, model: 'scaled' }), format, NO_BACKEND)
    await stack.exposeService('scaled', port, { addresses: [HOSTS[0]] })
    await stack.untilCondition('ServedModel', 'scaled', 'Ready')
    for (const format of WIRE_FORMATS)
      expect((await ask(lab, stack.gateway.url, { format, credential: key, model: 'scaled' })).status).toBe(200)
  })

  it('that moves to another address gets its calls there, and the old address gets none', async () => {
    const port = await freePort()
    const seen = HOSTS.map(() => 0)
    await Promise.all(HOSTS.map((host, i) => startStub({ host, port, onRequest: () => (seen[i] = (seen[i] ?? 0) + 1) })))
    await serve('moving', port, [HOSTS[0]])
    await stack.untilCondition('ServedModel', 'moving', 'Ready')
    const call = async (): Promise<void> =>
      expect((await ask(lab, stack.gateway.url, { credential: key, model: 'moving' })).status).toBe(200)
    await call()
    expect(seen).toEqual([1, 0])
    await stack.exposeService('moving', port, { addresses: HOSTS })
    await waitFor('the second address to be called', async () => (await call(), (seen[1] ?? 0) > 0))
    await stack.exposeService('moving', port, { addresses: [HOSTS[1]] })
    await waitFor('the first address to be left alone', async () => {
      const before = seen[0]
      for (let i = 0; i < 40; i++) await call() // endpoints share the calls evenly: 40 calls in a row to the other endpoint cannot be chance
      return seen[0] === before
    })
    await stack.untilCondition('ServedModel', 'moving', 'Ready')
    const [before = 0] = seen
    for (let i = 0; i < 8; i++) await call()
    expect(seen[0]).toBe(before)
  })

  it('E9 that is silent: 504, plain and streamed, and the gateway closes the connection', async () => {
    const port = await freePort()
    const ended: Promise<string>[] = []
    await startStub({ host: HOSTS[0], port, onRequest: (request) => ended.push(request.ended) })
    await serve('silent', port, [HOSTS[0]], { timeouts: { firstByteSeconds: 1 } })
    await stack.untilCondition('ServedModel', 'silent', 'Ready')
    const headers = { 'x-session-id': 'stub:delay=600000' }
    const calls = WIRE_FORMATS.flatMap((format) => [false, true].map((isStream) => ({ format, fields: { stream: isStream } })))
    const answers = calls.map((call) => ask(lab, stack.gateway.url, { ...call, credential: key, model: 'silent', headers }))
    for (const [i, answer] of (await Promise.all(answers)).entries()) expectRow(answer, calls[i]?.format ?? 'openai', TIMED_OUT)
    expect(await Promise.all(ended)).toEqual(calls.map(() => 'aborted'))
  })

  it.each(WIRE_FORMATS)('E10 that is overloaded: 503 or 529, never a 429 of the gateway: %s', async (format) => {
    const port = await freePort()
    const name = `busy-${format}`
    await startStub({ host: HOSTS[0], port })
    await serve(name, port, [HOSTS[0]])
    await stack.untilCondition('ServedModel', name, 'Ready')
    const headers = { 'x-session-id': 'stub:status=429,retry-after=7' }
    const row = overloaded(format === 'openai' ? 503 : 529, 7)
    expectRow(await ask(lab, stack.gateway.url, { format, credential: key, model: name, headers }), format, row)
  })
})

/** Stands for the text of a stream that was answered with NOT_READY. */
const REFUSED = 'refused'

interface Streaming {
  readonly format: WireFormat
  readonly begun: Promise<unknown>
  readonly text: Promise<string>
}

function stream(gateway: Program, format: WireFormat, model: string, directives = ''): Streaming {
  const begun = Promise.withResolvers<void>()
  const read = async (): Promise<string> => {
    const headers = { ...callHeaders(key), 'x-session-id': directives }
    const body = JSON.stringify(smallBody(model, { stream: true, max_tokens: 4_000 }))
    const answer = await fetch(gateway.url + PATHS[format], { method: 'POST', headers, body })
    if (answer.status === NOT_READY.status) {
      expectRow({ status: answer.status, headers: answer.headers, text: lab.record(await answer.text()) }, format, NOT_READY)
      return REFUSED
    }
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
    let text = ''
    for await (const chunk of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
      begun.resolve()
      text += Buffer.from(chunk).toString()
    }
    return lab.record(text)
  }
  const text = read()
  text.then(() => begun.resolve(), begun.reject)
  begun.promise.catch(() => undefined) // the caller that awaits the text gets the error
  return { format, begun: begun.promise, text }
}

/** @returns how a stream ended: complete, with exactly one error frame of its dialect, or torn */
function ending(format: WireFormat, text: string): 'whole' | 'error frame' | 'torn' {
  const events = text.split('\n\n').filter((event) => event !== '' && !event.startsWith(':'))
  const last = format === 'openai' ? 'data: [DONE]' : 'event: message_stop\ndata: {"type":"message_stop"}'
  const frames = events.filter((event) => event.startsWith(format === 'openai' ? 'data: {"error":' : 'event: error\n'))
  if (frames.length === 0) return events.at(-1) === last ? 'whole' : 'torn'
  const isLast = events.at(-1) === frames[0] || (format === 'openai' && events.at(-1) === last && events.at(-2) === frames[0])
  const hasStop = text.includes('message_stop')
  return frames.length === 1 && isLast && !hasStop ? 'error frame' : 'torn'
}

describe('S11 SIGTERM during 100 streams', () => {
  it('short streams end complete, long streams get one error frame, new calls are refused, and the exit code is 0', async () => {
    const port = await freePort()
    await startStub({ host: HOSTS[0], port })
    await serve('streaming', port, [HOSTS[0]])
    await stack.untilCondition('ServedModel', 'streaming', 'Ready')
    const gateway = await stack.addGateway()
    const short = formats(30).map((format) => stream(gateway, format, 'streaming', 'stub:words=10,gap=50'))
    const long = formats(60).map((format) => stream(gateway, format, 'streaming', 'stub:words=2000,gap=100'))
    const real = formats(10).map((format) => stream(gateway, format, 'real'))
    await Promise.all([...short, ...long].map(({ begun }) => begun))
    await Promise.any(real.map(({ begun }) => begun))
    const ended = gateway.kill('SIGTERM')
    await eventually(async () => expect(await gateway.isReady()).toBe(false))
    await expectNothingNew(gateway)

    expect(await endings(short)).toEqual({ whole: 30 })
    const { torn, refused = 0 } = await endings(real)
    expect(torn).toBeUndefined()
    expect(refused).toBeLessThanOrEqual(6) // the model server has four slots; a stream that still waits for a slot at the deadline has not begun
    expect(await endings(long)).toEqual({ 'error frame': 60 })
    expect(await ended).toEqual({ code: 0, signal: null })
    stack.gateways.pop()
    expect((await ask(lab, stack.gateway.url, { credential: key, model: 'real' })).status).toBe(200)
  })
})

function formats(count: number): WireFormat[] {
  return Array.from({ length: count }, (_, i) => WIRE_FORMATS[i % 2] ?? 'openai')
}

async function endings(streams: readonly Streaming[]): Promise<Record<string, number>> {
  const seen: Record<string, number> = {}
  for (const { format, text } of streams) {
    const whole = await text
    const how = whole === REFUSED ? REFUSED : ending(format, whole)
    seen[how] = (seen[how] ?? 0) + 1
  }
  return seen
}

async function expectNothingNew(gateway: Program): Promise<void> {
  for (const format of WIRE_FORMATS) expectRow(await ask(lab, gateway.url, { format, credential: key, model: 'real' }), format, NOT_READY)
}
