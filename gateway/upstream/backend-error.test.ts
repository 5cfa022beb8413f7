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
    [402, 'backendAuth', false],
    [407, 'backendAuth', false],
    [404, 'backendRejected', false],
    [405, 'backendRejected', false],
    [409, 'backendRejected', false],
    [415, 'backendRejected', false],
    [418, 'backendRejected', false],
    [431, 'backendRejected', false],
    [408, 'backendTimeout', false],
    [424, 'backendError', false],
    [425, 'backendOverloaded', true],
    [499, 'backendError', false],
    [413, 'backendTooLarge', false],
    [429, 'backendOverloaded', true],
    [503, 'backendOverloaded', true],
    [529, 'backendOverloaded', true],
    [500, 'backendError', false],
    [502, 'backendError', true],
    [504, 'backendError', true],
    [302, 'backendError', false],
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
    expect(errorMessage(error.row, error.params, 'openai')).toBe(
      "This model's maximum context length is 8 tokens. However, you requested 9 tokens",
    )
  })

  it.each([
    ['the request exceeds the available context size', "This model's maximum context length is exceeded"],
    [
      "This model's maximum context length is 4096 tokens and your request has 30 input tokens",
      "This model's maximum context length is 4096 tokens",
    ],
    ["This model's maximum context length is 4096 tokens.", "This model's maximum context length is 4096 tokens"],
  ])('an overflow names no length of the prompt that the server has not told, or that would fit: %s', (text, message) => {
    const { error } = backendFailure({ status: 400, body: { error: { message: text } } }, NAMES)
    expect(errorMessage(error.row, error.params, 'openai')).toBe(message)
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

  it.each([
    [500, { error: 'the model broke' }, 'Backend error: the model broke'],
    [424, { error: 'Request failed during generation', error_type: 'generation' }, 'Backend error: Request failed during generation'],
    [500, undefined, 'Backend error: it reported a failure'],
    [500, { error: '<!doctype html><html><body>nginx</body></html>' }, 'Backend error: it reported a failure'],
    [500, { detail: 'Traceback (most recent call last):\n  File "/srv/a.py", line 3' }, 'Backend error: it reported a failure'],
    [404, { detail: 'Not Found' }, 'The backend answered 404: Not Found'],
    [409, undefined, 'The backend answered 409'],
    [400, { error: 'top_k is bad' }, 'top_k is bad'],
    [422, { detail: [{ msg: 'field required' }] }, 'field required'],
  ])('%d with %j tells the client: %s', (status, body, message) => {
    const { error } = backendFailure({ status, body }, NAMES)
    expect(errorMessage(error.row, error.params, 'openai')).toBe(message)
  })

  it.each([
    [500, 'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj'],
    [500, 'audio input is not supported - hint: if this is unexpected, you may need to provide the mmproj'],
    [500, 'this model is missing data required for image input'],
    [400, 'org/Llama-3 is not a multimodal model'],
    [400, 'At most 0 image(s) may be provided in one prompt.'],
  ])(
    'X17: %d for an image or a sound that the model cannot take is a 400 that names the model, and no failure of the server: %s',
    (status, text) => {
      const { error, isRetryable, isBackendFailure } = backendFailure({ status, body: { error: { message: text, code: status } } }, NAMES)
      expect([error.row.id, isRetryable, isBackendFailure]).toEqual(['backendRejected', false, false])
      const words = text.replace(NAMES.upstreamModel, NAMES.askedName)
      expect(errorMessage(error.row, error.params, 'anthropic')).toBe(`model fast does not take this input: ${words}`)
    },
  )

  it('leaves a stack to the log', () => {
    const body = { error: 'boom\n    at run (/srv/server.js:10:5)' }
    const { error } = backendFailure({ status: 500, body }, NAMES)
    expect(errorMessage(error.row, error.params, 'openai')).toBe('Backend error: boom')
    expect(error.cause).toBe('backend answered 500: boom at run (/srv/server.js:10:5)')
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
    ['GGML_ASSERT(n > 0) failed in /src/ggml/ggml.c:1234.', 'GGML_ASSERT(n > 0) failed in [path].'],
    ['cannot open "/models/llama/model.gguf" or C:\\models\\x, see src/main.cpp:9', 'cannot open "[path]" or [path], see [path]'],
    ['first line\nsecond line', 'first line second line'],
    [
      'use POST /v1/embeddings with application/json, and/or org/Mistral',
      'use POST /v1/embeddings with application/json, and/or org/Mistral',
    ],
    ['CUDA error\nTraceback (most recent call last):\n  File "a.py", line 1\nValueError: x', 'CUDA error'],
    ['Error: x\n    at run (/srv/a.js:10:5)\n    at node:internal/main:3:1', 'Error: x'],
    ['java.lang.Error: y\n\tat com.shop.Model.run(Model.java:12)', 'java.lang.Error: y'],
    ['panic: z\n\ngoroutine 1 [running]:\nmain.main()', 'panic: z'],
    ['upstream api.provider.example refused, pool gpu-a is full', 'upstream [host] refused, pool [backend] is full'],
  ])('%j reaches the client as %j', (text, clean) => {
    expect(cleanReason(text, { ...NAMES, backend: 'gpu-a', host: 'api.provider.example' })).toBe(clean)
  })

  it('is at most 2 KiB and never cut inside a character', () => {
    const clean = cleanReason('é'.repeat(5000), NAMES) ?? ''
    expect(Buffer.byteLength(clean)).toBeLessThanOrEqual(2048)
    expect(clean).not.toContain('\uFFFD')
  })

  it.each(['<br/>', '<!DOCTYPE html>\n<h1>502 Bad Gateway</h1>', 'Error <html><title>x</title></html>', '\n  at f (/a/b.js:1:2)'])(
    'that is nothing but tags, a page or a stack is dropped: %j',
    (text) => {
      expect(cleanReason(text, NAMES)).toBeUndefined()
    },
  )

  it('cannot block the process', () => {
    const parts = ['a.', 'a-', '<a', '1.', ':', 'a:/', '[', 'a.svc', '/a', 'at a', 'at (', '\n at', 'File "', ':1', 'goroutine 1', '\n#1 ']
    for (const hostile of parts) cleanReason(hostile.repeat(500_000), NAMES)
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
