/**
 * What happens to the keys of an account, on a real API server with Redis and gateways: each state with its condition and its answer, and the
 * same values after it is undone.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask, type Answer, smallBody } from '../support/ask.ts'
import { CountingModel } from '../support/counting-model.ts'
import { untilEveryGateway } from '../support/gateway-answers.ts'
import { openLab } from '../support/lab.ts'
import type { Stack } from '../support/stack.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const lab = openLab()
const PLAN = 'states-plan'
let stack: Stack
let model: CountingModel

const account = (spec: object = {}) => ({
  planRef: { name: PLAN },
  namespaces: { matchLabels: { 'kubernetes.io/metadata.name': stack.namespace } },
  ...spec,
})
const keyOf = (name: string) => ({ accountRef: { name } })
const merge = (kind: 'Plan' | 'Account', name: string, spec: object) => stack.kube.merge(stack.path(kind, name), { spec })
const untilAll = (credential: string, status: number) => untilEveryGateway(stack.gateways, credential, status)

async function opened(name: string, spec: object = {}): Promise<string> {
  await stack.apply('Account', name, account(spec))
  await stack.untilCondition('Account', name, 'Ready')
  return await stack.issueKey(`${name}-key`, keyOf(name))
}

beforeAll(async () => {
  const plane = await lab.ownControlPlane() // one installation of a cluster has accounts
  stack = await lab.stack({ gateways: 2, operatorEnv: { ACCOUNTS: 'true' } }, plane)
  model = await CountingModel.start(lab.address.ip)
  const backends = [{ name: 'counting', url: model.url, messages: 'Native' }]
  await stack.serveModel('states-model', { backends, contextTokens: 8_192 })
  await stack.apply('Plan', PLAN)
})
afterAll(() => model.close())

describe('each state has its condition and its answer, and the same value works when it is undone', () => {
  it('a suspended account', async () => {
    const credential = await opened('suspended')
    await merge('Account', 'suspended', { state: 'Suspended' })
    await stack.untilCondition('Account', 'suspended', 'Ready', { status: 'False', reason: 'Suspended' })
    await stack.untilCondition('ApiKey', 'suspended-key', 'Ready', { status: 'False', reason: 'AccountSuspended' })
    await untilAll(credential, 401)
    await merge('Account', 'suspended', { state: 'Active' })
    await untilAll(credential, 200)
  })

  it('an address that waits for its verification: new keys wait, and others go on', async () => {
    const owner = (emailVerification: string) => ({ owner: { email: 'a@example.com', emailVerification } })
    const credential = await opened('pending', owner('Verified'))
    await merge('Account', 'pending', owner('Pending'))
    await stack.apply('ApiKey', 'pending-new', keyOf('pending'))
    await stack.untilCondition('ApiKey', 'pending-new', 'Accepted', { status: 'False', reason: 'EmailNotVerified' })
    await untilAll(credential, 200)
    await merge('Account', 'pending', owner('Verified'))
    await stack.untilCondition('ApiKey', 'pending-new', 'Ready')
    await untilAll(await stack.value('pending-new'), 200)
  })

  it('a namespace that the account admits no more', async () => {
    const credential = await opened('strict')
    await merge('Account', 'strict', { namespaces: { matchLabels: { 'kubernetes.io/metadata.name': 'another' } } })
    await stack.untilCondition('ApiKey', 'strict-key', 'Accepted', { status: 'False', reason: 'NamespaceNotAllowed' })
    await untilAll(credential, 401)
    await merge('Account', 'strict', account())
    await stack.untilCondition('ApiKey', 'strict-key', 'Ready')
    await untilAll(credential, 200)
  })

  it('a plan that was deleted by force: it goes on to hold, new keys wait, and a new Plan of the name replaces it', async () => {
    await stack.apply('Plan', 'states-gone', { models: ['states-*'] })
    const credential = await opened('planless', { planRef: { name: 'states-gone' } })
    await stack.kube.remove(stack.path('Plan', 'states-gone'))
    await stack.untilCondition('Account', 'planless', 'Accepted', { status: 'False', reason: 'PlanNotFound' })
    await untilAll(credential, 200)
    await stack.apply('ApiKey', 'planless-new', keyOf('planless'))
    await stack.untilCondition('ApiKey', 'planless-new', 'Accepted', { status: 'False', reason: 'PlanNotFound' })
    await stack.apply('Plan', 'states-gone', { models: ['states-*'] })
    await stack.untilCondition('ApiKey', 'planless-new', 'Ready')
    await untilAll(await stack.value('planless-new'), 200)
  })

  it('an account that was deleted, and created again: its name is used until an administrator names its former self', async () => {
    const credential = await opened('reborn')
    const former = (await stack.kube.get(stack.path('Account', 'reborn')))?.metadata.uid ?? ''
    await stack.kube.remove(stack.path('Account', 'reborn'))
    await stack.untilCondition('ApiKey', 'reborn-key', 'Accepted', { status: 'False', reason: 'AccountNotFound' })
    await untilAll(credential, 401)
    await stack.apply('Account', 'reborn', account())
    await stack.untilCondition('Account', 'reborn', 'Accepted', { status: 'False', reason: 'NameUsed' })
    await stack.untilCondition('ApiKey', 'reborn-key', 'Accepted', { status: 'False', reason: 'AccountNotAccepted' })
    await untilAll(credential, 401)
    await stack.kube.merge(stack.path('Account', 'reborn'), { metadata: { annotations: { 'headgate.dev/reopen-books': former } } })
    await stack.untilCondition('Account', 'reborn', 'Ready')
    await stack.untilCondition('ApiKey', 'reborn-key', 'Ready')
    await untilAll(credential, 200)
  })

  it('more keys than the plan allows: the youngest waits, and gets the place of a key that is revoked', async () => {
    await stack.apply('Plan', 'states-one', { maxKeys: 1 })
    await opened('crowded', { planRef: { name: 'states-one' } })
    await stack.apply('ApiKey', 'crowded-second', keyOf('crowded'))
    await stack.untilCondition('ApiKey', 'crowded-second', 'Accepted', { status: 'False', reason: 'TooManyKeys' })
    await stack.untilCondition('Account', 'crowded', 'KeyLimitReached')
    await stack.setState('crowded-key', 'Revoked')
    await stack.untilCondition('ApiKey', 'crowded-second', 'Ready')
  })
})

describe('thirty streams of an account', () => {
  const STREAMS = 30

  it('end within a second of its suspension, each with one error of its dialect', async () => {
    const credential = await opened('streaming')
    const begun: Array<Promise<void>> = []
    const texts = Array.from({ length: STREAMS }, (_, at) => {
      const started = Promise.withResolvers<void>()
      begun.push(started.promise)
      return streamed(stack.gateways[at % stack.gateways.length]?.url ?? '', credential, started.resolve)
    })
    await Promise.all(begun)
    const startedMs = performance.now()
    await merge('Account', 'streaming', { state: 'Suspended' })
    const ended = await Promise.all(texts)
    process.stdout.write(`${STREAMS} streams ended ${Math.round(performance.now() - startedMs)} ms after the suspension\n`)
    for (const text of ended) expect(text).toMatch(/data: \{"error":\{.*"code":"invalid_api_key"/)
    const halted = await stack.untilCondition('Account', 'streaming', 'Programmed')
    expect(halted.status?.programmed).toMatchObject({ ready: 2, total: 2 })
  })
})

/** One stream of a silent model server, until it ends. @param onFirst called with the first byte */
async function streamed(url: string, credential: string, onFirst: () => void): Promise<string> {
  const body = JSON.stringify(smallBody('states-model', { stream: true, messages: [{ role: 'user', content: 'be silent' }] }))
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${credential}` }
  const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
  let text = ''
  for await (const chunk of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString()
    onFirst()
  }
  return lab.record(text)
}

describe('the budget of an account', () => {
  const AMOUNT = 5_000
  const PER_CALL = 20

  it('goes on where it was when Redis is emptied at 80 %, and its spend is right afterwards', async () => {
    await stack.apply(
      'Account',
      'spender',
      account({ budgets: [{ name: 'all', unit: 'Tokens', window: 'Lifetime', amount: String(AMOUNT) }] }),
    )
    await stack.untilCondition('Account', 'spender', 'Ready')
    const credentials = [await stack.issueKey('spender-1', keyOf('spender')), await stack.issueKey('spender-2', keyOf('spender'))]
    let calls = 0
    /** One call of 7 tokens of prompt and 13 of answer. */
    const call = async (): Promise<Answer> => {
      const credential = credentials[calls % 2] ?? ''
      calls += 1
      const url = stack.gateways[calls % stack.gateways.length]?.url ?? ''
      return await ask(lab, url, { credential, model: 'states-model', fields: { max_tokens: 13 } })
    }
    let admitted = 0
    /** Calls until one is admitted or the budget is used up; other gateways may hold a part of the rest for a moment. */
    const next = async (): Promise<number> =>
      await waitFor('an answer that decides', async () => {
        const { status } = await call()
        if (status === 200) admitted += 1
        return (status === 200 || status === 402) && status
      })
    while (admitted < (0.8 * AMOUNT) / PER_CALL) expect(await next()).toBe(200)
    await usedBecomes(String(admitted * PER_CALL))
    await stack.redis.admin.flushall()
    while ((await next()) === 200);
    expect(admitted * PER_CALL).toBeLessThanOrEqual(AMOUNT)
    expect(admitted * PER_CALL).toBeGreaterThan(0.95 * AMOUNT) // the last calls do not fit: each holds more than it costs
    await usedBecomes(String(admitted * PER_CALL))
  })

  async function usedBecomes(used: string): Promise<void> {
    await eventually(
      async () => {
        const found = await stack.kube.get(stack.path('Account', 'spender'))
        expect(found?.status?.['usage']).toMatchObject([{ budget: 'all', used }])
      },
      { deadlineMs: 150_000 },
    )
  }
})
