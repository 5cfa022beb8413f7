/**
 * Usage and money in the dashboard over a real API server, operator and gateway: what people see is what was used and paid. Dashboard and payments have
 * the rights of the chart and no others. Stripe is a stand-in.
 */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accounts } from '#api/resources.ts'
import { parseMicros, type Micros } from '#contract/values/micros.ts'
import { InformerFactory } from '#kube/informer-factory.ts'
import { systemClock } from '#platform/clock.ts'
import { createLog } from '#platform/log.ts'
import { creditName } from '../../dashboard/payments/credits-of-payment.ts'
import { createPayments } from '../../dashboard/payments/payments.ts'
import { StubStripe } from '../../examples/stub-stripe/stub-stripe.ts'
import { ask } from '../support/ask.ts'
import type { ControlPlane } from '../support/control-plane.ts'
import { CountingModel } from '../support/counting-model.ts'
import { applyDashboardRights, writeUsageToken } from '../support/dashboard-rights.ts'
import { DashboardWorld, type FormBrowser } from '../support/dashboard-world.ts'
import { openLab } from '../support/lab.ts'
import { listening } from '../support/listening.ts'
import { realKubePort } from '../support/real-credit-books.ts'
import type { Stack } from '../support/stack.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'
import { eventually } from '../support/wait-for.ts'

const lab = openLab()
const folder = temporaryFolderOfFile()
const KEYS = 'headgate-accounts'
const TOKEN = 'a token of the tests that is long enough'
const CREDITS = '/apis/headgate.dev/v1alpha1/credits'
const micros = (text: string): Micros => parseMicros(text) as Micros
const silent = createLog('test', 'error', { write: () => undefined }).log
let plane: ControlPlane
let stack: Stack
let model: CountingModel
let stripe: StubStripe
let world: DashboardWorld
let maya: FormBrowser
let account = ''
let webhooks = ''
const closers: (() => unknown)[] = []

async function kubeAs(name: string): Promise<ReturnType<typeof realKubePort>> {
  const file = join(folder, `${name}.kubeconfig`)
  await plane.kubeconfigFor('headgate', name, file)
  return realKubePort(file)
}

beforeAll(async () => {
  plane = await lab.ownControlPlane()
  stack = await lab.stack({ gateways: 1, namespaces: [KEYS], operatorEnv: { ACCOUNTS: 'true' } }, plane)
  model = await CountingModel.start(lab.address.ip)
  const pricing = { inputPerMillion: '1000', cachedInputPerMillion: '500', outputPerMillion: '2000' }
  const backends = [{ name: 'counting', url: model.url, messages: 'Native' }]
  await stack.serveModel('counted', { backends, pricing, contextTokens: 8_192 })
  await stack.apply('Plan', 'default')
  await applyDashboardRights(plane)
  await writeUsageToken(plane, join(folder, 'token'))

  stripe = new StubStripe({ key: 'sk_live_of_the_tests', webhookSecret: 'whsec_of_the_tests_0123456789' })
  stripe.url = `http://127.0.0.1:${await listening(stripe.server)}`
  const payments = createPayments({
    stripe: {
      ...{ key: 'sk_live_of_the_tests', webhookSecret: 'whsec_of_the_tests_0123456789', installation: 'tests', currency: 'USD' },
      ...{ dashboardURL: 'http://localhost:8090', apiURL: stripe.url },
    },
    ...{ isLive: true, token: TOKEN, kube: await kubeAs('headgate-payments'), clock: systemClock, log: silent },
    metrics: { event: () => undefined, alarm: () => undefined, swept: () => undefined },
  })
  const checkout = `http://127.0.0.1:${await listening(payments.checkout)}`
  webhooks = `http://127.0.0.1:${await listening(payments.webhooks)}/webhooks/stripe`
  for (const server of [stripe.server, payments.checkout, payments.webhooks])
    closers.push(
      () => server.closeAllConnections(),
      () => server.close(),
    )

  const kube = await kubeAs('headgate-dashboard')
  const watches = new InformerFactory({ source: kube, clock: systemClock, logger: silent, random: Math.random }, [])
  const informer = watches.createInformer(accounts)
  watches.start()
  closers.push(() => watches.stop())
  const amounts = { amounts: ['10'], least: micros('5'), most: micros('1000') }
  world = await DashboardWorld.open({
    folder,
    kube: () => kube,
    informer: () => informer,
    money: {
      ...{ url: stack.operator.usageUrl, tokenFile: join(folder, 'token'), currency: 'USD' },
      payments: { provider: 'stripe', url: checkout, token: TOKEN, ...amounts },
    },
  })
  closers.push(() => world[Symbol.asyncDispose]())
  maya = await world.person('maya@fernwood.example')
  account = (await maya.get('/api/me')).json().account.name
})
afterAll(async () => {
  for (const close of closers.toReversed()) await close()
  await model?.close()
})

const billing = async () => (await maya.get('/api/billing')).json()
const call = async (credential: string): Promise<number> =>
  (await ask(lab, stack.gateway.url, { credential, model: 'counted', fields: { max_tokens: 3 } })).status
async function deliver(): Promise<number> {
  const event = stripe.state.events.at(-1)
  if (event === undefined) throw new Error('nothing has happened')
  const { body, signature } = stripe.signed(event)
  return (await fetch(webhooks, { method: 'POST', headers: { 'stripe-signature': signature }, body })).status
}

