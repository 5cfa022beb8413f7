/**
 * One part after the other is away: dashboard, payments, API server, Redis, operator, mail server, payment provider. Calls of the API go on, the page
 * names the fault, nothing is half-done, and what was lost heals. All parts are real processes with the rights of the chart; Stripe is a stand-in.
 */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CountingModel } from '../support/counting-model.ts'
import type { ControlPlane } from '../support/control-plane.ts'
import { FormBrowser, PASSWORD, SECRET, tokenOf } from '../support/dashboard-world.ts'
import { openLab } from '../support/lab.ts'
import { MailServer } from '../support/mail-server.ts'
import { ledgerOf, microsIn, PAYMENTS_TOKEN, type Payer, PaymentsProgram } from '../support/payments-program.ts'
import { applyDashboardRights, usageTokenOf, writeUsageToken } from '../support/dashboard-rights.ts'
import { Program } from '../support/program.ts'
import type { Stack } from '../support/stack.ts'
import { SteadyCalls } from '../support/steady-calls.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const lab = openLab()
const folder = temporaryFolderOfFile()
const KEYS = 'headgate-accounts'
const PLAIN = 'faults-plain'
const MAYA = 'maya@fernwood.example'
/** Calls of each key during a fault. */
const CALLS = 15
/** So many times everything works before a part counts as healed. */
const QUIET = 5
let plane: ControlPlane
let stack: Stack
let model: CountingModel
let mails: MailServer
let payments: PaymentsProgram
let dashboard: Program
let maya: FormBrowser
let account: Payer
/** Of a key that maya made in the dashboard, and of a key without an account. */
const credentials = { account: '', plain: '' }

beforeAll(async () => {
  plane = await lab.ownControlPlane()
  stack = await lab.stack({ gateways: 1, namespaces: [PLAIN, KEYS], operatorEnv: { ACCOUNTS: 'true' } }, plane)
  model = await CountingModel.start(lab.address.ip)
  const pricing = { inputPerMillion: '10', cachedInputPerMillion: '10', outputPerMillion: '10' }
  const backends = [{ name: 'counting', url: model.url, messages: 'Native' }]
  for (const namespace of [PLAIN, KEYS]) await stack.serveModel('counted', { backends, pricing, contextTokens: 8_192 }, namespace)
  await stack.apply('Plan', 'default')
  await applyDashboardRights(plane)
  credentials.plain = await stack.issueKey('plain', { models: ['counted'] })
  mails = await MailServer.start()
  await startDashboard()
  maya = await signedUp(MAYA)
  const { name } = (await maya.get('/api/me')).json().account
  const { metadata } = await stack.untilCondition('Account', name, 'Programmed')
  account = { name, uid: String(metadata.uid) }
  await pay('10', 'attempt-of-the-start')
  const form = { name: 'checkout', models: ['*'], attempt: 'attempt-of-the-key' }
  credentials.account = (await maya.call('POST', '/api/keys', form)).json().value
  await eventually(() => unaffected(() => Promise.resolve()))
})
afterAll(async () => {
  await dashboard?.stop()
  await payments?.close()
  await mails?.stop()
  await model?.close()
})

/** Dashboard and payments, which know each other. */
async function startDashboard(): Promise<void> {
  const kubeconfig = join(folder, 'dashboard.kubeconfig')
  const tokenFile = join(folder, 'token')
  await plane.kubeconfigFor('headgate', 'headgate-dashboard', kubeconfig)
  await writeUsageToken(plane, tokenFile)
  payments = await PaymentsProgram.start({ lab, plane })
  const env = {
    ...{ KUBECONFIG: kubeconfig, PUBLIC_URL: stack.gateway.url, DASHBOARD_SECRET: SECRET, DATABASE_FILE: join(folder, 'dashboard.db') },
    ...{ USAGE_URL: stack.operator.usageUrl, USAGE_TOKEN_FILE: tokenFile, ACCOUNT_BILLING: 'Prepaid' },
    ...{ PAYMENTS: 'stripe', PAYMENTS_URL: payments.checkoutURL, PAYMENTS_TOKEN, TOP_UP_AMOUNTS: '10' },
    ...{ SMTP_HOST: '127.0.0.1', SMTP_PORT: String(mails.port), SMTP_SECURITY: 'none', MAIL_FROM: 'Headgate <no-reply@example.com>' },
  }
  dashboard = await Program.prepare({ program: 'dashboard', pod: 'dashboard-faults-0', ip: lab.address.ip, folder: lab.folder, env })
  await dashboard.start({ DASHBOARD_URL: origin() })
}

