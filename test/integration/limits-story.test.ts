/** Limits and budgets from the manifest to the answer, with every part real: API server, operator, Redis, two gateways and a model server. */
import { setTimeout as sleep } from 'node:timers/promises'
import type OpenAI from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Answer, ask as askOnce, callHeaders } from '../support/ask.ts'
import { openLab } from '../support/lab.ts'
import { durableSpend } from '../support/durable-bytes.ts'
import type { TestObject } from '../support/kube-admin.ts'
import type { Stack } from '../support/stack.ts'
import { waitFor } from '../support/wait-for.ts'

const MODEL = 'limited-model'
/** A price of one unit of money per token. */
const PRICING = { inputPerMillion: '1000000', outputPerMillion: '1000000' }
const BUDGET = { name: 'month', amount: '1000', unit: 'Currency', window: 'Month', timeZone: 'Europe/Berlin', onExceeded: 'Block' }

const lab = openLab()
let stack: Stack

beforeAll(async () => {
  stack = await lab.stack({ gateways: 2 })
  await stack.serveModel(MODEL, { pricing: PRICING, maxOutputTokens: 64 })
})

/** Repeats a 503 after the time that the answer names, as an SDK does, since Redis may be slow on a shared machine. */
async function ask(credential: string, gateway = 0): Promise<Answer> {
  const answer = await askOnce(lab, stack.gateways[gateway]?.url ?? '', { credential, model: MODEL, fields: { max_tokens: 8 } })
  if (answer.status !== 503) return answer
  await sleep(1_000 * Number(answer.headers.get('retry-after')))
  return ask(credential, gateway)
}

async function ownKey(credential: string, gateway = 0): Promise<{ readonly budgets: readonly { readonly used: string }[] }> {
  const answer = await fetch(`${stack.gateways[gateway]?.url}/v1/key`, { headers: callHeaders(credential) })
  const text = lab.record(await answer.text())
  expect(answer.status, text).toBe(200)
  return JSON.parse(text) as Awaited<ReturnType<typeof ownKey>>
}

function edit(name: string, spec: Readonly<Record<string, unknown>>): Promise<unknown> {
  return stack.kube.merge(stack.path('ApiKey', name), { spec })
}

async function shown(name: string, isShown: (object: TestObject) => boolean): Promise<TestObject> {
  return waitFor(`the status of ${name}`, async () => {
    const object = await stack.kube.get(stack.path('ApiKey', name))
    return object && isShown(object) ? object : undefined
  })
}

async function durableMicros(uid: string): Promise<number> {
  return [...((await durableSpend(stack)).get(uid)?.spent.values() ?? [])].reduce((sum, one) => sum + one, 0)
}

describe('a limit of a manifest', () => {
  it('holds for both gateways together, and the headers show how much is left', async () => {
    const credential = await stack.issueKey('two-a-minute', { limits: { requestsPerMinute: 2 } })
    await stack.untilCondition('ApiKey', 'two-a-minute', 'LimitsEnforceable')
    const answers = [await ask(credential, 0), await ask(credential, 1), await ask(credential, 0), await ask(credential, 1)]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429, 429])
    expect(answers[0]?.headers.get('x-ratelimit-limit-requests')).toBe('2')
    expect(Number(answers[2]?.headers.get('retry-after'))).toBeGreaterThan(30)
  })

  it('takes effect on every gateway as soon as it is raised or lowered', async () => {
    const credential = await stack.issueKey('edited', { limits: { requestsPerMinute: 1 } })
    expect([(await ask(credential, 0)).status, (await ask(credential, 1)).status]).toEqual([200, 429])
    await edit('edited', { limits: { requestsPerMinute: 100 } })
    await stack.untilCondition('ApiKey', 'edited', 'Programmed')
    expect([(await ask(credential, 0)).status, (await ask(credential, 1)).status]).toEqual([200, 200])
    await edit('edited', { limits: { requestsPerMinute: 1 } })
    await stack.untilCondition('ApiKey', 'edited', 'Programmed')
    expect([(await ask(credential, 0)).status, (await ask(credential, 1)).status]).toEqual([429, 429])
  })
})

describe('a budget of a manifest', () => {
  it('is spent by both gateways, is shown in the status, and refuses with 402 once it is exhausted', async () => {
    const credential = await stack.issueKey('spender', { budgets: [BUDGET] })
    const usage = [await ask(credential, 0), await ask(credential, 1)].map(({ text }) => (JSON.parse(text) as OpenAI.ChatCompletion).usage)
    const spent = usage.reduce((sum, one) => sum + (one?.total_tokens ?? 0), 0)
    const object = await shown('spender', ({ status }) => Number((status?.usage as { used: string }[] | undefined)?.[0]?.used) === spent)
    expect(object.status?.usage).toMatchObject([{ budget: 'month', remaining: `${(1_000 - spent).toFixed(2)}` }])
    await edit('spender', { budgets: [{ ...BUDGET, amount: String(spent) }] })
    await stack.untilCondition('ApiKey', 'spender', 'BudgetExhausted')
    const refused = await waitFor('a refusal', async () => {
      const answer = await ask(credential)
      return answer.status === 402 ? answer : undefined
    })
    expect(refused.text).toContain('month')
    expect(refused.headers.get('x-should-retry')).toBe('false')
  })

  it('continues from its durable spend after Redis has lost everything', async () => {
    const credential = await stack.issueKey('survivor', { budgets: [BUDGET] })
    const { text } = await ask(credential)
    const spent = (JSON.parse(text) as OpenAI.ChatCompletion).usage?.total_tokens ?? 0
    const { metadata } = (await stack.kube.get(stack.path('ApiKey', 'survivor'))) ?? {}
    await waitFor('the spend to be durable', async () => (await durableMicros(String(metadata?.uid))) === spent * 1_000_000)
    await stack.redis.admin.flushall()
    await waitFor('an answer', async () => (await ask(credential)).status === 200)
    expect(Number((await ownKey(credential)).budgets[0]?.used)).toBeGreaterThanOrEqual(spent)
    await stack.untilCondition('ApiKey', 'survivor', 'LimitsEnforceable', { status: 'False', reason: 'SpendUncertain' })
  })
})

describe('GET /v1/key', () => {
  it('shows a key its own limits on either gateway', async () => {
    const credential = await stack.issueKey('curious', { limits: { requestsPerMinute: 5 }, budgets: [BUDGET] })
    await ask(credential)
    expect(await ownKey(credential, 1)).toMatchObject({
      object: 'key',
      limits: [{ limit: 'requests_per_minute', amount: 5, left: 4 }],
      budgets: [{ budget: 'month', unit: 'Currency' }],
    })
  })
})
