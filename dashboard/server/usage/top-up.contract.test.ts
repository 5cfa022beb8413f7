/** How a person pays, over the payments program and a stand-in for Stripe. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { accounts, credits } from '#api/resources.ts'
import { systemClock } from '#platform/clock.ts'
import { createLog } from '#platform/log.ts'
import { StubStripe } from '../../../examples/stub-stripe/stub-stripe.ts'
import { ObjectStore } from '../../../standalone/object-store.ts'
import { DashboardWorld, type FormBrowser, type Visit } from '../../../test/support/dashboard-world.ts'
import { listening } from '../../../test/support/listening.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'
import { parseMicros, type Micros } from '#contract/values/micros.ts'
import { createPayments } from '../../payments/payments.ts'

const MAYA = 'maya@fernwood.example'
const TOKEN = 'a token of the tests that is long enough'
const ATTEMPT = '7f9c2b1e-0d55-4a53-9a6e-3b2c3c1d9e10'
const micros = (text: string): Micros => parseMicros(text) as Micros

interface Paying {
  readonly world: DashboardWorld
  readonly stripe: StubStripe
  /** Ends the payments program. */
  readonly endPayments: () => void
}

async function opened(): Promise<Paying> {
  const store = new ObjectStore()
  const key = 'sk_test_of_the_tests'
  const stripe = new StubStripe({ key, webhookSecret: 'whsec_of_the_tests_0123456789' })
  stripe.url = `http://127.0.0.1:${await listening(stripe.server)}`
  const payments = createPayments({
    stripe: {
      ...{ key, webhookSecret: 'whsec_of_the_tests_0123456789', installation: 'tests', currency: 'EUR' },
      ...{ dashboardURL: 'http://localhost:8090', apiURL: stripe.url },
    },
    ...{ isLive: false, token: TOKEN, kube: store, clock: systemClock },
    log: createLog('payments', 'error', { write: () => undefined }).log,
    metrics: { event: () => undefined, alarm: () => undefined, swept: () => undefined },
  })
  const url = `http://127.0.0.1:${await listening(payments.checkout)}`
  const endPayments = (): void => {
    payments.checkout.close()
    payments.checkout.closeAllConnections()
  }
  const amounts = { amounts: ['10', '25'], least: micros('5'), most: micros('1000') }
  const money = { payments: { provider: 'stripe', url, token: TOKEN, ...amounts } } as const
  const world = await DashboardWorld.open({ folder: temporaryFolder(), store, money })
  onTestFinished(async () => {
    await world[Symbol.asyncDispose]()
    endPayments()
    stripe.server.close()
    stripe.server.closeAllConnections()
  })
  return { world, stripe, endPayments }
}

const topUp = async (browser: FormBrowser, more: object = {}) =>
  await browser.call('POST', '/api/billing/top-up', { amount: '25', attempt: ATTEMPT, ...more })
const sessionIn = (url: string): string => url.split('/').at(-1) ?? ''

async function check(browser: FormBrowser, session: string): Promise<Visit> {
  return await browser.call('POST', '/api/billing/top-up/check', { session })
}

