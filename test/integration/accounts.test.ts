/**
 * Plans and accounts on a real API server with Redis and four gateways: what a key may name, what its account shares, how an edit reaches every
 * gateway, and what stays true without Redis.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { ask, type Answer } from '../support/ask.ts'
import { atOnce, numbered } from '../support/at-once.ts'
import { openLab } from '../support/lab.ts'
import type { Program } from '../support/program.ts'
import { projectionHead } from '../support/projection-view.ts'
import type { Stack } from '../support/stack.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const lab = openLab()
let stack: Stack
const PLAN = 'accounts-pro'

const inAccount = (name: string, spec: object = {}) => ({ accountRef: { name }, ...spec })
const account = (spec: object = {}) => ({
  planRef: { name: PLAN },
  namespaces: { matchLabels: { 'kubernetes.io/metadata.name': stack.namespace } },
  ...spec,
})
const call = (gateway: Program, credential: string, model: string): Promise<Answer> =>
  ask(lab, gateway.url, { credential, model, fields: { max_tokens: 1 } })
const errorOf = (answer: Answer): unknown => (JSON.parse(answer.text) as { error: unknown }).error
const listed = async (gateway: Program, credential: string): Promise<string[]> => {
  const answer = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${credential}` } })
  const { data } = (await answer.json()) as { data: Array<{ id: string }> }
  return data.map(({ id }) => id).toSorted()
}
const onEvery = async (credential: string, model: string, status: number): Promise<void> => {
  for (const gateway of stack.gateways) expect((await call(gateway, credential, model)).status, gateway.url).toBe(status)
}
const merge = (kind: 'Plan' | 'Account', name: string, spec: object) => stack.kube.merge(stack.path(kind, name), { spec })

beforeAll(async () => {
  stack = await lab.stack({ gateways: 4, operatorEnv: { ACCOUNTS: 'true' } })
  const backend = { name: 'llama', url: lab.address.modelServer.url, upstreamModel: 'tiny', messages: 'Native' }
  for (const name of ['a', 'b', 'c']) await stack.serveModel(name, { backends: [backend] })
  await stack.apply('Plan', PLAN, { models: ['a', 'b'] })
  await stack.apply('Account', 'acme', account())
  await stack.untilCondition('Account', 'acme', 'Ready')
})

describe('a key may name what its own list and the plan admit', () => {
  it('lists and admits these models alone, and answers one and the same 403 for all others', async () => {
    const credential = await stack.issueKey('bc', inAccount('acme', { models: ['b', 'c'] }))
    for (const gateway of stack.gateways) {
      expect(await listed(gateway, credential)).toEqual(['b'])
      expect((await call(gateway, credential, 'b')).status).toBe(200)
      const [outside, unknown] = [await call(gateway, credential, 'c'), await call(gateway, credential, 'd')]
      expect([outside.status, unknown.status]).toEqual([403, 403])
      expect(JSON.stringify(errorOf(outside)).replace('model c;', 'model d;')).toBe(JSON.stringify(errorOf(unknown)))
    }
  })
})

describe('an edit of a plan', () => {
  const KEYS = 200
  const ACCOUNTS = 50
  const STORM = 2_000

  it('reaches all keys of all accounts with one revision, while another account applies thousands of objects', async () => {
    const plan = 'accounts-wide'
    await stack.apply('Plan', plan, { models: ['a', 'b'] })
    const names = numbered('wide', KEYS).map((key, at) => ({ key, account: `wide-${at % ACCOUNTS}` }))
    await atOnce(names.slice(0, ACCOUNTS), (name) => stack.apply('Account', name.account, account({ planRef: { name: plan } })))
    const credentials = await atOnce(names, (name) => stack.issueKey(name.key, inAccount(name.account)))
    const head = await projectionHead(stack)
    const storm = atOnce(numbered('storm', STORM), (name) => stack.apply('ApiKey', name, inAccount('acme')))
    await sleep(1_000) // the storm is under way
    const startedMs = performance.now()
    await merge('Plan', plan, { models: ['a'] })
    await eventually(async () => {
      for (const gateway of stack.gateways) expect(await listed(gateway, credentials[0] ?? '')).toEqual(['a'])
    })
    process.stdout.write(`a narrowed plan held on 4 gateways after ${Math.round(performance.now() - startedMs)} ms\n`)
    await atOnce(credentials, async (credential, at) => {
      expect(await listed(stack.gateways[at % 4] ?? stack.gateway, credential)).toEqual(['a'])
    })
    await storm
    const plans = (await stack.redis.admin.xrange('hg:{proj}:log', `(${head.revision}-0`, '+')).filter(([, fields]) =>
      fields.includes('plan'),
    )
    expect(plans.length).toBe(1)
    await atOnce(numbered('storm', STORM), (name) => stack.kube.remove(stack.path('ApiKey', name)))
  }, 600_000)
})

describe('a suspended account', () => {
  it('stops all its keys on every gateway, also without Redis and from a cold start, and the same values work when it is Active again', async () => {
    await stack.apply('Account', 'halt', account())
    const credentials = [await stack.issueKey('halt-1', inAccount('halt')), await stack.issueKey('halt-2', inAccount('halt'))]
    for (const credential of credentials) await onEvery(credential, 'a', 200)
    await merge('Account', 'halt', { state: 'Suspended' })
    await eventually(async () => {
      for (const credential of credentials) await onEvery(credential, 'a', 401)
    })
    await stack.untilCondition('Account', 'halt', 'Ready', { status: 'False', reason: 'Suspended' })
    await eventually(async () => {
      const halted = await stack.kube.get(stack.path('Account', 'halt')) // a gateway without a heartbeat for 5 s does not count meanwhile
      expect(halted?.status?.['programmed']).toMatchObject({ ready: 4, total: 4 })
    })
    await stack.untilCondition('ApiKey', 'halt-1', 'Ready', { status: 'False', reason: 'AccountSuspended' })

    await stack.mirror.until('the Secrets of the accounts', (files) => [...files.keys()].some((name) => name.startsWith('accounts/')))
    await stack.redis.stop()
    const cold = await stack.addGateway({ env: {} })
    expect((await call(cold, credentials[0] ?? '', 'a')).status).toBe(401)
    await merge('Account', 'halt', { state: 'Active' })
    await eventually(async () => expect((await call(cold, credentials[0] ?? '', 'a')).status).toBe(200))
    await merge('Account', 'halt', { state: 'Suspended' })
    await eventually(async () => {
      for (const gateway of stack.gateways) expect((await call(gateway, credentials[1] ?? '', 'a')).status).toBe(401)
    })
    await stack.redis.start()
    await stack.remove(cold)
    await merge('Account', 'halt', { state: 'Active' })
    await eventually(async () => {
      for (const credential of credentials) await onEvery(credential, 'a', 200)
    })
  })
})

describe('what an account shares', () => {
  it('limits all its keys together, and a refusal names the owner and costs the key nothing', async () => {
    await stack.apply('Account', 'shared', account({ limits: { requestsPerMinute: 4 } }))
    const credentials = [await stack.issueKey('shared-1', inAccount('shared')), await stack.issueKey('shared-2', inAccount('shared'))]
    const answers: Answer[] = []
    for (let at = 0; at < 8; at += 1) {
      const ask = (): Promise<Answer> => call(stack.gateways[at % 4] ?? stack.gateway, credentials[at % 2] ?? '', 'a')
      // the test before has emptied Redis: 503 until the gateways have its functions again, and nothing is counted
      answers.push(
        await waitFor('an answer other than 503', async () => {
          const answer = await ask()
          return answer.status !== 503 && answer
        }),
      )
    }
    const refused = answers.filter(({ status }) => status === 429)
    expect([answers.filter(({ status }) => status === 200).length, refused.length]).toEqual([4, 4])
    for (const answer of refused) expect(errorOf(answer)).toMatchObject({ metadata: { limit: 'requests_per_minute', owner: 'account' } })
  })
})
