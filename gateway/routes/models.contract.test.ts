import Anthropic from '@anthropic-ai/sdk'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { encodeModelRecord } from '#contract/records/model-record.ts'
import { modelRecord, startFront, type FrontGateway } from '../../test/support/front-gateway.ts'

let front: FrontGateway

beforeEach(async () => {
  const models = [
    modelRecord('qwen/qwen-3', { aliases: ['coder'] }),
    modelRecord('llama', { aliases: ['claude-x'] }),
    modelRecord('hidden', { namespace: 'elsewhere', allowedNamespaces: ['elsewhere'] }),
    modelRecord('shared', { namespace: 'elsewhere', allowedNamespaces: '*' }),
  ]
  front = await startFront({ models })
})
afterEach(() => front.stop())

async function get(path: string, key: string): Promise<{ status: number; json: Record<string, unknown> }> {
  const response = await fetch(front.base + path, { headers: { authorization: `Bearer ${key}` } })
  return { status: response.status, json: (await response.json()) as Record<string, unknown> }
}

async function listed(key: string): Promise<string[]> {
  const { json } = await get('/v1/models', key)
  return (json['data'] as { id: string }[]).map(({ id }) => id)
}

/** What calls allow, found out by calling. */
async function callable(key: string, names: readonly string[]): Promise<string[]> {
  const calls = names.map(async (model) => {
    const body = JSON.stringify({ model, messages: [{}] })
    const { status } = await fetch(`${front.base}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body,
    })
    return status === 200 ? [model] : []
  })
  return (await Promise.all(calls)).flat().toSorted()
}

describe('GET /v1/models', () => {
  test('T27 lists exactly the models that a call with the same key may use, sorted', async () => {
    const all = ['qwen/qwen-3', 'coder', 'llama', 'claude-x', 'hidden', 'shared', 'absent']
    for (const models of [[['*']], [['llama']], [['claude-*', 'absent']], [['*'], ['coder', 'shared']], [['hidden']]]) {
      const key = front.issue({ models })
      expect(await listed(key)).toEqual(await callable(key, all))
    }
  })

  test('the same list is asked for again and again, by keys of any scope, and follows each change of a model', async () => {
    const models = [['*']] // one object, as keys with the same scope have
    const [all, one, other] = [{ models }, { models: [['llama']] }, { models, namespace: 'elsewhere' }].map((record) => front.issue(record))
    for (let round = 0; round < 3; round += 1) {
      expect(await listed(all ?? '')).toEqual(['claude-x', 'coder', 'llama', 'qwen/qwen-3', 'shared'])
      expect(await listed(one ?? '')).toEqual(['claude-x', 'llama'])
      expect(await listed(other ?? '')).toEqual(['hidden', 'shared'])
    }
    const newest = modelRecord('newest')
    front.models.put(newest.uid, encodeModelRecord(newest))
    expect(await listed(all ?? '')).toContain('newest')
    expect(await listed(one ?? '')).toEqual(['claude-x', 'llama'])
  })

  test.each(['', '/v1'])('T27 the Anthropic SDK reads the list and one model, its base URL ending in %j', async (end) => {
    const client = new Anthropic({ authToken: front.issue(), apiKey: null, baseURL: front.base + end })
    const ids: string[] = []
    for await (const model of client.models.list()) ids.push(model.id)
    expect(ids).toEqual(['claude-x', 'coder', 'llama', 'qwen/qwen-3', 'shared'])
    expect(await client.models.retrieve('claude-x')).toMatchObject({
      id: 'claude-x',
      type: 'model',
      display_name: 'claude-x',
      created_at: '2026-01-02T00:00:00.000Z',
    })
  })

  test('a model shows the length of its context where the ServedModel declares it, and nothing otherwise', async () => {
    const long = modelRecord('long', { contextTokens: 131_072 })
    front.models.put(long.uid, encodeModelRecord(long))
    const key = front.issue({ models: [['long', 'shared']] })
    const { json } = await get('/v1/models', key)
    expect(json['data']).toMatchObject([{ id: 'long', max_model_len: 131_072 }, { id: 'shared' }])
    expect(JSON.stringify(json).match(/max_model_len/g)).toHaveLength(1)
    expect((await get('/v1/models/long', key)).json).toMatchObject({ id: 'long', max_model_len: 131_072 })
  })

  test('a model shows its description where the ServedModel has one, under each of its names', async () => {
    const described = modelRecord('coder-7b', { aliases: ['claude-coder'], description: 'Small and fast, "for code"' })
    front.models.put(described.uid, encodeModelRecord(described))
    const key = front.issue({ models: [['coder-7b', 'shared']] })
    const shown = { display_name: 'claude-coder', description: 'Small and fast, "for code"' }
    expect((await get('/v1/models?limit=1000', key)).json['data']).toMatchObject([
      { ...shown, id: 'claude-coder' },
      { id: 'coder-7b' },
      { id: 'shared' },
    ])
    expect((await get('/v1/models/claude-coder', key)).json).toMatchObject(shown)
    expect((await get('/v1/models/shared', key)).json).not.toHaveProperty('description')
  })

  test('a key without any model in reach gets an empty list', async () => {
    const { status, json } = await get('/v1/models?limit=1000', front.issue({ models: [['absent']] }))
    expect(status).toBe(200)
    expect(json).toEqual({ object: 'list', data: [], has_more: false, first_id: null, last_id: null })
  })

  test('without a key it answers 401 in the dialect of the path', async () => {
    expect((await get('/v1/models', 'sk-nonsense')).json).toMatchObject({ error: { code: 'invalid_api_key' } })
    expect((await get('/v1/v1/models', 'sk-nonsense')).json).toMatchObject({ type: 'error', error: { type: 'authentication_error' } })
  })
})

describe('the discovery of models by Claude Code', () => {
  /** As Claude Code asks at its start: it waits three seconds, takes a redirect for a failure, and shows ids that begin like its own. */
  async function discovered(
    headers: Readonly<Record<string, string>>,
  ): Promise<{ id: string; display_name?: string; description?: string }[]> {
    const response = await fetch(`${front.base}/v1/models?limit=1000`, {
      headers: { ...headers, 'anthropic-version': '2023-06-01', 'user-agent': 'claude-cli/2.1.332 (external, cli)' },
      ...{ redirect: 'manual', signal: AbortSignal.timeout(3_000) },
    })
    expect(response.status).toBe(200)
    const { data } = (await response.json()) as { data: { id: string }[] }
    return data.filter(({ id }) => /^(?:claude|anthropic)/i.test(id))
  }

  test('finds the aliases that begin with claude, among many models, and each can be called', async () => {
    for (let at = 0; at < 2_000; at += 1) {
      const other = modelRecord(`other-${at}`)
      front.models.put(other.uid, encodeModelRecord(other))
    }
    const described = modelRecord('coder-7b', { aliases: ['claude-coder', 'anthropic/coder'], description: 'Small and fast.' })
    front.models.put(described.uid, encodeModelRecord(described))
    const key = front.issue()
    for (const headers of [{ authorization: `Bearer ${key}` }, { 'x-api-key': key }]) {
      const found = await discovered(headers)
      expect(found.map(({ id, display_name: name, description }) => [id, name, description])).toEqual([
        ['anthropic/coder', 'anthropic/coder', 'Small and fast.'],
        ['claude-coder', 'claude-coder', 'Small and fast.'],
        ['claude-x', 'claude-x', undefined],
      ])
      for (const { id } of found) {
        const body = JSON.stringify({ model: id, max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] })
        expect((await fetch(`${front.base}/v1/messages`, { method: 'POST', headers, body })).status).toBe(200)
      }
    }
  })

  test('finds nothing that its key may not call', async () => {
    const key = front.issue({ models: [['llama']] })
    expect((await discovered({ authorization: `Bearer ${key}` })).map(({ id }) => id)).toEqual(['claude-x'])
  })
})

describe('GET /v1/models/{id}', () => {
  test.each(['/v1/models/qwen/qwen-3', '/v1/models/qwen%2Fqwen-3', '/v1/v1/models/qwen%2fqwen-3?x=1'])(
    '%s finds an id that holds a slash',
    async (path) => {
      expect(await get(path, front.issue())).toMatchObject({ status: 200, json: { id: 'qwen/qwen-3' } })
    },
  )

  test('outside the scope a served and an invented id get the same 403, inside it an unknown one 404, as calls do', async () => {
    const key = front.issue({ models: [['llama', 'absent']] })
    const [served, invented] = [await get('/v1/models/shared', key), await get('/v1/models/invent', key)]
    expect(served.status).toBe(403)
    expect(JSON.stringify(invented).replace('invent', 'shared')).toBe(JSON.stringify(served))
    expect(await get('/v1/models/absent', key)).toMatchObject({ status: 404, json: { error: { code: 'model_not_found' } } })
  })

  test('broken escapes are a name that no model has', async () => {
    expect((await get('/v1/models/%zz', front.issue())).status).toBe(404)
  })
})
