import { describe, expect, test } from 'vitest'
import { constantError, ERROR_ROWS, errorMessage, GatewayError, safeText, sharedError, type ErrorFormat } from './errors.ts'

const FORMATS: readonly ErrorFormat[] = ['openai', 'anthropic']
const EVERYTHING = {
  model: 'm',
  field: 'f',
  reason: 'r',
  state: 'expired',
  allow: 'GET',
  target: 'GET /x',
  tokens: 9,
  maxTokens: 8,
} as const

describe('the catalogue', () => {
  test('uses only the error types that Anthropic documents', () => {
    const known = [
      ...['invalid_request_error', 'authentication_error', 'billing_error', 'permission_error', 'not_found_error'],
      ...['request_too_large', 'rate_limit_error', 'timeout_error', 'api_error', 'overloaded_error'],
    ]
    for (const row of ERROR_ROWS) expect(known).toContain(row.anthropic)
  })

  test('keeps the labels that clients match', () => {
    for (const row of ERROR_ROWS.filter(({ number }) => number <= 4)) {
      expect(row.status).toEqual({ openai: 401, anthropic: 401 })
      expect(row.starts.openai).toMatch(/^Authentication Error: /)
      expect(row.noRetry && row.challenge).toBe(true)
    }
    expect(new GatewayError('modelDenied', { model: 'x' }).message).toBe('key not allowed to access model x')
  })

  test('no final refusal has words that make a client repeat it', () => {
    for (const row of ERROR_ROWS.filter(({ noRetry }) => noRetry)) {
      for (const format of FORMATS) {
        const message = errorMessage(row, { ...EVERYTHING, reason: 'Overloaded; malformed JSON; "code": 429' }, format)
        expect(message).not.toMatch(/overloaded|malformed json|"code": 429/i)
      }
    }
  })

  test('a message has no placeholder left, whatever is known', () => {
    for (const row of ERROR_ROWS) {
      for (const format of FORMATS) {
        expect(errorMessage(row, {}, format)).not.toMatch(/<(id|field|reason|state|allow|target|tokens|max)>|: ?$/)
        expect(errorMessage(row, {}, format)).not.toBe('')
        expect(errorMessage(row, EVERYTHING, format)).not.toMatch(/<(id|field|reason|state|allow|target|tokens|max)>/)
      }
    }
  })
})

describe('GatewayError', () => {
  test('Retry-After is a whole number of seconds from 1 to 60, and only where the row has one', () => {
    expect(new GatewayError('backendOverloaded', {}, { retryAfterMs: 3_600_000 }).retryAfterMs).toBe(60_000)
    expect(new GatewayError('backendOverloaded', {}, { retryAfterMs: 2_100.5 }).retryAfterMs).toBe(2_101)
    expect(new GatewayError('backendOverloaded', {}, { retryAfterMs: 0 }).retryAfterMs).toBe(1)
    expect(new GatewayError('backendOverloaded').retryAfterMs).toBe(1_000)
    expect(new GatewayError('backendError', {}, { retryAfterMs: 5_000 }).retryAfterMs).toBeUndefined()
  })

  test('keeps its cause for the log and out of its message', () => {
    const cause = new Error('ECONNREFUSED 10.0.0.5:8000')
    const error = new GatewayError('backendError', {}, { cause })
    expect(error.cause).toBe(cause)
    expect(error.message).toBe('Backend error')
  })

  test('records no stack, which only an error of the program needs', () => {
    expect(new GatewayError('noBackend').stack).not.toContain('\n')
    expect(new TypeError('a bug').stack).toContain('errors.test.ts')
  })

  test('an error that is sent many times is made once, and only such errors have bytes that are kept', () => {
    expect(sharedError('overloaded')).toBe(sharedError('overloaded'))
    expect(sharedError('overloaded').isConstant).toBe(true)
    const revoked = constantError('inactiveKey', { state: 'revoked', reason: 'that is final' })
    expect([revoked.isConstant, revoked.message]).toEqual([true, 'Authentication Error: API key revoked; that is final'])
    expect(new GatewayError('modelDenied', { model: 'x' }).isConstant).toBe(false)
  })
})

describe('safeText', () => {
  test('E14 what looks like a key is never echoed', () => {
    expect(safeText(`model sk-hg1${'a'.repeat(59)}!`)).toBe('model sk-…')
    expect(new GatewayError('modelDenied', { model: `sk-hg1${'a'.repeat(59)}` }).message).toBe('key not allowed to access model sk-…')
    expect(safeText('sk-hg1abc')).toBe('sk-…')
    for (const chosen of ['sk-1234', 'sk-my.own/key!#', 'sk-a']) expect(safeText(`a ${chosen} b`), chosen).toBe('a sk-… b')
    expect(safeText('task-classification-large')).toBe('task-classification-large')
  })

  test('drops control and direction characters and bounds the length without halving a character', () => {
    expect(safeText('a\r\nb\u0000c\u202Ed')).toBe('abcd')
    expect(Array.from(safeText('🚦'.repeat(200)))).toHaveLength(128)
    expect(safeText('x'.repeat(10_000))).toHaveLength(128)
  })
})
