/** The payments program over a stand-in for Stripe and the object store: what reaches the balance, whatever happens to events. */
import { request as httpRequest } from 'node:http'
import { describe, expect, test } from 'vitest'
import { credits } from '#api/resources.ts'
import { KubeError } from '#kube/port.ts'
import type { StubEvent } from '../../examples/stub-stripe/state.ts'
import { ACCOUNT, INSTALLATION, PaymentsWorld as World, TOKEN } from '../../test/support/payments-world.ts'
import { creditName } from './credits-of-payment.ts'

const TWO_DAYS_MS = 48 * 3_600_000

describe('a payment', () => {
  test('is one Credit, for 50 equal events at once, the return of the person and two sweeps', async () => {
    const world = await World.open()
    const session = await world.session()
    const payment = world.stripe.state.pay(session)
    const all = await Promise.all([
      ...Array.from({ length: 50 }, () => world.deliver()),
      world.ask('/top-up', { account: ACCOUNT, session }).then(({ status }) => status),
      world.sweep(),
      world.sweep(),
    ])
    expect(all.slice(0, 51)).toEqual(Array<number>(51).fill(200))
    expect(await world.kube.store.list(credits, '')).toMatchObject([
      {
        metadata: { name: creditName(payment) },
        spec: { accountRef: ACCOUNT, amount: '50', type: 'TopUp', reference: payment },
      },
    ])
    expect(world.alarms).toBe(0)
  })

  test('without any event is credited by the sweep, and asked about once', async () => {
    const world = await World.open()
    world.stripe.state.pay(await world.session())
    await world.sweep()
    expect(await world.sum()).toBe(50)
    const asked = world.stripe.asked.length
    await world.sweep()
    expect(world.stripe.asked.slice(asked)).toEqual(['GET /v1/events'])
    expect(world.sweeps).toEqual([true, true])
  })

  test('of more than two days ago is no matter of the sweep', async () => {
    const world = await World.open()
    world.stripe.state.pay(await world.session())
    world.clock.skip(TWO_DAYS_MS + 60_000)
    await world.sweep()
    expect(await world.credits()).toEqual([])
  })

  test('by a transfer counts when the money is there, and not before', async () => {
    const world = await World.open()
    const session = await world.session()
    world.stripe.state.pay(session, 'later')
    expect(await world.deliver()).toBe(200)
    expect((await world.ask('/top-up', { account: ACCOUNT, session })).body).toEqual({ state: 'processing' })
    expect(await world.credits()).toEqual([])
    world.stripe.state.endTransfer(session, 'succeeded')
    await world.deliver()
    expect(await world.sum()).toBe(50)
    const other = await world.session('10', 'attempt-2')
    world.stripe.state.pay(other, 'later')
    world.stripe.state.endTransfer(other, 'failed')
    await world.deliver()
    expect((await world.ask('/top-up', { account: ACCOUNT, session: other })).body).toEqual({ state: 'failed' })
    expect(await world.sum()).toBe(50)
  })
})

