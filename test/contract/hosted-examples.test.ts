/** The examples of hosted APIs, before scripted servers that insist on the headers of those APIs. */
import { hash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { isOfKind } from '#api/kind.ts'
import { servedModelKind } from '#api/served-model-kind.ts'
import { validateManifest } from '#api/validate.ts'
import { desiredModel } from '../../operator/kinds/served-model/desired.ts'
import { read } from '../support/documents.ts'
import { servedModel } from '../support/objects.ts'
import { surroundings } from '../support/observed-model.ts'
import { CHAT, Harness, json, MESSAGES, type Received, type Reply, startBackend } from '../support/upstream-harness.ts'

const KEY = 'key-of-the-hosted-api'

/** A gateway with the model of an example, whose host is a server on this machine. */
async function gatewayOf(folder: string, reply: Reply) {
  const validated = validateManifest(parse(read(`examples/${folder}/model.yaml`)))
  if (!validated.ok || !isOfKind(servedModelKind, validated.object))
    throw new TypeError(`no valid ServedModel: ${JSON.stringify(validated)}`)
  const { spec } = validated.object
  const server = await startBackend(reply)
  const origins = new Set(spec.backends.map(({ url = '' }) => new URL(url).origin))
  const credential = { state: 'Found' as const, sum: hash('sha256', KEY, 'hex'), origins }
  const backends = spec.backends.map(({ name }) => ({ name, service: undefined, credential, reachable: undefined }))
  const { record, problems } = desiredModel(surroundings(servedModel('example', spec, { namespace: 'shop', uid: 'u' }), backends))
  expect(problems).toEqual([])
  if (record === undefined) throw new Error('no record')
  const gateway = await new Harness({ credentials: (wanted) => wanted && KEY }).start()
  const here = (url: string | null): string | null => url && url.replace(new URL(url).origin, `http://${server.address}`)
  gateway.put({ ...record, allowedNamespaces: '*', backends: record.backends.map((one) => ({ ...one, url: here(one.url) })) })
  return { gateway, server }
}

/** Answers like a hosted API: 401 or 400 for a request without its headers. */
function insistsOn(wrong: (received: Received) => string | undefined, answer: object): Reply {
  return (response, received) => {
    const error = wrong(received)
    json(error === undefined ? 200 : 401, error === undefined ? answer : { error: { message: error } })(response, received)
  }
}

describe('hosted Anthropic', () => {
  const ask = { model: 'claude-sonnet-4-5', max_tokens: 8, messages: [{ role: 'user', content: 'hi' }] }
  const reply = insistsOn(
    ({ headers, path }) => {
      if (path !== '/v1/messages') return `no ${path} here`
      if (headers['x-api-key'] !== KEY || headers.authorization !== undefined) return 'x-api-key is required, alone'
      return headers['anthropic-version'] === '2023-06-01' ? undefined : 'anthropic-version is required'
    },
    { type: 'message', role: 'assistant', model: ask.model, content: [{ type: 'text', text: 'hello' }] },
  )

  test.each<[string, Record<string, string>]>([
    ['without headers of its own', {}],
    ['with its key in x-api-key and another version', { 'x-api-key': 'sk-client', 'anthropic-version': '2099-01-01' }],
    ['with its key in Authorization', { authorization: 'Bearer sk-client' }],
  ])('answers a client %s', async (_who, headers) => {
    const { gateway, server } = await gatewayOf('hosted-anthropic', reply)
    expect((await gateway.post(MESSAGES, ask, headers)).status).toBe(200)
    const names = server.received[0]?.rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()) ?? []
    expect(names).toHaveLength(new Set(names).size)
    expect(JSON.stringify(server.received[0]?.rawHeaders)).not.toContain('sk-client')
  })
})

test('Azure answers at its own path, by its own name of the model, to api-key alone', async () => {
  const ok = { id: 'c1', object: 'chat.completion', model: 'my-deployment', choices: [] }
  const { gateway } = await gatewayOf(
    'azure-openai',
    insistsOn(({ headers, path, body }) => {
      if (path !== '/openai/v1/chat/completions') return `no ${path} here`
      if (headers['api-key'] !== KEY || headers.authorization !== undefined) return 'api-key is required, alone'
      return JSON.parse(body.toString()).model === 'my-deployment' ? undefined : 'no such deployment'
    }, ok),
  )
  const answer = await gateway.post(CHAT, { model: 'gpt-4.1-mini', messages: [] }, { 'api-key': 'sk-client' })
  expect([answer.status, JSON.parse(answer.text).model]).toEqual([200, 'gpt-4.1-mini'])
})

test('hosted OpenAI still gets Authorization: Bearer', async () => {
  const ok = { id: 'c1', object: 'chat.completion', model: 'gpt-4.1-mini', choices: [] }
  const wrong = ({ headers }: Received) => (headers.authorization === `Bearer ${KEY}` ? undefined : 'Bearer is required')
  const { gateway } = await gatewayOf('hosted-openai', insistsOn(wrong, ok))
  expect((await gateway.post(CHAT, { model: 'gpt-4.1-mini', messages: [] })).status).toBe(200)
})
