import { hash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { secret } from '../../../test/support/objects.ts'
import { readCredential } from './backend-credential.ts'

const REF = { namespace: 'shop', name: 'upstream', key: 'token' }
const LABEL = { 'headgate.dev/upstream-auth': 'true' }
const read = (entries: Record<string, string>, metadata: Parameters<typeof secret>[2] = { labels: LABEL }) =>
  readCredential(REF, secret('upstream', entries, metadata))

describe('readCredential', () => {
  test('gives the value without the line end, its check sum, and the origins that the Secret allows', () => {
    const annotations = { 'headgate.dev/upstream-hosts': 'api.openai.com' }
    expect(read({ token: 'hush\n' }, { labels: LABEL, annotations })).toEqual({
      state: 'Found',
      value: 'hush',
      sum: hash('sha256', 'hush', 'hex'),
      origins: new Set(['https://api.openai.com']),
    })
  })

  test('a credential of 2048 characters is accepted, and a longer one is not', () => {
    expect(read({ token: 'x'.repeat(2048) }).state).toBe('Found')
    expect(read({ token: 'x'.repeat(2049) })).toMatchObject({ state: 'NotFound', problem: expect.stringContaining('at most 2048') })
  })

  test.each<[string, () => ReturnType<typeof read>, string]>([
    ['without the Secret', () => readCredential(REF, undefined), 'Secret upstream does not exist in this namespace'],
    ['without the label', () => read({ token: 'x' }, {}), 'lacks the label headgate.dev/upstream-auth: "true"'],
    ['with another value of the label', () => read({ token: 'x' }, { labels: { 'headgate.dev/upstream-auth': 'yes' } }), 'lacks the label'],
    ['without the data key', () => read({ other: 'x' }), 'has no data key "token"'],
    ['with a value of two lines', () => read({ token: 'a\nb' }), 'is not one line'],
    ['with an empty value', () => read({ token: ' ' }), 'is not one line'],
  ])('%s there is no credential, and the problem says why', (_what, result, problem) => {
    expect(result()).toMatchObject({ state: 'NotFound', problem: expect.stringContaining(problem) })
  })

  test('no problem quotes a value', () => {
    for (const value of ['top secret', 'top\nsecret']) expect(JSON.stringify(read({ token: value }))).not.toContain('secret"')
    expect(JSON.stringify(read({ token: 'hush hush' }))).not.toContain('hush')
  })
})
