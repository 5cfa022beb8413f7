import { createServer, request } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sentCredential, type SentCredential } from './credential-header.ts'

/** Headers go over a real wire: what Node joins and drops is part of what is tested. */
const seen: SentCredential[] = []
const server = createServer((incoming, outgoing) => {
  seen.push(sentCredential(incoming, !incoming.url?.includes('off')))
  outgoing.end()
})

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => void server.close())

async function sent(headers: readonly string[], path = '/'): Promise<SentCredential | undefined> {
  const { port } = server.address() as AddressInfo
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
    ['no header', []],
    ['empty headers', ['Authorization', '', 'x-api-key', '']],
  ])('is missing with %s', async (_, headers) => {
    expect(await sent(headers)).toBe('none')
  })

  test.each([
    ['two spaces', ['Authorization', 'Bearer  sk-a']],
    ['another scheme', ['Authorization', 'Basic c2st']],
    ['no scheme', ['Authorization', 'sk-a']],
    ['a scheme alone', ['Authorization', 'Bearer']],
    ['a tab', ['Authorization', 'Bearer\tsk-a']],
    ['two Authorization headers', ['Authorization', 'Bearer sk-a', 'authorization', 'Bearer sk-b']],
    ['a wrong Authorization beside a right x-api-key', ['Authorization', 'sk-a', 'x-api-key', 'sk-a']],
  ])('is malformed with %s', async (_, headers) => {
    expect(await sent(headers)).toBe('malformed')
  })

  test('is taken as sent where it is wrong itself: its form is judged by the credential rules', async () => {
    expect(await sent(['Authorization', 'Bearer Bearer sk-a'])).toEqual({ credential: 'Bearer sk-a' })
    expect(await sent(['x-api-key', 'sk-a', 'x-api-key', 'sk-b'])).toEqual({ credential: 'sk-a, sk-b' })
  })

  test('in x-api-key does not count when the setting is off', async () => {
    expect(await sent(['x-api-key', 'sk-a'], '/off')).toBe('none')
    expect(await sent(['x-api-key', 'sk-a', 'Authorization', 'Bearer sk-b'], '/off')).toEqual({ credential: 'sk-b' })
  })
})