describe('money that is taken back', () => {
  test('is exact for refunds, a failed refund, and a dispute that is opened, lost and won, in whatever order events come', async () => {
    const world = await World.open()
    const { state } = world.stripe
    const payment = state.pay(await world.session())
    const refund = state.refund(payment, 1_000)
    state.failRefund(refund.id)
    state.refund(payment, 2_000)
    const dispute = state.dispute(payment)
    for (const event of state.events.toReversed()) for (let times = 0; times < 3; times += 1) expect(await world.deliver(event)).toBe(200)
    expect(await world.sum()).toBe(30)
    state.moveDispute(dispute.id, 'withdrawn')
    await world.deliver()
    expect(await world.sum()).toBe(0)
    state.moveDispute(dispute.id, 'reinstated')
    for (const event of state.events) await world.deliver(event)
    expect(await world.sum()).toBe(30)
    expect(await world.credits()).toHaveLength(6)
    expect(world.alarms).toBe(0)
  })

  test('is exact when a refund and then a dispute come between the two questions of one event', async () => {
    const world = await World.open()
    const { state, server } = world.stripe
    const payment = state.pay(await world.session())
    const [answer] = server.listeners('request')
    if (answer === undefined) throw new Error('nothing answers')
    const refundsAnswered = Promise.withResolvers<void>()
    let disputesAsked = 0
    server.removeAllListeners('request').on('request', (request, response) => {
      const goOn = (): unknown => answer.call(server, request, response)
      if (request.url?.startsWith('/v1/refunds')) response.once('finish', () => refundsAnswered.resolve())
      if (!request.url?.startsWith('/v1/disputes') || ++disputesAsked > 1) return void goOn()
      void refundsAnswered.promise.then(() => {
        state.refund(payment, 2_000) // after the answer, which has no refund
        state.moveDispute(state.dispute(payment).id, 'withdrawn')
        goOn()
      })
    })
    await world.deliver(state.events[0])
    for (const event of state.events) expect(await world.deliver(event)).toBe(200)
    const [, refund, dispute] = await world.credits()
    expect([refund, dispute]).toEqual([expect.stringMatching(/^Refund -20 /), expect.stringMatching(/^Dispute -30 /)])
    expect(world.alarms).toBe(0)
  })

  test('of a refund that fails after a dispute took the rest is nothing, and all of the payment when the dispute is won', async () => {
    const world = await World.open()
    const { state } = world.stripe
    const payment = state.pay(await world.session())
    const seconds = (step: number): number => Math.floor(Date.now() / 1_000) + step
    const refund = Object.assign(state.refund(payment, 2_000), { created: seconds(1) })
    await world.deliver()
    const dispute = state.dispute(payment)
    state.moveDispute(dispute.id, 'withdrawn')
    Object.assign(dispute.balance_transactions[0] ?? {}, { created: seconds(2) })
    await world.deliver()
    state.failRefund(refund.id)
    Object.assign(refund.failure_balance_transaction ?? {}, { created: seconds(3) })
    await world.deliver()
    expect([await world.sum(), world.alarms]).toEqual([0, 0])
    state.moveDispute(dispute.id, 'reinstated')
    Object.assign(dispute.balance_transactions[1] ?? {}, { created: seconds(4) })
    await world.deliver()
    expect([await world.sum(), world.alarms]).toEqual([50, 0])
  })

  test('of a payment whose own event never came comes with the payment', async () => {
    const world = await World.open()
    const payment = world.stripe.state.pay(await world.session())
    world.stripe.state.refund(payment, 5_000)
    await world.deliver()
    expect(await world.credits()).toEqual(expect.arrayContaining([`TopUp 50 ${payment}`, expect.stringMatching(/^Refund -50 re_/)]))
  })
})

describe('an event that the provider has not sent is refused, and gives nothing:', () => {
  const signed = async (
    change: (event: { body: string; signature: string }, world: World) => { body: string; signature?: string | undefined },
  ) => {
    const world = await World.open()
    world.stripe.state.pay(await world.session())
    const event = world.stripe.state.events.at(-1)
    if (event === undefined) throw new Error('nothing has happened')
    const { body, signature } = change(world.stripe.signed(event), world)
    const status = await world.send(body, signature)
    return { status, credits: await world.credits(), asked: world.stripe.asked.filter((one) => one.startsWith('GET')) }
  }
  const again = (event: StubEvent, world: World, more: { secret?: string; at?: number }) => world.stripe.signed(event, more)
  const now = (): number => Math.floor(Date.now() / 1_000)

  test.each<readonly [string, Parameters<typeof signed>[0]]>([
    ['another secret', ({ body }, world) => again(JSON.parse(body) as StubEvent, world, { secret: 'whsec_of_somebody_else_01234' })],
    ['an empty secret', ({ body }, world) => again(JSON.parse(body) as StubEvent, world, { secret: '' })],
    ['written again', ({ body, signature }) => ({ body: JSON.stringify(JSON.parse(body), undefined, 1), signature })],
    ['changed', ({ body, signature }) => ({ body: body.replace('uid-1', 'uid-2'), signature })],
    ['301 seconds old', ({ body }, world) => again(JSON.parse(body) as StubEvent, world, { at: now() - 301 })],
    ['without a signature', ({ body }) => ({ body })],
    ['with an empty signature', ({ body }) => ({ body, signature: '' })],
    ['no JSON', ({ signature }) => ({ body: '{', signature })],
  ])('%s', async (_, change) => {
    expect(await signed(change)).toEqual({ status: 400, credits: [], asked: [] })
  })

  test('a body of more than a megabyte', async () => {
    const world = await World.open()
    expect(await world.send('x'.repeat(1_100_000), 't=1,v1=0')).toBe(413)
  })
})

