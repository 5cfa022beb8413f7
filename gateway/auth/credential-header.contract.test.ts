import { createServer, request } from 'node:http'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listening } from '../../test/support/listening.ts'
import { sentCredential } from './authenticate.ts'
import { ABSENT, HEADERS, OTHER_SCHEME } from './refusals.ts'

type SentCredential = ReturnType<typeof sentCredential>

/** Headers go over a real wire, because the tests include Node's own joins and drops. */
const seen: SentCredential[] = []
const server = createServer((incoming, outgoing) => {
  seen.push(sentCredential(incoming, !incoming.url?.includes('off')))
  outgoing.end()
})

let port: number

beforeAll(async () => {
  port = await listening(server)
})
afterAll(() => void server.close())

async function sent(headers: readonly string[], path = '/'): Promise<SentCredential | undefined> {
  const outgoing = request({ port, path, agent: false, headers: ['host', 'x', ...headers] })
  outgoing.end()
  const [answer] = await once(outgoing, 'response')
  answer.resume()
  return seen.pop()
}

describe('a credential', () => {
  test.each([
    ['in Authorization: Bearer', ['Authorization', 'Bearer sk-a']],
    ['with the scheme in any case', ['authorization', 'bEARER sk-a']],
    ['in x-api-key, as the Anthropic SDKs send it', ['X-Api-Key', 'sk-a']],
    ['in Authorization when x-api-key has another one', ['x-api-key', 'sk-b', 'Authorization', 'Bearer sk-a']],
    ['in x-api-key when Authorization is empty', ['Authorization', '', 'x-api-key', 'sk-a']],
  ])('is found %s', async (_, headers) => {
    expect(await sent(headers)).toBe('sk-a')
  })

  test.each([
    ['no header', [], ABSENT.inEither.noHeader],
    ['an empty Authorization', ['Authorization', ''], ABSENT.inEither.emptyAuthorization],
    ['an empty x-api-key', ['Authorization', '', 'x-api-key', ''], HEADERS.emptyApiKey],
    ['an empty variable', ['Authorization', 'Bearer '], HEADERS.emptyBearer],
    ['a scheme alone', ['Authorization', 'bearer'], HEADERS.emptyBearer],
    ['two spaces', ['Authorization', 'Bearer  sk-a'], HEADERS.notOneSpace],
    ['a tab', ['Authorization', 'Bearer\tsk-a'], HEADERS.notOneSpace],
    ['a space and a tab', ['Authorization', 'Bearer \tsk-a'], HEADERS.notOneSpace],
    ['another scheme', ['Authorization', 'basic c2st'], OTHER_SCHEME.get('basic')],
    ['an unknown scheme', ['Authorization', 'sk-secret c2st'], HEADERS.unknownScheme],
    ['no scheme', ['Authorization', 'sk-a'], HEADERS.noScheme],
    ['a scheme that is written to the key', ['Authorization', 'Bearersk-a'], HEADERS.noScheme],
    ['two Authorization headers', ['Authorization', 'Bearer sk-a', 'authorization', 'Bearer sk-b'], HEADERS.repeated],
    ['a wrong Authorization beside a right x-api-key', ['Authorization', 'sk-a', 'x-api-key', 'sk-a'], HEADERS.noScheme],
  ])('is absent with %s, and the reason is known', async (_, headers, problem) => {
    expect(await sent(headers)).toBe(problem)
  })

  test('is taken as sent where it is wrong itself: the credential rules check its form', async () => {
    expect(await sent(['Authorization', 'Bearer Bearer sk-a'])).toBe('Bearer sk-a')
    expect(await sent(['x-api-key', 'sk-a', 'x-api-key', 'sk-b'])).toBe('sk-a, sk-b')
  })

  test('in x-api-key does not count when the setting is off', async () => {
    expect(await sent(['x-api-key', 'sk-a'], '/off')).toBe(HEADERS.apiKeyOff)
    expect(await sent(['x-api-key', 'sk-a', 'Authorization', 'Bearer sk-b'], '/off')).toBe('sk-b')
  })
})