/** The ledger of the page adds up to the balance that the Account shows. */
async function sumsUp(balance: RegExp): Promise<void> {
  await eventually(async () => {
    const { balance: shown, movements } = await billing()
    expect(shown).toMatch(balance)
    const total = movements.reduce((sum: number, { amount }: { amount: string }) => sum + Math.round(Number(amount) * 1_000_000), 0)
    expect(total).toBe(Math.round(Number(shown) * 1_000_000))
  })
}

describe('a person', () => {
  let credential = ''
  let payment = ''

  it('pays once for 50 equal events at once and the way back, and the balance has it', async () => {
    await stack.untilCondition('Account', account, 'Programmed')
    const { url } = (await maya.call('POST', '/api/billing/top-up', { amount: '10', attempt: 'attempt-of-maya' })).json()
    const session = String(url).split('/').at(-1) ?? ''
    payment = stripe.state.pay(session)
    const statuses = await Promise.all([
      ...Array.from({ length: 50 }, deliver),
      maya.call('POST', '/api/billing/top-up/check', { session }).then(({ status }) => status),
    ])
    expect(new Set(statuses)).toEqual(new Set([200]))
    const stored = (await plane.admin.list(CREDITS)).filter(({ spec }) => (spec as { reference?: string }).reference === payment)
    expect(stored.map(({ metadata }) => metadata.name)).toEqual([creditName(payment)])
    await sumsUp(/^10(\.00)?$/)
  })

  it('sees what the model server reported, by key and to the token', async () => {
    credential = await stack.issueKey('checkout', { accountRef: { name: account }, models: ['counted'] }, KEYS)
    for (let at = 0; at < 20; at += 1) expect(await call(credential)).toBe(200)
    const { requests, inputTokens, cachedInputTokens, outputTokens } = model.reported
    await eventually(async () => {
      const { rows, incomplete, currency } = (await maya.get('/api/usage')).json()
      expect([currency, incomplete]).toEqual(['USD', []])
      expect(rows).toEqual([
        expect.objectContaining({ key: 'checkout', keyName: 'checkout', requests, inputTokens, cachedInputTokens, outputTokens }),
      ])
    })
    const spent = 1_000 * (inputTokens - cachedInputTokens) + 500 * cachedInputTokens + 2_000 * outputTokens
    await eventually(async () => expect(Number((await billing()).spentThisMonth)).toBeCloseTo(spent / 1_000_000, 6))
    await sumsUp(/^9\.\d+$/)
    expect((await maya.get('/api/billing/ledger.csv')).text).toContain(`TopUp,${creditName(payment)},${payment},10`)
  })

  it('reads 402 from the key after the whole payment was refunded, and the page shows the debt', async () => {
    stripe.state.refund(payment, 1_000)
    expect(await deliver()).toBe(200)
    await eventually(async () => expect(await call(credential)).toBe(402))
    await sumsUp(/^-0\.\d+$/)
    expect((await billing()).movements[0]).toMatchObject({ type: 'Refund', amount: expect.stringMatching(/^-10(\.00)?$/) })
  })

  it('sees nothing of another account', async () => {
    const other = await world.person('sam@fernwood.example')
    expect((await other.get('/api/usage')).json().rows).toEqual([])
    expect((await other.get('/api/billing')).json()).toMatchObject({ balance: '0.00', movements: [] })
  })
})

describe('faults', () => {
  it('a token of another audience shows nothing, and the next token is read from the file', async () => {
    await writeUsageToken(plane, join(folder, 'token'), 'another')
    expect((await maya.get('/api/billing')).status).toBe(503)
    await writeUsageToken(plane, join(folder, 'token'))
    expect((await maya.get('/api/billing')).status).toBe(200)
  })

  it('while the operator is away the page says so, and the rest of the dashboard works', async () => {
    await stack.operator.kill()
    expect((await maya.get('/api/usage')).json().error).toMatchObject({ code: 'unavailable' })
    expect((await maya.get('/api/me')).status).toBe(200)
    await stack.operator.start()
    await eventually(async () => expect((await maya.get('/api/billing')).status).toBe(200))
  })

  it('a thief of the token of payments can create no Credit of another form, and read or change nothing else', async () => {
    const thief = await plane.as('headgate', 'headgate-payments')
    const credit = (name: string, spec: object): object => ({
      ...{ apiVersion: 'headgate.dev/v1alpha1', kind: 'Credit', metadata: { name } },
      spec: { accountRef: { name: account, uid: 'uid-1' }, amount: '1', type: 'TopUp', reference: 'pi_1', ...spec },
    })
    const name = `stripe-${'0'.repeat(40)}`
    for (const object of [credit('gift', {}), credit(name, { type: 'Grant' }), credit(name, { reference: undefined })])
      await expect(thief.call('POST', `${CREDITS}?dryRun=All`, object)).rejects.toThrow(/payments program of Headgate may/)
    await thief.call('POST', `${CREDITS}?dryRun=All`, credit(name, {}))
    for (const [method, path] of [
      ['DELETE', `${CREDITS}/${creditName('x')}`],
      ['PATCH', `${CREDITS}/${creditName('x')}`],
      ['GET', '/apis/headgate.dev/v1alpha1/accounts'],
      ['GET', '/api/v1/namespaces/headgate/secrets'],
    ] as const)
      expect(
        await thief.answer(
          method,
          path,
          method === 'PATCH' ? {} : undefined,
          method === 'PATCH' ? 'application/merge-patch+json' : undefined,
        ),
      ).toMatchObject({
        status: 403,
      })
    await thief.close()
  })
})
