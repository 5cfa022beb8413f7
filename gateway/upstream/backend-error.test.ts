import { describe, expect, it } from 'vitest'
import { errorMessage, errorParam } from '../errors.ts'
import { backendFailure, cleanReason, messageIn, statusIn } from './backend-error.ts'

const NAMES = { askedName: 'fast', upstreamModel: 'org/Llama-3' }
const rowOf = (status: number, body?: unknown, retryAfter?: string): readonly [string, boolean, number | undefined] => {
  const { error, isRetryable } = backendFailure({ status, body, retryAfter }, NAMES)
  return [error.row.id, isRetryable, error.retryAfterMs && error.retryAfterMs / 1_000]
}

describe('an unsuccessful answer', () => {
  it.each([
    [400, 'backendRejected', false],
    [422, 'backendRejected', false],
    [401, 'backendAuth', false],
    [403, 'backendAuth', false],
    [404, 'backendError', false],
    [413, 'backendTooLarge', false],
    [429, 'backendOverloaded', true],
    [503, 'backendOverloaded', true],
    [529, 'backendOverloaded', true],
    [500, 'backendError', false],
    [502, 'backendError', true],
    [504, 'backendError', true],
    [302, 'backendError', false],
    [418, 'backendError', false],
  ])('with %d becomes %s', (status, row, isRetryable) => {
    expect(rowOf(status).slice(0, 2)).toEqual([row, isRetryable])
  })

  it('404 about the model is row 39 with the name asked for: the gateway knows the model, its server does not', () => {
    const { error } = backendFailure({ status: 404, body: { error: { message: 'The model `org/Llama-3` does not exist.' } } }, NAMES)
    expect(errorMessage(error.row, error.params, 'openai')).toBe(
      'model fast is not available on its backend; ask the platform team to check upstreamModel in its ServedModel',
    )
    expect(error.cause, 'only the log names the upstream model').toMatch(/; it was asked for "org\/Llama-3": check upstreamModel/)
  })

  it.each([400, 413, 500])('an overflow is row 30 whatever the status: %d', (status) => {
    const { error } = backendFailure({ status, body: { error: { message: 'prompt is too long: 9 tokens > 8 maximum' } } }, NAMES)
    expect(errorMessage(error.row, error.params, 'anthropic')).toBe('prompt is too long: 9 tokens > 8 maximum')
    expect(errorMessage(error.row, error.params, 'openai')).toBe("This model's maximum context length is 8 tokens")
  })

  it('Retry-After passes as seconds, as a date, and up to 60', () => {
    expect([rowOf(429, {}, '7')[2], rowOf(503, {}, '3600')[2], rowOf(503, {}, '0.2')[2], rowOf(503, {}, 'soon')[2], rowOf(503)[2]]).toEqual(
      [7, 60, 1, 1, 1],
    )
    expect(rowOf(503, {}, new Date(Date.now() + 20_000).toUTCString())[2]).toBeGreaterThanOrEqual(19)
  })

  it('keeps the parameter that the backend blames', () => {
    const { error } = backendFailure({ status: 400, body: { error: { message: 'bad', param: 'top_k' } } }, NAMES)
    expect(errorParam(error.row, error.params)).toBe('top_k')
  })

  it('without a message is rejected in our words', () => {
    const { error } = backendFailure({ status: 400, body: undefined }, NAMES)
    expect(errorMessage(error.row, error.params, 'openai')).toBe('The backend rejected the request')
  })
})

describe('the text of a backend', () => {
  it.each([
    ['connect to 10.0.0.7:8000 failed', 'connect to [host] failed'],
    ['see http://llama.shop.svc:8000/v1/x?y for more', 'see [host] for more'],
    ['host llama-0.llama.shop.svc.cluster.local is down', 'host [host] is down'],
    ['at [fd00::1:2:3]:8000 or fe80::a:b:c:d', 'at [host] or [host]'],
    ['at localhost:8000 and gpu-1.example.com:443', 'at [host] and [host]'],
    ['<p>bad <b>value</b></p>', 'bad value'],
    ['model org/Llama-3 has no tools', 'model fast has no tools'],
    ['value must be < 2 and > 0', 'value must be < 2 and > 0'],
    ['top_p 0.95 is fine, version 1.2.3 too', 'top_p 0.95 is fine, version 1.2.3 too'],
    ['at 12:30:15 it failed', 'at 12:30:15 it failed'],
  ])('%j reaches the client as %j', (text, clean) => {
    expect(cleanReason(text, NAMES)).toBe(clean)
  })

  it('is at most 2 KiB and never cut inside a character', () => {
    const clean = cleanReason('é'.repeat(5000), NAMES) ?? ''
    expect(Buffer.byteLength(clean)).toBeLessThanOrEqual(2048)
    expect(clean).not.toContain('\uFFFD')
  })

  it('that contains only tags is dropped', () => {
    expect(cleanReason('<br/>', NAMES)).toBeUndefined()
  })

  it('cannot block the process', () => {
    for (const hostile of ['a.', 'a-', '<a', '1.', ':', 'a:/', '[', 'a.svc']) cleanReason(hostile.repeat(500_000), NAMES)
  })

  it('is unpacked from errors inside errors, but not for ever', () => {
    expect(messageIn({ error: { message: JSON.stringify({ detail: [{ msg: 'deep' }] }) } })).toBe('deep')
    expect(messageIn({ error: { message: '{not json' } })).toBe('{not json')
    let text = 'bottom'
    for (let i = 0; i < 9; i++) text = JSON.stringify({ error: text })
    expect(messageIn(JSON.parse(text))).toBeUndefined()
  })
})

it('the status of an error event is the status in the event, otherwise 502', () => {
  const named = [
    { error: { code: 400 } },
    { code: '503' },
    { error: { http_status_code: 429 } },
    { error: { type: 'overloaded_error' } },
    { error: 'x' },
    { error: { code: 200 } },
    undefined,
  ]
  expect(named.map(statusIn)).toEqual([400, 503, 429, 529, 502, 502, 502])
})
