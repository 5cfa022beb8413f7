import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, test, vi } from 'vitest'
import { unsentExchange } from '../../test/support/unsent-exchange.ts'
import { GatewayError, sharedError } from '../errors.ts'
import { createAccessLog, type AccessLogMode } from './access-log.ts'
import type { Exchange } from './exchange.ts'

interface Line {
  readonly level: string
  readonly fields: Record<string, unknown>
  readonly message: string
}

/** A log that collects its lines. */
function collected() {
  const lines: Line[] = []
  const at = (level: string) => (fields: Record<string, unknown> | string, message?: string) =>
    void lines.push({ level, fields: typeof fields === 'string' ? {} : fields, message: message ?? '' })
  return { lines, log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } }
}

function exchanged(change: (exchange: Exchange) => void): Exchange {
  const request = new IncomingMessage(new Socket())
  request.method = 'POST'
  request.headers = { authorization: 'Bearer sk-hg1secret', 'x-request-id': 'theirs\n' }
  const exchange = unsentExchange(request)
  change(exchange)
  return exchange
}

/** Logs one exchange and returns the lines. */
function logged(mode: AccessLogMode, change: (exchange: Exchange) => void, random = 0.5): Line[] {
  const { lines, log } = collected()
  createAccessLog(mode, log, () => random)(exchanged(change))
  return lines
}

const refuse = (exchange: Exchange): void => void (exchange.error = sharedError('unknownKey'))
const fail = (exchange: Exchange): void => {
  exchange.backend = 'one'
  exchange.error = new GatewayError('backendError', {}, { cause: Object.assign(new Error('connect failed'), { code: 'ECONNREFUSED' }) })
}

describe('access log', () => {
  test.each([
    ['errors', 0, 1, 0],
    ['sample', 0, 1, 0],
    ['all', 1, 1, 1],
  ] as const)('ACCESS_LOG=%s writes %i lines for a refusal, %i for a failure, %i for a success', (mode, refusals, failures, successes) => {
    expect(logged(mode, refuse)).toHaveLength(refusals)
    expect(logged(mode, fail)).toHaveLength(failures)
    expect(logged(mode, () => undefined)).toHaveLength(successes)
  })

  test('the sample is one in a hundred', () => {
    expect(logged('sample', () => undefined, 0.009)).toHaveLength(1)
    expect(logged('sample', () => undefined, 0.011)).toHaveLength(0)
  })

  test('a line holds the request id, keyID, model, row, backend and duration, and no credential', () => {
    const [line] = logged('errors', (exchange) => {
      fail(exchange)
      exchange.keyID = 'abc'
      exchange.model = 'llama'
      exchange.route = '/v1/messages'
    })
    expect(line?.fields).toMatchObject({
      ...{ requestId: expect.stringMatching(/^req_/), inboundRequestId: 'theirs', method: 'POST', route: '/v1/messages', keyID: 'abc' },
      ...{ model: 'llama', row: 32, error: 'backendError', backend: 'one', durationMs: expect.any(Number) },
      cause: { name: 'Error', code: 'ECONNREFUSED', message: 'connect failed' },
    })
    expect(JSON.stringify(line)).not.toContain('sk-')
  })

  test('the line contains the answer of a backend, which the client does not get', () => {
    const failure = new GatewayError('backendError', {}, { cause: 'backend answered 500: image input is not supported' })
    const [line] = logged('errors', (exchange) => void (exchange.error = failure))
    expect(line?.fields['cause']).toEqual({ message: 'backend answered 500: image input is not supported' })
  })

  test('the line of a broken stream has the words of the server within the errors of the gateway, and no credential of them', () => {
    const words = `backend answered 500: no credit for sk-hg1${'a'.repeat(59)}`
    const failure = new GatewayError('backendError', {}, { cause: words })
    const [line] = logged('errors', (exchange) => void (exchange.error = new GatewayError('streamBroken', {}, { cause: failure })))
    expect(line?.fields['cause']).toMatchObject({ name: 'backendError', cause: { message: 'backend answered 500: no credit for sk-…' } })
  })

  test('the line of a chain of errors without an end has an end', () => {
    const first = new GatewayError('backendError')
    Object.assign(first, { cause: first })
    const [line] = logged('errors', (exchange) => void (exchange.error = first))
    expect(JSON.stringify(line?.fields['cause']).match(/"backendError"/g)).toHaveLength(4)
  })

  test('an answer that breaks off because its key was suspended is a line with the reason, a refusal of such a key is none', () => {
    const suspended = (exchange: Exchange): void => void (exchange.error = new GatewayError('inactiveKey', { state: 'suspended' }))
    expect(logged('errors', suspended)).toEqual([])
    const [line] = logged('errors', (exchange) => {
      exchange.response.writeHead(200)
      suspended(exchange)
    })
    expect(line).toMatchObject({ level: 'warn', fields: { row: 4, status: 200, cause: { message: expect.stringContaining('suspended') } } })
  })

  test('the line of an unknown path says which one it was', () => {
    const error = new GatewayError('unknownPath', { target: 'POST /chat/completions', reason: 'x' })
    expect(logged('all', (exchange) => void (exchange.error = error))[0]?.fields['target']).toBe('POST /chat/completions')
  })

  test('an invalid model name is logged without any text that resembles a key', () => {
    const [line] = logged('all', (exchange) => void (exchange.askedModel = `sk-hg1${'a'.repeat(59)}`))
    expect(line?.fields['model']).toBe('sk-…')
  })

  test('further fields are in lines of requests and of failures', () => {
    const { lines, log } = collected()
    const logExchange = createAccessLog('all', log, Math.random, ({ requestId }) => ({ apiKey: `of ${requestId}` }))
    for (const change of [refuse, fail]) {
      const exchange = exchanged(change)
      logExchange(exchange)
      expect(lines.at(-1)?.fields['apiKey']).toBe(`of ${exchange.requestId}`)
    }
  })

  test('a bug is logged as an error with its stack', () => {
    const bug = new GatewayError('internalError', {}, { cause: new TypeError('boom') })
    const [line] = logged('errors', (exchange) => void (exchange.error = bug))
    expect(line?.level).toBe('error')
    expect(line?.fields['cause']).toMatchObject({ name: 'TypeError', stack: expect.stringContaining('access-log.test') })
  })

  test('of the same failure a thousand times in a second ten lines are written, and a later one names the number of omitted lines', () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const { lines, log } = collected()
    const logExchange = createAccessLog('errors', log)
    const failing = (): Exchange => exchanged((exchange) => void (exchange.error = sharedError('notReady')))
    for (let i = 0; i < 1_000; i++) logExchange(failing())
    expect(lines).toHaveLength(10)
    vi.advanceTimersByTime(1_000)
    logExchange(failing())
    expect(lines.at(-1)?.fields['omitted']).toBe(990)
    const logEvery = createAccessLog('all', log)
    for (let i = 0; i < 100; i++) logEvery(failing())
    expect(lines).toHaveLength(111) // `all` leaves nothing out
    vi.useRealTimers()
  })

  test('a backend that refuses a request of the client is not an error of the gateway', () => {
    expect(logged('errors', (exchange) => void (exchange.error = new GatewayError('backendRejected', { reason: 'no' })))).toHaveLength(0)
  })
})