describe('a fault leaves nothing half-done for ever:', () => {
  test('while the API server is away the event is sent again, and then counts once', async () => {
    const world = await World.open()
    world.stripe.state.pay(await world.session())
    world.kube.before = () => {
      throw new KubeError('Unreachable', 0, 'the API server does not answer')
    }
    expect(await world.deliver()).toBe(503)
    await world.sweep()
    expect(world.sweeps).toEqual([false])
    world.kube.before = () => undefined
    await world.sweep()
    expect(await world.deliver()).toBe(200)
    expect(await world.sum()).toBe(50)
  })

  test('an answer of the API server that is lost after the Credit was stored', async () => {
    const world = await World.open()
    world.stripe.state.pay(await world.session())
    world.kube.after = () => {
      throw new KubeError('Unreachable', 0, 'the answer was lost')
    }
    expect(await world.deliver()).toBe(503)
    world.kube.after = () => undefined
    expect(await world.deliver()).toBe(200)
    expect(await world.credits()).toHaveLength(1)
  })

  test('while the provider is away the event is sent again', async () => {
    const world = await World.open()
    world.stripe.state.pay(await world.session())
    world.stripe.failures = 100
    expect(await world.deliver()).toBe(503)
    world.stripe.failures = 0
    expect(await world.deliver()).toBe(200)
    expect(await world.sum()).toBe(50)
  }, 30_000)

  test('a Credit of the same name for another amount raises an alarm, and the event is not sent for ever', async () => {
    const world = await World.open()
    const payment = world.stripe.state.pay(await world.session())
    const spec = { accountRef: ACCOUNT, amount: '5', type: 'TopUp' as const, reference: payment }
    await world.kube.store.create(credits, {
      apiVersion: 'headgate.dev/v1alpha1',
      kind: 'Credit',
      metadata: { name: creditName(payment) },
      spec,
    })
    expect(await world.deliver()).toBe(200)
    expect([world.alarms, await world.sum()]).toEqual([1, 5])
    expect(world.lines.some((line) => line.includes('"audit":"payment.alarm"'))).toBe(true)
  })
})

describe('a payment that is not ours', () => {
  const pay = async (world: World, change: (session: Record<string, unknown>) => void): Promise<number> => {
    const id = await world.session()
    change(world.stripe.state.session(id) as unknown as Record<string, unknown>)
    world.stripe.state.pay(id)
    return await world.deliver()
  }

  test.each<readonly [string, (session: Record<string, unknown>) => void, number]>([
    ['of another program: no alarm', (session) => (session['metadata'] = { order: '4711' }), 0],
    ['of another installation: no alarm', (session) => (session['metadata'] = { headgate_installation: 'staging.example.net' }), 0],
    ['of another kind of session: no alarm', (session) => (session['mode'] = 'subscription'), 0],
    ['in another currency: an alarm', (session) => (session['currency'] = 'usd'), 1],
    ['of real money: an alarm', (session) => (session['livemode'] = true), 1],
    ['that names no account: an alarm', (session) => (session['metadata'] = { headgate_installation: INSTALLATION }), 1],
    ['for another account than its client reference: an alarm', (session) => (session['client_reference_id'] = 'uid-2'), 1],
  ])('%s', async (_, change, alarms) => {
    const world = await World.open()
    expect(await pay(world, change)).toBe(200)
    const lines = world.lines.filter((line) => line.includes('"audit":"payment.alarm"'))
    expect([await world.credits(), world.alarms, lines.length]).toEqual([[], alarms, alarms])
  })

  test('by the event of another provider, or at the address of another one, gives nothing', async () => {
    const world = await World.open()
    world.stripe.state.pay(await world.session())
    const { body, signature } = world.stripe.signed(world.stripe.state.events.at(-1) as StubEvent)
    const statusAt = async (path: string, headers: Record<string, string>): Promise<number> =>
      (await fetch(new URL(path, world.webhookURL), { method: 'POST', headers, body })).status
    expect(await statusAt('/webhooks/paypal', { 'stripe-signature': signature })).toBe(404)
    expect(await statusAt('/webhooks/stripe/', { 'stripe-signature': signature })).toBe(404)
    expect(await statusAt('/webhooks/stripe', { 'paypal-transmission-sig': signature })).toBe(400)
    expect(await world.credits()).toEqual([])
  })

  test('and an event of another kind changes nothing', async () => {
    const world = await World.open()
    world.stripe.state.expire(await world.session())
    expect(await world.deliver()).toBe(200)
    expect(world.outcomes).toEqual(['checkout.session.expired foreign'])
  })
})

