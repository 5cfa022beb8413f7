import { describe, expect, test } from 'vitest'
import { errorMessage } from '../errors.ts'
import { mintCredential } from '#contract/values/credential.ts'
import { authenticate, type AuthDeps, type RequestHeaders } from './authenticate.ts'

const { credential } = mintCredential()
const typo = credential.slice(0, 30) + (credential[30] === 'x' ? 'y' : 'x') + credential.slice(31)
const QUOTED = /in quotes; remove/

function asked(headers: RequestHeaders['headers'], apiKeyHeader = true) {
  const projection = { loaded: true, unreadForMs: 0, lacksKeys: false }
  const deps: AuthDeps = {
    keys: { find: () => undefined, current: () => undefined, isClaimed: () => false, tombstone: () => undefined },
    accounts: { link: (caller) => caller },
    projection,
    now: () => 0,
    apiKeyHeader,
  }
  const refusal = authenticate({ headers, rawHeaders: [] }, deps)
  if (!('row' in refusal)) throw new Error('was admitted')
  return { refusal, number: refusal.row.number, message: errorMessage(refusal.row, refusal.params, 'anthropic') }
}

describe('a request without a key says why, and what to do', () => {
  test.each([
    [{}, 1, 'no API key was sent; send it as "Authorization: Bearer <key>" or "x-api-key: <key>"'],
    [{ authorization: '' }, 1, 'no API key was sent; the Authorization header is empty; send it as "Authorization: Bearer <key>"'],
    [{ authorization: 'Bearer' }, 1, 'no API key was sent; nothing follows "Bearer"; check that the variable'],
    [{ 'x-api-key': '' }, 1, 'no API key was sent; the x-api-key header is empty; check that the variable'],
    [{ authorization: credential }, 2, 'malformed API key; the Authorization header lacks the word Bearer; write "Bearer <key>"'],
    [{ authorization: `basic ${credential}` }, 2, 'malformed API key; the Authorization header has the scheme Basic; write "Bearer <key>"'],
    [{ authorization: `${credential} x` }, 2, 'malformed API key; the Authorization header has a scheme other than Bearer'],
    [{ authorization: `Bearer  ${credential}` }, 2, 'malformed API key; write exactly one space between "Bearer" and the key'],
  ] as const)('%#', (headers, row, message) => {
    const refused = asked(headers)
    expect(refused.number).toBe(row)
    expect(refused.message.startsWith(`Authentication Error: ${message}`), refused.message).toBe(true)
  })

  test('x-api-key is advised only where the gateway takes it', () => {
    expect(asked({}, false).message).not.toContain('x-api-key')
    expect(asked({ 'x-api-key': credential }, false).message).toContain('does not take x-api-key; send it as "Authorization: Bearer <key>"')
  })
})

describe('the refusal of a value that is not a key of this gateway names the mistake', () => {
  test.each([
    ['Bearer twice', `Bearer ${credential}`, 2, /"Bearer" appears twice/],
    ['double quotes', `"${credential}"`, 2, QUOTED],
    ['single quotes', `'${credential}'`, 2, QUOTED],
    ['a variable that the shell did not replace', '$SERVICE_API_KEY', 2, /a placeholder was sent instead of the key/],
    ['a placeholder of an example', '<key>', 2, /a placeholder was sent instead of the key/],
    ['what kubectl shows', 'sk-hg1Ab…wxyz', 2, /a shortened key, as kubectl shows it; the Secret holds the whole one/],
    ['the same as bytes of UTF-8', Buffer.from('sk-hg1Ab…wxyz').toString('latin1'), 2, /a shortened key/],
    ['two keys', `${credential}, ${credential}`, 2, /two headers with a key; send one/],
    ['a space within', `${credential.slice(0, 20)} ${credential.slice(20)}`, 2, /has a space in it/],
    ['a typing error', typo, 2, /its checksum is wrong/],
    ['a key that was cut', credential.slice(0, -3), 2, /shorter than 65 characters; copy it whole/],
    ['a key with more behind it', `${credential}abc`, 2, /longer than 65 characters/],
    ['something else', 'let-me-in', 2, /check that it was copied whole/],
    ['a deleted key', credential, 3, /it was deleted, or it belongs to another gateway$/],
    ['a key of Anthropic', `sk-ant-api03-${'x'.repeat(90)}`, 3, /looks like a key of Anthropic; check ANTHROPIC_API_KEY/],
    ['a key of OpenAI', `sk-proj-${'x'.repeat(90)}`, 3, /looks like a key of OpenAI; check OPENAI_API_KEY/],
  ] as const)('%s', (_, value, row, message) => {
    const refused = asked({ 'x-api-key': value })
    expect([refused.number, refused.message]).toEqual([row, expect.stringMatching(message)])
    const part = value.slice(8, 24)
    if (part.length === 16) expect(refused.message, 'no part of it is repeated').not.toContain(part)
  })

  test('the same mistake gets the same object: a flood of wrong keys allocates no errors', () => {
    for (const value of ['let-me-in', typo, credential, `"${credential}"`])
      expect(asked({ 'x-api-key': value }).refusal).toBe(asked({ 'x-api-key': value }).refusal)
  })
})
