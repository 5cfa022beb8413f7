/** Keys whose namespace is left out of the list by mistake, whose edit does not fit, or whose finalizer is removed by force. */
import { beforeAll, describe, expect, it } from 'vitest'
import { ask } from '../support/ask.ts'
import { durableSpend } from '../support/durable-bytes.ts'
import { untilEveryGateway } from '../support/gateway-answers.ts'
import type { TestObject } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { LyingProxy } from '../support/lying-proxy.ts'
import type { Stack } from '../support/stack.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const MODEL = 'kept-model'
const BUDGET = { name: 'life', amount: '100000', unit: 'Tokens', window: 'Lifetime', onExceeded: 'Block' } as const
const SOON = { everyMs: 100 }
/** Time for which a refused edit is watched, ms: several retries, and two checks of the projection. */
const WATCHED_MS = 8_000

const lab = openLab()
let stack: Stack

beforeAll(async () => {
  stack = await lab.stack({ namespaces: ['kept-shop', 'kept-other'], operatorEnv: { MAX_MODEL_BYTES_PER_NAMESPACE: '8192' } })
  await stack.serveModel(MODEL, { maxOutputTokens: 64 })
})

const apiKey = (name: string): Promise<TestObject | undefined> => stack.kube.get(stack.path('ApiKey', name))
const calls = async (credential: string): Promise<number> =>
  (await ask(lab, stack.gateway.url, { credential, model: MODEL, fields: { max_tokens: 8 } })).status

async function restartWith(env: Readonly<Record<string, string>>): Promise<void> {
  await stack.operator.stop()
  await stack.operator.start(env)
  await waitFor('the operator to work', async () => (await stack.operator.metric('headgate_operator_projection_revision')) !== undefined)
}

describe('a key of a namespace that a typo leaves out of the list', () => {
  it('works on with its model, is counted, and has its value and its spend after the correction', async () => {
    const credential = await stack.issueKey('bot', { budgets: [BUDGET] })
    const uid = (await apiKey('bot'))?.metadata.uid ?? ''
    const durable = async (): Promise<number> =>
      [...((await durableSpend(stack)).get(uid)?.spent.values() ?? [])].reduce((a, b) => a + b, 0)
    expect(await calls(credential)).toBe(200)
    await eventually(async () => expect(await durable()).toBeGreaterThan(0), SOON)
    const before = await durable()

    await restartWith({ WATCH_NAMESPACES: 'kept-other,kept-shpo' })
    await eventually(
      async () => expect(await stack.operator.metric('headgate_operator_unwatched_keys{namespace="kept-shop"}')).toBe(1),
      SOON,
    )
    expect(await calls(credential)).toBe(200)
    await eventually(async () => expect(await durable()).toBeGreaterThan(before), SOON)
    expect(stack.operator.process.log()).toContain('scope.formerNamespaces')

    const spent = await durable()
    await restartWith({})
    expect([await calls(credential), await stack.value('bot')]).toEqual([200, credential])
    await stack.untilCondition('ApiKey', 'bot', 'Ready')
    await eventually(async () => expect(await durable()).toBeGreaterThan(spent), SOON)
    expect(await stack.operator.metric('headgate_operator_orphans_total')).toBe(0)
  })

  it('is revoked once the administrator gives the namespace up', async () => {
    const other = await stack.issueKey('given-up', { budgets: [BUDGET] }, 'kept-other')
    await restartWith({ WATCH_NAMESPACES: 'kept-shop', FORMER_NAMESPACES: 'kept-other' })
    await untilEveryGateway(stack.gateways, other, 401)
    await restartWith({})
  })
})

describe('a key that a wrong list of the API server lacks', () => {
  it('keeps its value and its spend, and works on', async () => {
    const lied = await lab.stack({ namespaces: ['kept-lied'], operators: 0, gateways: 0 })
    const proxy = await LyingProxy.start(lied.site.plane)
    try {
      const operator = await lied.addOperator({ apiServer: proxy.url })
      await lied.addGateway()
      await lied.publishGateways()
      await lied.serveModel(MODEL, { maxOutputTokens: 64 })
      const credential = await lied.issueKey('listed', { budgets: [BUDGET] })
      const answer = async (): Promise<number> =>
        (await ask(lab, lied.gateway.url, { credential, model: MODEL, fields: { max_tokens: 8 } })).status
      const spent = async (): Promise<number> => {
        const uid = (await lied.kube.get(lied.path('ApiKey', 'listed')))?.metadata.uid ?? ''
        return [...((await durableSpend(lied)).get(uid)?.spent.values() ?? [])].reduce((a, b) => a + b, 0)
      }
      expect(await answer()).toBe(200)
      await eventually(async () => expect(await spent()).toBeGreaterThan(0), SOON)
      const before = await spent()

      proxy.hide('listed')
      await waitFor('a wrong list', () => proxy.lies > 0)
      const since = performance.now()
      await waitFor('some turns of the ledger', () => performance.now() - since > WATCHED_MS)
      await eventually(async () => expect(await answer()).toBe(200), SOON)
      await eventually(async () => expect(await spent()).toBeGreaterThan(before), SOON)

      proxy.hide(undefined)
      await lied.untilCondition('ApiKey', 'listed', 'Ready')
      expect([await answer(), await lied.value('listed')]).toEqual([200, credential])
      expect(await operator.metric('headgate_operator_orphans_total')).toBe(0)
      const object = await lied.kube.get(lied.path('ApiKey', 'listed'))
      expect(JSON.stringify(object)).not.toContain('SpendUncertain')
    } finally {
      proxy.close()
    }
  })
})

describe('an edit for which the share of the namespace has no room', () => {
  it('costs no revision while nothing changes, and the key keeps its policy', async () => {
    const credential = await stack.issueKey('full', { models: [MODEL] })
    const models = Array.from({ length: 31 }, (_, n) => `${n}`.padEnd(250, 'm'))
    await stack.issueKey('filler', { models })
    await stack.apply('ApiKey', 'full', { models: [MODEL, 'a'.repeat(250), 'b'.repeat(250)] })
    await stack.untilCondition('ApiKey', 'full', 'Programmed', { status: 'False', reason: 'KeyringFull' })
    const revision = await stack.operator.metric('headgate_operator_projection_revision')
    const version = (await apiKey('full'))?.metadata.resourceVersion
    const since = performance.now()
    await waitFor('some retries', () => performance.now() - since > WATCHED_MS)
    expect(await stack.operator.metric('headgate_operator_projection_revision')).toBe(revision)
    expect((await apiKey('full'))?.metadata.resourceVersion).toBe(version)
    expect(await calls(credential)).toBe(200)
  })
})

describe('a key whose finalizer was removed by force', () => {
  it('stops working although another finalizer holds the deletion', async () => {
    const credential = await stack.issueKey('forced')
    const path = stack.path('ApiKey', 'forced')
    await stack.operator.kill('SIGSTOP')
    await stack.kube.merge(path, { metadata: { finalizers: ['example.com/audit'] } })
    await stack.kube.remove(path)
    expect(await calls(credential)).toBe(200)
    await stack.operator.kill('SIGCONT')
    await untilEveryGateway(stack.gateways, credential, 401)
    expect((await apiKey('forced'))?.metadata.finalizers).toEqual(['example.com/audit'])
    await stack.kube.merge(path, { metadata: { finalizers: [] } })
    await eventually(async () => expect(await apiKey('forced')).toBeUndefined(), SOON)
  })
})