const origin = (): string => `http://localhost:${dashboard.port}`

async function signedUp(email: string): Promise<FormBrowser> {
  const browser = new FormBrowser(origin())
  expect((await browser.post('/sign-up', { email, password: PASSWORD })).location).toBe('/check-your-mail')
  const { links } = await mails.nextMail(email)
  expect((await browser.post('/verify', { token: tokenOf(links[0] ?? '') })).location).toBe('/')
  return browser
}

const topUp = async (amount: string, attempt: string) => await maya.call('POST', '/api/billing/top-up', { amount, attempt })
const check = async (session: string) => await maya.call('POST', '/api/billing/top-up/check', { session })

/** @returns the session of the page to pay */
async function opened(amount: string, attempt: string): Promise<string> {
  const { url } = (await topUp(amount, attempt)).json()
  return String(url).split('/').at(-1) ?? ''
}

async function pay(amount: string, attempt: string): Promise<void> {
  payments.stripe.state.pay(await opened(amount, attempt))
  expect(await payments.deliver()).toBe(200)
  await sumsUp()
}

/** Each payment is one Credit, and the page, the Account and the ledger have the same balance. */
async function sumsUp(): Promise<void> {
  const paid = payments.stripe.state.sessions.filter(({ payment_status: status }) => status === 'paid')
  const wanted = paid.map(({ amount_total: cents, payment_intent: payment }) => `TopUp ${cents / 100} ${payment?.id}`)
  const token = await usageTokenOf(plane)
  await eventually(async () => {
    expect([...(await payments.creditsOf(account))].toSorted()).toEqual(wanted.toSorted())
    const { balance, movements } = (await maya.get('/api/billing')).json()
    expect(movements.filter(({ type }: { type: string }) => type === 'TopUp')).toHaveLength(wanted.length)
    const amounts = await ledgerOf(lab, account.name, { url: stack.operator.usageUrl, token })
    expect(amounts.reduce((sum, amount) => sum + amount, 0n)).toBe(microsIn(balance))
  })
}

/** A part is away during `act`, and calls of both keys are answered as without the fault. */
async function unaffected(act: () => Promise<void>, callers: readonly ('account' | 'plain')[] = ['account', 'plain']): Promise<void> {
  const calls = new SteadyCalls(
    lab,
    [stack.gateway.url],
    callers.map((name) => ({ name, credential: credentials[name], model: 'counted' })),
  )
  try {
    await act()
    const enough = calls.answers.length + CALLS * callers.length
    await waitFor('more calls', () => calls.answers.length >= enough)
  } finally {
    await calls.stop()
  }
  expect(calls.answers.find(({ status }) => status !== 200)).toBe(undefined)
  expect(Object.keys(calls.counts)).toEqual(callers.map((name) => `${name} 200`))
}

const isWorking = async (): Promise<void> => {
  await unaffected(() => Promise.resolve())
  expect((await maya.get('/api/me')).json().readOnlySince).toBe(undefined)
  await sumsUp()
}

describe('before all faults', () => {
  it('everything works', isWorking)
})

describe('the dashboard is killed:', () => {
  it('calls go on, and people are signed in and have all after its restart', async () => {
    await unaffected(async () => {
      await dashboard.kill()
      await expect(maya.get('/api/me')).rejects.toThrow()
    })
    await dashboard.start({ DASHBOARD_URL: origin() })
    const first = await waitFor('the ApiKeys to be listed', async () => {
      const answer = await maya.get('/api/keys')
      return answer.status !== 503 && answer
    })
    expect(first.json().keys).toHaveLength(1)
    await isWorking()
  })
})

describe('payments is killed:', () => {
  it('the page says that nothing was charged, and a payment whose event was lost comes with the sweep of the start', async () => {
    const session = await opened('10', 'attempt-before-kill')
    await unaffected(async () => {
      await payments.down()
      payments.stripe.state.pay(session)
      expect(await payments.deliver()).toBe(0)
      for (const answer of [await topUp('10', 'attempt-of-kill'), await check(session)])
        expect(answer.json().error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('Nothing was charged') })
      expect((await maya.get('/api/billing')).status).toBe(200)
    })
    const before = payments.stripe.state.sessions.length
    await payments.up()
    await sumsUp() // without any event
    expect(await opened('10', 'attempt-of-kill')).toBe(await opened('10', 'attempt-of-kill'))
    expect(payments.stripe.state.sessions).toHaveLength(before + 1)
    await isWorking()
  })
})

