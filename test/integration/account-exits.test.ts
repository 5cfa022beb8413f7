/** An uninstall of an installation with accounts, for both values of `crds.keep`: the books stay, and a reinstall finds them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask } from '../support/ask.ts'
import { CountingModel } from '../support/counting-model.ts'
import { untilEveryGateway } from '../support/gateway-answers.ts'
import { openLab } from '../support/lab.ts'
import type { Stack } from '../support/stack.ts'
import { heldObjects, ownObjects, uninstall } from '../support/uninstall.ts'
import { eventually } from '../support/wait-for.ts'

const lab = openLab()
const NAMESPACE = 'account-exits'
let model: CountingModel
let stack: Stack

beforeAll(async () => {
  const plane = await lab.ownControlPlane() // one installation of a cluster has accounts
  stack = await lab.stack({ gateways: 1, namespaces: [NAMESPACE], operatorEnv: { ACCOUNTS: 'true' } }, plane)
  model = await CountingModel.start(lab.address.ip)
  await stack.serveModel('exits-model', { backends: [{ name: 'counting', url: model.url, messages: 'Native' }], contextTokens: 8_192 })
})
afterAll(() => model.close())

const BUDGET = { name: 'all', unit: 'Tokens', window: 'Lifetime', amount: '1000000' }
/** What one call costs: 7 tokens of prompt and 13 of answer. */
const COST = 20

/** An account that has spent, with its one key of the same name. @returns its Credential */
async function spent(name: string): Promise<string> {
  await stack.apply('Plan', name)
  await stack.apply('Account', name, specOf(name))
  await stack.untilCondition('Account', name, 'Ready')
  const credential = await stack.issueKey(name, { accountRef: { name } })
  const answer = await ask(lab, stack.gateway.url, { credential, model: 'exits-model', fields: { max_tokens: 13 } })
  expect(answer.status, answer.text).toBe(200)
  await untilUsed(name)
  return credential
}

function specOf(name: string): object {
  const namespaces = { matchLabels: { 'kubernetes.io/metadata.name': NAMESPACE } }
  return { planRef: { name }, namespaces, budgets: [BUDGET] }
}

async function untilUsed(name: string): Promise<void> {
  await eventually(
    async () => {
      const found = await stack.kube.get(stack.path('Account', name))
      expect(found?.status?.['usage']).toMatchObject([{ budget: 'all', used: String(COST) }])
    },
    { deadlineMs: 150_000 },
  )
}

describe('an uninstall of an installation with accounts', () => {
  it('that keeps the definitions leaves keys and books: a reinstall admits the same value with the same spend', async () => {
    const name = 'exits-kept'
    const credential = await spent(name)
    const { code, text } = await uninstall(stack, '--keep')
    expect([code, await heldObjects(stack)], text).toEqual([0, []])
    await stack.operator.stop()
    await stack.redis.admin.flushall()
    await stack.operator.start()
    await stack.untilCondition('Account', name, 'Ready')
    await untilEveryGateway(stack.gateways, credential, 200)
    await untilUsed(name)
  })

  it('that deletes the definitions leaves the books alone: a new Account of the name goes on with the spend, or is refused', async () => {
    const name = 'exits-purged'
    await spent(name)
    const former = (await stack.kube.get(stack.path('Account', name)))?.metadata.uid ?? ''
    const { code, text } = await uninstall(stack, '--purge')
    expect([code, await heldObjects(stack)], text).toEqual([0, []])
    expect(text).toContain('the books of accounts')
    await stack.operator.stop()
    const kept = await ownObjects(stack)
    expect(kept).toContain('hg-installation')
    expect(kept.filter((one) => !/^hg-(installation|(balances|spend|usage|history)-)/.test(one))).toEqual([])
    // the API server deletes the objects together with their definitions
    for (const kind of ['ApiKey', 'Account', 'Plan'] as const) await stack.kube.remove(stack.path(kind, name))
    await stack.operator.start()
    await stack.apply('Plan', name)
    await stack.apply('Account', name, specOf(name))
    await stack.untilCondition('Account', name, 'Accepted', { status: 'False', reason: 'NameUsed' })
    await stack.kube.merge(stack.path('Account', name), { metadata: { annotations: { 'headgate.dev/reopen-books': former } } })
    await stack.untilCondition('Account', name, 'Ready')
    await stack.issueKey('again', { accountRef: { name } })
    await untilUsed(name)
  })
})
