/** Keys whose value another gateway made: from the hash in a manifest to the answer of a real gateway. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import OpenAI from 'openai'
import { parseAllDocuments } from 'yaml'
import { beforeAll, describe, expect, it } from 'vitest'
import { ask as call } from '../support/ask.ts'
import { sha256 } from '../support/hash-keys.ts'
import type { TestObject } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import type { Stack } from '../support/stack.ts'

const lab = openLab()
let stack: Stack
/** Values as LiteLLM makes them, and a value that a person chose. */
const [OLD, NEW, CHOSEN] = ['sk-Zm9vYmFyYmF6cXV4MTIzNA', 'sk-c2Vjb25kdmFsdWVmb3JrZXk', 'sk-team/a:chosen.by-hand!'] as const
const ask = { model: 'hash-model', max_tokens: 4, messages: [{ role: 'user' as const, content: 'Say something.' }] }

beforeAll(async () => {
  stack = await lab.stack({ gateways: 2 })
  await stack.serveModel('hash-model')
})

async function applied(name: string, value: string, rotation?: object, wanted: readonly [string, object] = ['Ready', {}]): Promise<void> {
  const source = { type: 'Hash', hash: { sha256: sha256(value), hint: `…${value.slice(-4)}` } }
  await stack.apply('ApiKey', name, { models: ['hash-*'], source, ...(rotation && { rotation }) })
  await stack.untilCondition('ApiKey', name, ...wanted)
}

async function statuses(value: string, model = ask.model): Promise<number[]> {
  const answers = await Promise.all(stack.gateways.map(({ url }) => call(lab, url, { credential: value, body: { ...ask, model } })))
  return answers.map(({ status }) => status)
}

describe('an ApiKey with the SHA-256 of a value', () => {
  it('admits a client that still sends the value, through an unmodified SDK, and the operator writes no Secret', async () => {
    await applied('moved', OLD)
    const client = new OpenAI({ apiKey: OLD, baseURL: `${stack.gateways[0]?.url ?? ''}/v1` })
    expect((await client.chat.completions.create(ask)).choices).toHaveLength(1)
    expect(await statuses(OLD)).toEqual([200, 200])
    const moved = await stack.kube.get(stack.path('ApiKey', 'moved'))
    expect(moved?.status).toMatchObject({ prefix: `…${OLD.slice(-4)}`, programmed: { ready: 2, total: 2 } })
    expect(await stack.kube.list(`/api/v1/namespaces/${stack.namespace}/secrets`)).toEqual([])
  })

  it('admits any value that a user chose', async () => {
    await applied('chosen', CHOSEN)
    expect(await statuses(CHOSEN)).toEqual([200, 200])
    expect(await statuses(`${CHOSEN}!`)).toEqual([401, 401])
    const own = await fetch(`${stack.gateways[0]?.url ?? ''}/v1/key`, { headers: { authorization: `Bearer ${CHOSEN}` } })
    expect(lab.record(await own.text())).not.toContain(CHOSEN)
  })

  it('rotates with an overlap, in which both values work; then every gateway refuses the former value', async () => {
    await applied('rotating', 'sk-rotating-first')
    await applied('rotating', NEW, { overlapSeconds: 15 }, ['Rotating', { reason: 'OverlapActive' }])
    expect([await statuses('sk-rotating-first'), await statuses(NEW)]).toEqual([
      [200, 200],
      [200, 200],
    ])
    await expect.poll(() => statuses('sk-rotating-first')).toEqual([401, 401])
    expect(await statuses(NEW)).toEqual([200, 200])
    await expect
      .poll(async () => JSON.stringify((await stack.kube.get(stack.path('ApiKey', 'rotating')))?.status))
      .not.toContain('Rotating')
  })

  it('is not accepted while another key has the value, and gets the value when that key is deleted', async () => {
    await applied('twin', OLD, undefined, ['Accepted', { status: 'False', reason: 'DuplicateKey' }])
    expect(await statuses(OLD)).toEqual([200, 200])
    await stack.kube.remove(stack.path('ApiKey', 'moved'))
    await stack.untilCondition('ApiKey', 'twin', 'Ready')
    expect(await statuses(OLD)).toEqual([200, 200])
  })

  it('is refused on every gateway once its deletion has finished', async () => {
    await stack.deleteKey('chosen')
    expect(await statuses(CHOSEN)).toEqual([401, 401])
  })
})