describe('a person', () => {
  test('goes to the page of the provider, pays, comes back, and has one Credit for the own account', async () => {
    const { world, stripe } = await opened()
    const browser = await world.person(MAYA)
    const { url } = (await topUp(browser)).json()
    const session = sessionIn(url)
    expect((await check(browser, session)).json()).toEqual({ state: 'open' })
    const payment = stripe.state.pay(session)
    expect((await check(browser, session)).json()).toEqual({ state: 'paid' })
    expect((await check(browser, session)).json()).toEqual({ state: 'paid' })
    const [account] = await world.store.list(accounts, '')
    const accountRef = { name: account?.metadata.name, uid: account?.metadata.uid }
    expect(await world.store.list(credits, '')).toMatchObject([{ spec: { accountRef, amount: '25', type: 'TopUp', reference: payment } }])
    expect(world.lines.some((line) => line.includes('"audit":"billing.top-up"'))).toBe(true)
  })

  test('opens the receipt of an own payment, and of no other one', async () => {
    const { world, stripe } = await opened()
    const [maya, sam] = [await world.person(MAYA), await world.person('sam@fernwood.example')]
    const payment = stripe.state.pay(sessionIn((await topUp(maya)).json().url))
    const receipt = await maya.get(`/receipts/${payment}`)
    expect([receipt.status, receipt.location]).toEqual([303, `${stripe.url}/receipts/${payment}`])
    for (const id of [payment, 'pi_unknown', '..%2frefunds']) expect((await sam.get(`/receipts/${id}`)).status).toBe(404)
  })

  test('who clicks twice gets one page', async () => {
    const { world, stripe } = await opened()
    const browser = await world.person(MAYA)
    const [first, second] = await Promise.all([topUp(browser), topUp(browser)])
    expect(first.json()).toEqual(second.json())
    expect(stripe.state.sessions).toHaveLength(1)
  })

  test('pays into no other account and no other currency, whatever the request says', async () => {
    const { world, stripe } = await opened()
    const [maya, sam] = [await world.person(MAYA), await world.person('sam@fernwood.example')]
    const account = (await maya.get('/api/me')).json().account.name
    const foreign = { name: account, uid: 'uid-2' }
    await topUp(sam, { account, accountName: account, uid: 'uid-2', id: foreign, currency: 'jpy', price: 1, email: 'eve@x.example' })
    const own = await world.store.get(accounts, { namespace: '', name: (await sam.get('/api/me')).json().account.name })
    expect(stripe.state.sessions).toMatchObject([
      { amount_total: 2_500, currency: 'eur', client_reference_id: own?.metadata.uid, metadata: { headgate_account: own?.metadata.name } },
    ])
  })

  test.each(['-1', '0', '4.99', '1000.01', '10000000', '1e999', 'NaN', '', '25,00', '25.0000001', '25.005'])(
    'cannot pay %j',
    async (amount) => {
      const { world, stripe } = await opened()
      const visit = await topUp(await world.person(MAYA), { amount })
      expect([visit.status, Object.keys(visit.json().error.fields)]).toEqual([422, ['amount']])
      expect(stripe.asked).toEqual([])
    },
  )

  test('sees nothing of the payment of somebody else', async () => {
    const { world, stripe } = await opened()
    const [maya, sam] = [await world.person(MAYA), await world.person('sam@fernwood.example')]
    const session = sessionIn((await topUp(maya)).json().url)
    stripe.state.pay(session)
    for (const id of [session, 'cs_test_unknown', '..%2f..%2fcheckout']) expect((await check(sam, id)).json().error.code).toBe('not-found')
    expect(await world.store.list(credits, '')).toEqual([])
  })

  test('with an account that is not prepaid has nothing to top up', async () => {
    const { world } = await opened()
    const browser = await world.person(MAYA)
    const { name } = (await browser.get('/api/me')).json().account
    await world.store.patch(accounts, { namespace: '', name }, [{ op: 'replace', path: '/spec/billing', value: 'Unmetered' }])
    expect((await topUp(browser)).status).toBe(409)
  })

  test('reads that nothing was charged while payments are away', async () => {
    const { world, stripe, endPayments } = await opened()
    const browser = await world.person(MAYA)
    stripe.failures = 100
    expect((await topUp(browser)).json().error).toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('Nothing was charged'),
    })
    endPayments()
    expect((await topUp(browser)).status).toBe(503)
    expect((await browser.get('/api/me')).status).toBe(200)
  }, 30_000)
})

test('without a session, and where an administrator takes the money, there is no page to pay', async () => {
  await using world = await DashboardWorld.open({ folder: temporaryFolder() })
  expect((await topUp(world.browser())).status).toBe(401)
  const browser = await world.person(MAYA)
  expect((await topUp(browser)).status).toBe(404)
  expect((await check(browser, 'cs_test_1')).status).toBe(404)
})
