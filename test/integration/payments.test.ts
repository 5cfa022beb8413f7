/**
 * The payments program as a real process, over a real API server and operator, with a stand-in for Stripe: a payment counts exactly once, whatever
 * happens to events and wherever the program is killed, and the ledger adds up to the balance after each.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { creditName } from '../../dashboard/payments/credits-of-payment.ts'
import { conditionOf } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { applyDashboardRights, usageTokenOf } from '../support/dashboard-rights.ts'
import { ledgerOf, microsIn, type Payer, PaymentsProgram } from '../support/payments-program.ts'
import type { Stack } from '../support/stack.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

/** More requests than a story has. */
const MAX_REQUESTS = 60
const MICROS = 1_000_000n
const ALARMS = 'headgate_payments_alarms_total'

const lab = openLab()
let stack: Stack
let payments: PaymentsProgram
let token = ''

beforeAll(async () => {
  const plane = await lab.ownControlPlane() // one installation of a cluster has accounts
  stack = await lab.stack({ gateways: 1, operatorEnv: { ACCOUNTS: 'true' } }, plane)
  await stack.apply('Plan', 'default')
  await applyDashboardRights(plane)
  token = await usageTokenOf(plane)
  payments = await PaymentsProgram.start({ lab, plane })
})
afterAll(() => payments?.close())

async function accountOf(name: string): Promise<Payer> {
  const namespaces = { matchLabels: { 'kubernetes.io/metadata.name': stack.namespace } }
  await stack.apply('Account', name, { planRef: { name: 'default' }, billing: 'Prepaid', namespaces })
  const { metadata } = await stack.untilCondition('Account', name, 'Programmed')
  return { name, uid: String(metadata.uid) }
}

/** Exactly these Credits exist and count, the balance is their sum, and so is the ledger that an administrator reads. */
async function sumsUp(account: Payer, credits: readonly string[], balance: bigint): Promise<void> {
  await eventually(async () => {
    expect([...(await payments.creditsOf(account))].toSorted()).toEqual([...credits].toSorted())
    const object = await stack.kube.get(stack.path('Account', account.name))
    expect(microsIn(String(object?.['status']?.balance?.amount)), account.name).toBe(balance * MICROS)
    for (const credit of credits) {
      const booked = await stack.kube.get(`/apis/headgate.dev/v1alpha1/credits/${creditName(credit.split(' ').at(-1) ?? '')}`)
      expect(conditionOf(booked, 'Booked')?.status, credit).toBe('True')
    }
  })
  const amounts = await ledgerOf(lab, account.name, { url: stack.operator.usageUrl, token })
  expect(amounts.reduce((sum, amount) => sum + amount, 0n)).toBe(balance * MICROS)
}

describe('a payment counts once', () => {
  it('for 50 equal events at once, the return of the person, and a kill of the program at many of its requests to the API server', async () => {
    for (const [at, write] of [0, 1, 7, 30].entries()) {
      for (const when of ['before', 'after'] as const) {
        const account = await accountOf(`many-${when}-${at}`)
        const session = await payments.open(account, '10')
        const payment = payments.stripe.state.pay(session)
        const [event] = payments.stripe.state.events.slice(-1)
        await payments.ready()
        const isWrite = (line: string): boolean => line.includes('/apis/')
        payments.arm({ write, when }, isWrite)
        const statuses = await Promise.all([
          ...Array.from({ length: 50 }, () => payments.deliver(event)),
          payments.comeBack(account, session),
        ])
        expect(statuses.every((status) => [200, 503, 0].includes(status))).toBe(true)
        expect(payments.gate.hasKilled).toBe(true)
        await payments.ready() // with the sweep of the start
        await sumsUp(account, [`TopUp 10 ${payment}`], 10n)
        expect(new Set(await Promise.all(Array.from({ length: 50 }, () => payments.deliver(event))))).toEqual(new Set([200]))
        await sumsUp(account, [`TopUp 10 ${payment}`], 10n)
        payments.stripe.state.events.length = 0
      }
    }
  }, 600_000)

  it('and a refund takes its part once, with the program killed before and after each of all its requests', async () => {
    const killedAt: string[] = []
    for (const when of ['before', 'after'] as const) {
      for (let write = 0; write < MAX_REQUESTS; write += 1) {
        const account = await accountOf(`each-${when}-${write}`)
        await payments.ready()
        payments.arm({ write, when })
        const { payment, refund } = await story(account, write)
        await sumsUp(account, [`TopUp 10 ${payment}`, `Refund -4 ${refund}`], 6n)
        const { hasKilled, seen } = payments.gate
        payments.gate.disarm()
        payments.stripe.state.events.length = 0
        if (!hasKilled) break
        killedAt.push(`${when} ${seen[write]}`)
      }
    }
    process.stdout.write(`killed ${killedAt.join('\nkilled ')}\n`)
    expect(killedAt.length).toBeGreaterThanOrEqual(2 * 15)
  }, 900_000)
})

/** A person opens a page, pays and comes back; the merchant refunds a part. Of the events that get no 200, every second is sent again. */
async function story(account: Payer, write: number): Promise<{ readonly payment: string; readonly refund: string }> {
  const { state } = payments.stripe
  const session = await payments.open(account, '10')
  expect(state.sessions.filter((one) => one.client_reference_id === account.uid)).toHaveLength(1)
  const payment = state.pay(session)
  await sent(write)
  await payments.comeBack(account, session)
  await payments.ready()
  const { id: refund } = state.refund(payment, 400)
  await sent(write)
  await payments.ready()
  return { payment, refund }
}

async function sent(write: number): Promise<void> {
  const [event] = payments.stripe.state.events.slice(-1)
  const isAnswered = async (): Promise<boolean> => (await payments.deliver(event)) === 200
  if (write % 2 === 0) await waitFor('the event to be taken', isAnswered)
  else await isAnswered() // or the sweep of the next start finds it
}

it.each<readonly [string, (session: Record<string, unknown>) => void]>([
  ['currency', (session) => (session['currency'] = 'jpy')],
  ['kind of money', (session) => (session['livemode'] = false)],
  ['account', (session) => (session['client_reference_id'] = 'uid-of-somebody-else')],
])('a payment with another %s gives nothing, and raises an alarm in the metrics and in the log', async (what, change) => {
  const account = await accountOf(`wrong-${what.replaceAll(' ', '-')}`)
  await payments.ready()
  const before = (await payments.program.metric(ALARMS)) ?? NaN
  const session = await payments.open(account, '10')
  change(payments.stripe.state.session(session) as unknown as Record<string, unknown>)
  payments.stripe.state.pay(session)
  expect(await payments.deliver()).toBe(200)
  expect(await payments.program.metric(ALARMS)).toBe(before + 1)
  const alarms = (): readonly string[] =>
    payments.program.process
      .log()
      .split('\n')
      .filter((line) => line.includes('"audit":"payment.alarm"'))
  await eventually(() => expect(alarms().filter((line) => line.includes(session))).toHaveLength(1)) // lines are written a moment later
  await sumsUp(account, [], 0n)
})

it('a price or an account that a client sends is refused', async () => {
  const account = await accountOf('thrifty')
  for (const more of [{ price: 1 }, { currency: 'JPY' }, { metadata: { headgate_account: 'other' } }, { amount: 10 }]) {
    const body = { account, amount: '10', email: 'maya@fernwood.example', attempt: 'attempt-1', ...more }
    expect((await payments.ask('/checkout', body)).status, JSON.stringify(more)).toBe(400)
  }
})