describe('headgate import litellm', () => {
  const root = join(import.meta.dirname, '../..')
  /** The values behind the hashes of examples/litellm/keys.json; they protect nothing. */
  const values = { checkout: 'sk-example-Zk3vQ8mT1pXc7w', blue: 'sk-example-uJ6yE0bG3fVt8x', blocked: 'sk-example-oI4tN7cM2hYq5z' }

  it('makes manifests that the API server accepts unchanged, and the clients of LiteLLM keep their keys', async () => {
    const pricing = { inputPerMillion: '1', outputPerMillion: '2' }
    const model = { servedName: 'llama', pricing, maxOutputTokens: 64, contextTokens: 2048 }
    await stack.serveModel('llama', model)
    const args = ['dist/headgate.js', 'import', 'litellm', 'examples/litellm/keys.json', '-n', stack.namespace]
    const { stdout } = await promisify(execFile)(process.execPath, [...args, '--team-models', '5f1d9c1e-team-blue=llama'], { cwd: root })
    const objects = parseAllDocuments(stdout).map((document) => document.toJS() as TestObject)
    expect(objects).toHaveLength(5)
    for (const object of objects) await stack.kube.apply(object)
    await stack.untilCondition('ApiKey', 'checkout-bot', 'Ready')
    await stack.untilCondition('ApiKey', 'support-team-blue', 'Ready')
    await stack.untilCondition('ApiKey', 'former-intern', 'Ready', { status: 'False', reason: 'Suspended' })
    for (const value of [values.checkout, values.blue]) expect(await statuses(value, 'llama')).toEqual([200, 200])
    expect(await statuses(values.blocked, 'llama')).toEqual([401, 401])
    expect(await statuses(values.blue, 'hash-model')).toEqual([403, 403])
    const client = new OpenAI({ apiKey: values.checkout, baseURL: `${stack.gateways[0]?.url ?? ''}/v1` })
    expect((await client.chat.completions.create({ ...ask, model: 'llama' })).choices).toHaveLength(1)
  })

  it('makes ServedModels that the API server accepts, and the one of a hosted API waits for its Secret', async () => {
    const args = ['dist/headgate.js', 'import', 'litellm', '--config', 'examples/litellm/config.yml', '-n', stack.namespace]
    const { code, stdout } = await promisify(execFile)(process.execPath, args, { cwd: root }).then(
      (ended) => ({ code: 0, ...ended }),
      (error: { readonly code: number; readonly stdout: string }) => error,
    )
    const models = parseAllDocuments(stdout).map((document) => document.toJS() as TestObject)
    expect([code, models.length]).toEqual([3, 3])
    for (const model of models) await stack.kube.apply(model)
    await stack.untilCondition('ServedModel', 'gpt-4-1-mini', 'Accepted', { status: 'False', reason: 'SecretNotFound' })
  })
})

describe('the value of such a key', () => {
  it('is in no file that any part of the run has written, neither in plain text nor in base64', async () => {
    const files = filesBelow(lab.folder).filter((file) => !/\/(etcd|dist|pki)\//.test(file))
    expect(files.length).toBeGreaterThan(5)
    const forms = [OLD, NEW, CHOSEN].flatMap((value) => [value, Buffer.from(value).toString('base64')])
    const leaks = files.filter((file) => {
      const bytes = unlessDeleted(() => readFileSync(file))
      return bytes !== undefined && forms.some((form) => bytes.includes(form))
    })
    expect(leaks).toEqual([])
  })
})

function filesBelow(folder: string): string[] {
  const entries = unlessDeleted(() => readdirSync(folder, { withFileTypes: true })) ?? []
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return filesBelow(path)
    return unlessDeleted(() => statSync(path))?.isFile() === true ? [path] : []
  })
}

/** @returns undefined if another test has deleted the file or folder in the meantime */
function unlessDeleted<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