describe('the port for the dashboard', () => {
  const QUESTION = { account: ACCOUNT, amount: '50.00', email: 'maya@x.example', attempt: 'attempt-1' }

  test('makes one session for all retries of an attempt, with the account and the installation in it', async () => {
    const world = await World.open()
    const [first, second, other] = [await world.session(), await world.session(), await world.session('50.00', 'attempt-2')]
    expect([first === second, first === other]).toEqual([true, false])
    expect(world.stripe.state.session(first)).toMatchObject({
      ...{ amount_total: 5_000, currency: 'eur', client_reference_id: 'uid-1' },
      metadata: { headgate_installation: INSTALLATION, headgate_account: 'u-1', headgate_account_uid: 'uid-1' },
      ...{ success_url: 'https://dashboard.example.net/billing?top-up=paid&session={CHECKOUT_SESSION_ID}' },
      ...{ cancel_url: 'https://dashboard.example.net/billing?top-up=cancelled' },
    })
  })

  test('answers nobody without the token', async () => {
    const world = await World.open()
    for (const path of ['/checkout', '/top-up', '/'])
      for (const token of ['', 'x', `${TOKEN}x`]) expect((await world.ask(path, QUESTION, token)).status).toBe(401)
    expect(world.stripe.asked).toEqual([])
  })

  test.each(['0', '-5', '1e999', 'NaN', '10.005', '1000000000000', '', ' 5'])('refuses the amount %j', async (amount) => {
    const world = await World.open()
    expect((await world.ask('/checkout', { ...QUESTION, amount })).status).toBe(422)
  })

  test('tells nobody of the payment of another account', async () => {
    const world = await World.open()
    const session = await world.session()
    world.stripe.state.pay(session)
    for (const account of [
      { name: 'u-1', uid: 'uid-2' },
      { name: 'u-2', uid: 'uid-1' },
    ])
      expect((await world.ask('/top-up', { account, session })).status).toBe(404)
    expect((await world.ask('/top-up', { account: ACCOUNT, session: 'cs_test_unknown' })).status).toBe(404)
    expect((await world.ask('/top-up', { account: ACCOUNT, session: '../refunds' })).status).toBe(400)
    expect(await world.credits()).toEqual([])
  })

  test('leads to the receipt of a payment, and to none of another account', async () => {
    const world = await World.open()
    const session = await world.session()
    const payment = world.stripe.state.pay(session, 'later')
    expect((await world.ask('/receipt', { account: ACCOUNT, payment })).status).toBe(404)
    world.stripe.state.endTransfer(session, 'succeeded')
    const answer = await world.ask('/receipt', { account: ACCOUNT, payment })
    expect([answer.status, answer.body]).toEqual([200, { url: `${world.stripe.url}/receipts/${payment}` }])
    expect((await world.ask('/receipt', { account: { ...ACCOUNT, uid: 'uid-2' }, payment })).status).toBe(404)
    expect((await world.ask('/receipt', { account: ACCOUNT, payment: 'pi_unknown' })).status).toBe(404)
    expect((await world.ask('/receipt', { account: ACCOUNT, payment: '../refunds' })).status).toBe(400)
  })

  test('takes no event, and the port for events takes no question', async () => {
    const world = await World.open()
    expect((await world.ask('/webhooks/stripe', {})).status).toBe(404)
    const status = await new Promise((resolve) => {
      const url = new URL('/checkout', world.webhookURL)
      httpRequest(url, { method: 'POST', headers: { authorization: `Bearer ${TOKEN}` } }, (response) => resolve(response.statusCode)).end(
        '{}',
      )
    })
    expect(status).toBe(404)
  })
})

test('no line of the log has a secret or an address', async () => {
  const world = await World.open()
  world.stripe.state.pay(await world.session())
  await world.deliver()
  world.stripe.failures = 100
  await world.sweep()
  expect(world.lines.join('')).toContain('"audit":"credit.create"')
  expect(world.lines.join('')).not.toMatch(/sk_test|whsec|maya@|a token of the tests/)
}, 30_000)
