/** Keys whose value another gateway made: from the hash in a manifest to the answer of a real gateway. */
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sha256 } from '../support/hash-keys.ts'
import { openLab, type Lab } from '../support/lab.ts'
import type { Stack } from '../support/stack.ts'

let lab: Lab
let stack: Stack
/** As LiteLLM makes values, and as people choose them. */
const [OLD, NEW, CHOSEN] = ['sk-Zm9vYmFyYmF6cXV4MTIzNA', 'sk-c2Vjb25kdmFsdWVmb3JrZXk', 'sk-team/a:chosen.by-hand!'] as const
const ask = { model: 'hash-model', max_tokens: 4, messages: [{ role: 'user' as const, content: 'Say something.' }] }

beforeAll(async () => {
  lab = openLab()
  stack = await lab.stack({ gateways: 2 })
  await stack.serveModel('hash-model')
})
afterAll(() => lab.close())

/** Applies an ApiKey for this value and waits until it is Ready, or until another condition has a reason. */
async function applied(name: string, value: string, rotation?: object, wanted: readonly [string, object] = ['Ready', {}]): Promise<void> {
  const source = { type: 'Hash', hash: { sha256: sha256(value), hint: `…${value.slice(-4)}` } }
  await stack.kube.apply({
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'ApiKey',
    metadata: { name, namespace: stack.namespace },
    spec: { models: ['hash-*'], source, ...(rotation && { rotation }) },
  })
  await stack.untilCondition('ApiKey', name, ...wanted)
}

/** Status on each gateway. */
async function statuses(value: string): Promise<number[]> {
  const found = []
  for (const { url } of stack.gateways) {
    const headers = { authorization: `Bearer ${value}`, 'content-type': 'application/json' }
    const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(ask) })
    lab.record(await answer.text())
    found.push(answer.status)
  }
  return found
}

describe('an ApiKey with the SHA-256 of a value', () => {
  it('lets a client in that still sends the value, through an unmodified SDK, and no Secret is written', async () => {
    await applied('moved', OLD)
    const client = new OpenAI({ apiKey: OLD, baseURL: `${stack.gateways[0]?.url ?? ''}/v1` })
    expect((await client.chat.completions.create(ask)).choices).toHaveLength(1)
    expect(await statuses(OLD)).toEqual([200, 200])
    const moved = await stack.kube.get(stack.path('ApiKey', 'moved'))
    expect(moved?.status).toMatchObject({ prefix: `…${OLD.slice(-4)}`, programmed: { ready: 2, total: 2 } })
    expect(await stack.kube.list(`/api/v1/namespaces/${stack.namespace}/secrets`)).toEqual([])
  })

  it('lets in whatever value somebody chose', async () => {
    await applied('chosen', CHOSEN)
    expect(await statuses(CHOSEN)).toEqual([200, 200])
    expect(await statuses(`${CHOSEN}!`)).toEqual([401, 401])
  })

  it('rotates with an overlap, in which both values work, and then refuses the former one on every gateway', async () => {
    await applied('rotating', 'sk-rotating-first')
    await applied('rotating', NEW, { overlapSeconds: 8 }, ['Rotating', { reason: 'OverlapActive' }])
    expect([await statuses('sk-rotating-first'), await statuses(NEW)]).toEqual([
      [200, 200],
      [200, 200],
    ])
    await expect.poll(() => statuses('sk-rotating-first'), { timeout: 20_000 }).toEqual([401, 401])
    expect(await statuses(NEW)).toEqual([200, 200])
    await expect
      .poll(async () => JSON.stringify((await stack.kube.get(stack.path('ApiKey', 'rotating')))?.status))
      .not.toContain('Rotating')
  })

  it('is refused while another key has the value, and gets the value when that key is deleted', async () => {
    await applied('twin', OLD, undefined, ['Accepted', { status: 'False', reason: 'DuplicateKey' }])
    expect(await statuses(OLD)).toEqual([200, 200])
    await stack.kube.remove(stack.path('ApiKey', 'moved'))
    await stack.untilCondition('ApiKey', 'twin', 'Ready')
    expect(await statuses(OLD)).toEqual([200, 200])
  })

  it('is refused on every gateway by the time that its deletion has returned', async () => {
    await stack.kube.remove(stack.path('ApiKey', 'chosen'))
    await expect.poll(() => stack.kube.get(stack.path('ApiKey', 'chosen'))).toBeUndefined()
    expect(await statuses(CHOSEN)).toEqual([401, 401])
  })
})