describe('the payment provider is away:', () => {
  it('the page says that nothing was charged, and the event that is sent again counts once', async () => {
    const session = await opened('10', 'attempt-before-away')
    await unaffected(async () => {
      payments.stripe.state.pay(session)
      payments.stripe.failures = 1_000
      expect(await payments.deliver()).toBe(503)
      expect((await topUp('10', 'attempt-of-away')).json().error.message).toContain('Nothing was charged')
      expect((await maya.get('/api/billing')).status).toBe(200)
    })
    payments.stripe.failures = 0
    expect(await payments.deliver()).toBe(200)
    expect((await check(session)).json()).toMatchObject({ state: 'paid' })
    await isWorking()
  })
})

describe('the operator is away:', () => {
  it('usage and billing say so, the rest of the dashboard works, and a payment waits for its booking', async () => {
    const session = await opened('10', 'attempt-of-operator')
    await unaffected(async () => {
      await stack.operator.kill()
      for (const path of ['/api/usage', '/api/billing'])
        expect((await maya.get(path)).json().error).toMatchObject({
          code: 'unavailable',
          message: expect.stringContaining('Your keys go on'),
        })
      expect([(await maya.get('/api/me')).status, (await maya.get('/api/keys')).status]).toEqual([200, 200])
      payments.stripe.state.pay(session)
      expect(await payments.deliver()).toBe(200)
    })
    await stack.operator.start()
    await isWorking()
  })
})

describe('the mail server is away:', () => {
  it('sign-up is answered as always, and the mail comes when the server is back', async () => {
    const browser = new FormBrowser(origin())
    await unaffected(async () => {
      await mails.stop()
      expect((await browser.post('/sign-up', { email: 'sam@fernwood.example', password: PASSWORD })).location).toBe('/check-your-mail')
      await eventually(async () => expect(await dashboard.metric('headgate_dashboard_outbox_mails')).toBeGreaterThan(0))
      expect((await maya.get('/api/billing')).status).toBe(200)
    })
    mails = await MailServer.start(mails.port)
    const { links } = await mails.nextMail('sam@fernwood.example')
    expect((await browser.post('/verify', { token: tokenOf(links[0] ?? '') })).location).toBe('/')
    await isWorking()
  })
})

describe('Redis is away:', () => {
  it('keys without limits go on, usage says what is missing, and prepaid keys work again with the same balance', async () => {
    await unaffected(async () => {
      await stack.redis.process.kill()
      await eventually(async () => expect((await maya.get('/api/usage')).json()).toMatchObject({ isLate: true }))
      expect((await maya.get('/api/keys')).json().keys).toHaveLength(1)
    }, ['plain'])
    await stack.redis.start()
    await eventually(async () => expect((await maya.get('/api/usage')).json()).not.toHaveProperty('isLate'))
    await eventually(async () => {
      for (let quiet = 0; quiet < QUIET; quiet += 1) await isWorking() // balances are restored step by step
    })
  })
})

describe('the API server is away:', () => {
  it('pages say since when they are read only, nothing is half-made, and an event that is sent again counts once', async () => {
    const session = await opened('10', 'attempt-of-api-server')
    const form = { name: 'second', models: ['*'], attempt: 'attempt-of-second' }
    await unaffected(async () => {
      plane.signal('kube-apiserver', 'SIGKILL')
      payments.stripe.state.pay(session)
      expect(await payments.deliver()).toBe(503)
      expect((await check(session)).json().error).toMatchObject({ code: 'unavailable' })
      expect((await maya.call('POST', '/api/keys', form)).json().error).toMatchObject({
        code: 'unavailable',
        message: 'The cluster does not answer. Your keys go on working. Try again in a moment.',
      })
      await eventually(async () => expect(Date.parse((await maya.get('/api/me')).json().readOnlySince)).toBeLessThanOrEqual(Date.now()))
      expect((await maya.get('/api/keys')).json().keys).toHaveLength(1)
    })
    await plane.restart('kube-apiserver')
    if (!stack.operator.process.running) await stack.operator.start() // it ends when it loses its Lease, and the kubelet starts it again
    await eventually(async () => expect(await payments.deliver()).toBe(200))
    const { key } = (await maya.call('POST', '/api/keys', form)).json()
    await eventually(async () => expect((await maya.get('/api/keys')).json().keys.map(({ id }: { id: string }) => id)).toContain(key.id))
    await eventually(isWorking)
    expect((await maya.get('/api/keys')).json().keys).toHaveLength(2)
  })
})
