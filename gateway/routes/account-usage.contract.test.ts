/** What is counted for an account, call by call: real front, with a fake in place of the backends. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { USAGE_COLUMNS } from '#contract/usage/usage-report.ts'
import { modelRecord, startFront, type FrontGateway } from '../../test/support/front-gateway.ts'
import { GatewayError } from '../errors.ts'
import type { Outcome } from '../upstream/forward-job.ts'

const ASK = { model: 'llama', messages: [{ role: 'user', content: 'hi' }] }
const common = { version: 1, revision: 1, generation: 1 } as const
const pricing = { inputPerMillion: 1_000_000, cachedInputPerMillion: 500_000, outputPerMillion: 2_000_000 }
const everyPrice = { ...pricing, cacheWritePerMillion: 3_000_000, perRequest: 100 }
const used = { inputTokens: 10, cachedInputTokens: 4, outputTokens: 5, isEstimated: false }
let front: FrontGateway
let outcome: () => Outcome

beforeEach(async () => {
  outcome = () => ({ usage: used, wasSent: true, error: undefined })
  front = await startFront({
    models: [{ ...modelRecord('llama'), pricing }, { ...modelRecord('cached'), pricing: everyPrice }, modelRecord('unpriced')],
    forward: (job) => {
      const { error, wasSent, usage } = outcome()
      if (wasSent) job.exchange.response.writeHead(200).end()
      return Promise.resolve({ error, wasSent, usage })
    },
  })
  front.plans.set('p1', { kind: 'plan', ...common, uid: 'p1', name: 'pro', models: ['*'] })
  front.accounts.set('a1', {
    kind: 'account',
    ...common,
    uid: 'a1',
    name: 'acme',
    state: 'Active',
    plan: 'p1',
    ledger: 'acme-in-the-ledger',
  })
})
afterEach(() => front.stop())

const issue = (change: Parameters<FrontGateway['issue']>[0] = {}): string => front.issue({ uid: 'k1', account: 'a1', ...change })

async function send(key: string, body: unknown = ASK): Promise<number> {
  const response = await fetch(`${front.base}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  await response.text()
  return response.status
}

/** Columns that are not 0, by model. */
function counted(): Record<string, Record<string, number>> {
  const rows = front.usage.reports().flatMap(({ account, rows: some }) => some.map((row) => ({ account, ...row })))
  expect(rows.every(({ account, key }) => account === 'acme-in-the-ledger' && key === 'k1')).toBe(true)
  return Object.fromEntries(
    rows.map(({ model, counts }) => [
      model,
      Object.fromEntries(USAGE_COLUMNS.flatMap((column, at) => (counts[at] ? [[column, counts[at]]] : []))),
    ]),
  )
}

test('a call counts what its server reported, and its cost by the price of the model, also without any limit', async () => {
  const key = issue()
  expect([await send(key), await send(key)]).toEqual([200, 200])
  expect(front.jobs.every(({ isMetered }) => isMetered)).toBe(true)
  expect(counted()).toEqual({ llama: { requests: 2, inputTokens: 20, cachedInputTokens: 8, outputTokens: 10, costMicros: 36 } })
})

test('tokens that went to a cache and the call itself cost what the model says; the count of cached tokens has only those that came from one', async () => {
  outcome = () => ({ usage: { ...used, cacheWrittenTokens: 5 }, wasSent: true, error: undefined })
  await send(issue(), { ...ASK, model: 'cached' })
  const costMicros = 1 * 1 + 4 * 0.5 + 5 * 3 + 5 * 2 + 100
  expect(counted()).toEqual({ cached: { requests: 1, inputTokens: 10, cachedInputTokens: 4, outputTokens: 5, costMicros } })
})

test('a server that did no work costs nothing, not even the price of a call', async () => {
  outcome = () => ({ usage: undefined, wasSent: false, error: new GatewayError('backendError') })
  await send(issue(), { ...ASK, model: 'cached' })
  expect(counted()).toEqual({ cached: { requests: 1, failed: 1 } })
})

test('a model without a price costs nothing, and an estimate is marked as one', async () => {
  outcome = () => ({ usage: { ...used, isEstimated: true }, wasSent: true, error: undefined })
  await send(issue(), { ...ASK, model: 'unpriced' })
  expect(counted()).toEqual({ unpriced: { requests: 1, inputTokens: 10, cachedInputTokens: 4, outputTokens: 5, estimated: 1 } })
})

test.each<readonly [string, Outcome, Record<string, number>]>([
  [
    'a stream that broke',
    { usage: used, wasSent: true, error: new GatewayError('streamBroken') },
    { requests: 1, inputTokens: 10, cachedInputTokens: 4, outputTokens: 5, costMicros: 18, failed: 1 },
  ],
  ['a server that failed', { usage: undefined, wasSent: false, error: new GatewayError('backendError') }, { requests: 1, failed: 1 }],
  ['no server', { usage: undefined, wasSent: false, error: new GatewayError('noBackend') }, { failed: 1 }],
])('%s counts as failed, with the work that was done', async (_, ended, expected) => {
  outcome = () => ended
  await send(issue())
  expect(counted()).toEqual({ llama: expected })
})

test('refusals count by reason, once each', async () => {
  const key = issue({ models: [['llama']], limits: { requestsPerMinute: 1 } })
  expect([await send(key), await send(key)]).toEqual([200, 429])
  expect([await send(key, { ...ASK, model: 'other' }), await send(key, '{')]).toEqual([403, 400])
  expect(counted()).toMatchObject({ llama: { requests: 1, refusedRate: 1 }, '': { refusedModel: 1, refusedOther: 1 } })
})

test('the refusals of a storm count too, although their bodies are not read', async () => {
  const key = issue({ limits: { requestsPerMinute: 1 } })
  for (let at = 0; at < 25; at += 1) await send(key)
  const { llama, '': unread } = counted()
  expect([llama?.['requests'], (llama?.['refusedRate'] ?? 0) + (unread?.['refusedRate'] ?? 0)]).toEqual([1, 24])
})

test('nothing is counted for a key without an account', async () => {
  await send(front.issue())
  expect(front.usage.isEmpty).toBe(true)
})
