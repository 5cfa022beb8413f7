/** An uninstall of an installation with Credits, for both values of `crds.keep`: a reinstall finds the balance, and no Credit counts twice. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask } from '../support/ask.ts'
import { noteBalance } from '../support/balance-search.ts'
import { CountingModel } from '../support/counting-model.ts'
import { conditionOf, objectPath, type TestObject } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import type { Stack } from '../support/stack.ts'
import { heldObjects, ownObjects, uninstall } from '../support/uninstall.ts'
import { eventually } from '../support/wait-for.ts'

const lab = openLab()
const NAMESPACE = 'credit-exits'
const MODEL = 'exits-model'
const TOP_UP = '4638.271954'
/** Without what one call costs: 7 tokens of prompt and 13 of answer, at 1 each. */
const LEFT = '4618.271954'
/** The same with one Credit of the smallest amount, which brings the status up to date. */
const MORE = '4618.271955'
const SPENT = '20.00'
let model: CountingModel
let stack: Stack

beforeAll(async () => {
  for (const amount of [TOP_UP, LEFT, MORE]) noteBalance(lab.folder, amount)
  const plane = await lab.ownControlPlane() // one installation of a cluster has accounts
  model = await CountingModel.start(lab.address.ip)
  stack = await lab.stack({ gateways: 1, namespaces: [NAMESPACE], operatorEnv: { ACCOUNTS: 'true' } }, plane)
  const pricing = { inputPerMillion: '1000000', outputPerMillion: '1000000' }
  await stack.serveModel(MODEL, { backends: [{ name: 'counting', url: model.url }], contextTokens: 8_192, pricing })
})
afterAll(() => model.close())

const pathOf = (credit: string): string => objectPath('headgate.dev/v1alpha1', 'Credit', '', credit)

/** A Credit from its manifest, until the operator says what became of it. */
async function pay(account: string, name: string, reason: string, amount = TOP_UP): Promise<void> {
  const spec = { accountRef: { name: account }, amount, type: 'TopUp' }
  await stack.kube.apply({ apiVersion: 'headgate.dev/v1alpha1', kind: 'Credit', metadata: { name }, spec })
  await eventually(async () => expect(conditionOf(await stack.kube.get(pathOf(name)), 'Booked')?.reason).toBe(reason))
}

/** The objects of an account, as Git has them. */
async function applyAccount(name: string): Promise<TestObject> {
  await stack.apply('Plan', name)
  const namespaces = { matchLabels: { 'kubernetes.io/metadata.name': NAMESPACE } }
  return await stack.apply('Account', name, { planRef: { name }, billing: 'Prepaid', namespaces })
}

/** An account with one Credit and one key of its name, and one call that was paid. @returns the Credential, and the uid of the Account */
async function spent(name: string): Promise<{ readonly credential: string; readonly uid: string }> {
  const { metadata } = await applyAccount(name)
  await pay(name, name, 'Booked')
  await stack.untilCondition('Account', name, 'Ready')
  const credential = await stack.issueKey(name, { accountRef: { name } })
  await untilAnswer(credential, 13, 200)
  await untilBalance(name, LEFT)
  return { credential, uid: String(metadata.uid) }
}

async function untilAnswer(credential: string, tokens: number, status: number): Promise<void> {
  await eventually(async () => {
    const answer = await ask(lab, stack.gateway.url, { credential, model: MODEL, fields: { max_tokens: tokens } })
    expect(answer.status, answer.text).toBe(status)
  })
}

async function untilBalance(name: string, amount: string): Promise<void> {
  await eventually(
    async () =>
      expect((await stack.kube.get(stack.path('Account', name)))?.status).toMatchObject({
        balance: { amount, currency: 'USD' },
        spent: SPENT,
      }),
    { deadlineMs: 150_000 },
  )
}

describe('an uninstall of an installation with Credits', () => {
  it('that keeps the definitions: a reinstall on an empty Redis finds the balance, and a Credit that is created again adds nothing', async () => {
    const name = 'credits-kept'
    const { credential } = await spent(name)
    const { code, text } = await uninstall(stack, '--keep')
    expect([code, await heldObjects(stack)], text).toEqual([0, []])
    await stack.operator.stop()
    await stack.redis.admin.flushall()
    await stack.kube.remove(pathOf(name))
    await stack.operator.start()
    await stack.untilCondition('Account', name, 'Ready')
    await untilBalance(name, LEFT)
    await pay(name, name, 'Booked')
    await pay(name, `${name}-more`, 'Booked', '0.000001')
    await untilBalance(name, MORE)
    await untilAnswer(credential, 4_700, 402) // twice the Credit would pay for it
  })

  it('that deletes the definitions keeps the books: manifests applied again pay once, and the name goes on with its balance', async () => {
    const name = 'credits-purged'
    const { uid } = await spent(name)
    const { code, text } = await uninstall(stack, '--purge')
    expect([code, await heldObjects(stack)], text).toEqual([0, []])
    expect(text).toContain('hg-credits-*')
    await stack.operator.stop()
    await stack.redis.admin.flushall()
    const kept = await ownObjects(stack)
    expect(kept.filter((one) => one.startsWith('hg-credits-'))).not.toEqual([])
    expect(kept.filter((one) => !/^hg-(installation|(balances|credits|spend|usage|history)-)/.test(one))).toEqual([])
    // the API server deletes the objects together with their definitions
    for (const kind of ['ApiKey', 'Account', 'Plan'] as const) await stack.kube.remove(stack.path(kind, name))
    await stack.kube.remove(pathOf(name))
    await stack.operator.start()
    await applyAccount(name)
    await stack.untilCondition('Account', name, 'Accepted', { status: 'False', reason: 'NameUsed' })
    await pay(name, name, 'Booked')
    await stack.kube.merge(stack.path('Account', name), { metadata: { annotations: { 'headgate.dev/reopen-books': uid } } })
    await stack.untilCondition('Account', name, 'Ready')
    await untilBalance(name, LEFT)
    await stack.kube.remove(pathOf(name))
    await pay(name, name, 'IdUsed', '5000') // the id of the payment stays known, too
    await pay(name, `${name}-more`, 'Booked', '0.000001')
    await untilBalance(name, MORE)
    const credential = await stack.issueKey('again', { accountRef: { name } })
    await untilAnswer(credential, 4_700, 402)
  })
})
