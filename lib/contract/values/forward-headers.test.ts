import { describe, expect, test } from 'vitest'
import { forwardableHeaders, NEVER_FORWARDED, NEVER_FORWARDED_WORDS, refusalOfHeader } from './forward-headers.ts'

describe('a request header', () => {
  test.each([
    'X-Conversation-Id',
    'x-tenant',
    'X-SMG-Routing-Key',
    'x-data-parallel-rank',
    'Idempotency-Key',
    'x-session-id',
    'OpenAI-Beta',
  ])('%s may be forwarded', (name) => {
    expect(refusalOfHeader(name)).toBeUndefined()
  })

  test.each<[string, readonly string[]]>([
    [
      'it holds a credential',
      ['Authorization', 'authorization', 'Proxy-Authorization', 'X-Api-Key', 'x-goog-api-key', 'api-key', 'Cookie'],
    ],
    ['it holds a credential', ['Ocp-Apim-Subscription-Key', 'x-access-key', 'Set-Cookie']],
    ['"token" in a name', ['X-Access-Token', 'x-amz-security-token', 'Private-Token', 'x-ms-token-aad-id-token']],
    ['"auth" in a name', ['X-Auth-Request-Email', 'x_auth_token']],
    ['"jwt" in a name', ['Cf-Access-Jwt-Assertion']],
    ['"oidc" in a name', ['x-amzn-oidc-data']],
    ['it concerns the connection', ['Host', 'Connection', 'Keep-Alive', 'TE', 'Trailer', 'Transfer-Encoding', 'Upgrade', 'Expect']],
    ['it describes the body', ['Content-Length', 'content-type', 'Content-Encoding', 'Accept-Encoding']],
    [
      'it claims an identity',
      ['Forwarded', 'X-Forwarded-For', 'X-Real-IP', 'True-Client-Ip', 'X-User-Id', 'x-username', 'Remote-User', 'X-Remote-Group'],
    ],
    ['the gateway sets it', ['X-Request-Id', 'x-headgate-hops']],
    ['it may replace the path or the method', ['X-Original-URL', 'X-Rewrite-Url', 'X-HTTP-Method-Override']],
    ['"model" in a name', ['x-ai-eg-model', 'X-Gateway-Model-Name']],
    ['it is not a header name', ['', 'x y', 'x:y', 'x\r\nauthorization', 'x\n', '-x', 'ü', 'authorization ']],
  ])('is refused because %s: %j', (why, names) => {
    for (const name of names) expect(refusalOfHeader(name), JSON.stringify(name)).toContain(why)
  })

  test('is refused in the spelling of servers that take _ or . for a hyphen', () => {
    for (const name of ['X_API_KEY', 'x_forwarded_for', 'Content.Length', 'x_real_ip']) expect(refusalOfHeader(name), name).toBeDefined()
  })

  test('of every refused kind is refused in any case', () => {
    const names = [
      ...NEVER_FORWARDED.flatMap(([, some]) => some),
      ...NEVER_FORWARDED_WORDS.flatMap((word) => [word, `x-${word}`, `${word}-x`]),
    ]
    for (const name of names.map((one) => one.replaceAll('*', 'x-')))
      for (const one of [name, name.toUpperCase()]) expect(refusalOfHeader(one), one).toBeDefined()
  })
})

test('of a list, the headers that may be forwarded remain, in lower case, sorted, each once', () => {
  expect(forwardableHeaders(['X-Tenant', 'Cookie', 'x-a', 'x-tenant', 'not a name'])).toEqual(['x-a', 'x-tenant'])
})
