import { createServer, request } from 'node:http'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listening } from '../../test/support/listening.ts'
import { sentCredential, type SentCredential } from './credential-header.ts'

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
    expect(await sent(headers)).toEqual({ credential: 'sk-a' })
  })

  test.each([
    ['no header', [], 'NoHeader'],
    ['an empty Authorization', ['Authorization', ''], 'EmptyAuthorization'],
    ['an empty x-api-key', ['Authorization', '', 'x-api-key', ''], 'EmptyApiKey'],
    ['an empty variable', ['Authorization', 'Bearer '], 'EmptyBearer'],
    ['a scheme alone', ['Authorization', 'bearer'], 'EmptyBearer'],
    ['two spaces', ['Authorization', 'Bearer  sk-a'], 'NotOneSpace'],
    ['a tab', ['Authorization', 'Bearer\tsk-a'], 'NotOneSpace'],
    ['a space and a tab', ['Authorization', 'Bearer \tsk-a'], 'NotOneSpace'],
    ['another scheme', ['Authorization', 'basic c2st'], 'Scheme Basic'],
    ['an unknown scheme', ['Authorization', 'sk-secret c2st'], 'UnknownScheme'],
    ['no scheme', ['Authorization', 'sk-a'], 'NoScheme'],
    ['a scheme that is written to the key', ['Authorization', 'Bearersk-a'], 'NoScheme'],
    ['two Authorization headers', ['Authorization', 'Bearer sk-a', 'authorization', 'Bearer sk-b'], 'Repeated'],
    ['a wrong Authorization beside a right x-api-key', ['Authorization', 'sk-a', 'x-api-key', 'sk-a'], 'NoScheme'],
  ])('is absent with %s, and the reason is known', async (_, headers, problem) => {
    expect(await sent(headers)).toBe(problem)
  })

  test('is taken as sent where it is wrong itself: the credential rules check its form', async () => {
    expect(await sent(['Authorization', 'Bearer Bearer sk-a'])).toEqual({ credential: 'Bearer sk-a' })
    expect(await sent(['x-api-key', 'sk-a', 'x-api-key', 'sk-b'])).toEqual({ credential: 'sk-a, sk-b' })
  })

  test('in x-api-key does not count when the setting is off', async () => {
    expect(await sent(['x-api-key', 'sk-a'], '/off')).toBe('ApiKeyOff')
    expect(await sent(['x-api-key', 'sk-a', 'Authorization', 'Bearer sk-b'], '/off')).toEqual({ credential: 'sk-b' })
  })
})
