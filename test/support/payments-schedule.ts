/** One random life of payments over `PaymentsLife`: what people, the merchant, banks and the internet do, and what must hold at every moment. */
import assert from 'node:assert/strict'
import { parseSignedAmount } from '#contract/values/signed-micros.ts'
import type { StubDispute, StubEvent, StubRefund, StubSession } from '../../examples/stub-stripe/state.ts'
import { type Fault, PaymentsLife } from './payments-life.ts'
import { SeededRandom } from './seeded-random.ts'

const MICROS_PER_MINOR = 10_000
interface Account {
  readonly name: string
  readonly uid: string
}
const ACCOUNTS: readonly [Account, Account] = [
  { name: 'u-1', uid: 'uid-1' },
  { name: 'u-2', uid: 'uid-2' },
]
const FAULTS = ['kill before', 'kill after', 'fail before', 'fail after'] as const satisfies readonly Fault['what'][]

export class PaymentsSchedule implements Disposable {
  readonly life = new PaymentsLife()
  readonly #random: SeededRandom
  readonly #steps: string[] = []
  /** Events that are under way; each may be there several times. */
  readonly #underWay: StubEvent[] = []
  readonly #accountOf = new Map<string, Account>()
  #seen = 0

  constructor(seed: number) {
    this.#random = new SeededRandom(seed)
  }

  [Symbol.dispose](): void {
    this.life[Symbol.dispose]()
  }

  get text(): string {
    return this.#steps.join('\n')
  }

  async run(): Promise<void> {
    await this.life.start()
    await this.#openOne()
    const steps = 8 + this.#random.below(16)
    for (let step = 0; step < steps; step += 1) {
      if (this.life.isDead) await this.life.start()
      if (this.#random.chance(0.2)) this.#arm()
      await Promise.all(Array.from({ length: this.#random.pick([1, 1, 1, 3]) }, () => this.#step()))
      await this.#check()
    }
    await this.#heal()
  }

  /** Nothing fails any more. The events that are left come or not; one sweep finds the rest. */
  async #heal(): Promise<void> {
    this.life.arm(undefined)
    if (this.life.isDead) await this.life.start()
    if (this.#random.chance(0.5)) while (this.#underWay.length > 0) await this.#deliver()
    await this.life.sweep()
    await this.#check('equal')
    assert.deepEqual(this.life.alarms, [])
  }

  #arm(): void {
    const fault = { call: this.#random.below(8), what: this.#random.pick(FAULTS) }
    this.#steps.push(`${fault.what} call ${fault.call}`)
    this.life.arm(fault)
  }

  async #step(): Promise<void> {
    const at = this.#random.next()
    if (at < 0.4) this.#happen()
    else if (at < 0.75) await this.#deliver()
    else if (at < 0.83) await this.#forge()
    else if (at < 0.92) await this.#comeBack()
    else if (at < 0.96) await this.#openOne()
    else await this.#sweep()
  }

  /** A person, the merchant or a bank does something that the provider allows at this moment. */
  #happen(): void {
    const acts = this.life.stripe.state.sessions.flatMap((session) => actsOf(this.life, session, this.#random))
    const [name, act] = this.#random.pick(acts.length > 0 ? (acts as [Act, ...Act[]]) : [['nothing', () => undefined]])
    this.#steps.push(name)
    this.life.clock.skip(1_000 * (1 + this.#random.below(1_000))) // two moves of one payment are never in the same second
    act()
    const { events } = this.life.stripe.state
    for (const event of events.slice(this.#seen))
      for (let copy = this.#random.pick([0, 1, 1, 3]); copy > 0; copy -= 1) this.#underWay.push(event)
    this.#seen = events.length
  }

  async #openOne(): Promise<void> {
    const account = this.#random.pick(ACCOUNTS)
    const amount = `${1 + this.#random.below(90)}.${this.#random.pick(['00', '50', '99'])}`
    const session = await this.life.open(account, amount, `attempt-${this.#steps.length}`)
    this.#steps.push(`open ${session} over ${amount} for ${account.name}`)
    if (session !== undefined) this.#accountOf.set(session, account)
  }

  async #deliver(): Promise<void> {
    const [event] = this.#underWay.splice(this.#random.below(this.#underWay.length), 1)
    if (event === undefined) return
    this.#steps.push(`deliver ${event.type}`)
    const status = await this.life.deliver(event)
    if (status !== 200 && this.#random.chance(0.5)) this.#underWay.push(event) // the provider sends again, or gives up
  }

  async #forge(): Promise<void> {
    const event = this.life.stripe.state.events.at(-1)
    if (event === undefined || this.life.isDead) return
    const forged = this.#random.pick<Parameters<PaymentsLife['deliver']>[1]>([
      { secret: 'whsec_of_somebody_else_01234' },
      { body: (body: string) => body.replace('evt_', 'evt_x') },
      { body: (body: string) => JSON.stringify(JSON.parse(body), undefined, 1) },
    ])
    this.#steps.push('forged event')
    const status = await this.life.deliver(event, forged)
    assert.ok(status === 400 || status === 0, `a forged event is answered ${status}`) // 0: killed by a step beside it
  }

  async #comeBack(): Promise<void> {
    const [id, account] = this.#random.pick([...this.#accountOf, ['cs_test_unknown', ACCOUNTS[0]]] as [[string, Account]])
    this.#steps.push(`come back from ${id}`)
    await this.life.comeBack(id, account)
    const thief = ACCOUNTS.find((one) => one !== account)
    if (thief !== undefined) assert.equal(await this.life.comeBack(id, thief), undefined)
  }

  async #sweep(): Promise<void> {
    this.#steps.push('sweep')
    await this.life.sweep()
  }

  /** At every moment the Credits of a payment are between nothing and the payment; in the end they are what is left of it. */
  async #check(how: 'within' | 'equal' = 'within'): Promise<void> {
    const credits = await this.life.credits()
    const known = new Set<string>()
    for (const session of this.life.stripe.state.sessions) {
      const references = referencesOf(this.life, session)
      const own = credits.filter(({ spec }) => references.has(spec.reference ?? ''))
      for (const { metadata } of own) known.add(metadata.name)
      const sum = own.reduce((total, { spec }) => total + (parseSignedAmount(spec.amount) ?? NaN), 0)
      const paid = session.payment_status === 'paid' ? session.amount_total * MICROS_PER_MINOR : 0
      assert.ok(sum >= 0 && sum <= paid, `the Credits of ${session.id} are ${sum}, and ${paid} was paid`)
      assert.ok(own.every(({ spec }) => spec.accountRef.uid === session.client_reference_id))
      if (how === 'equal') assert.equal(sum, leftOf(this.life, session) * MICROS_PER_MINOR, `Credits of ${session.id}`)
    }
    assert.equal(known.size, credits.length, 'a Credit is of no payment')
  }
}

type Act = readonly [name: string, act: () => unknown]

const takenBack = (dispute: StubDispute): boolean => dispute.balance_transactions.length === 1
const ofPayment = <T extends StubRefund | StubDispute>(all: readonly T[], { payment_intent: intent }: StubSession): readonly T[] =>
  all.filter((one) => one.payment_intent === intent?.id)

/** What the provider has left of a payment by its own book, minor units. */
function leftOf({ stripe: { state } }: PaymentsLife, session: StubSession): number {
  if (session.payment_status !== 'paid') return 0
  const refunded = ofPayment(state.refunds, session).filter(({ status }) => status === 'succeeded')
  const disputed = ofPayment(state.disputes, session).filter(takenBack)
  return Math.max(
    0,
    [...refunded, ...disputed].reduce((left, { amount }) => left - amount, session.amount_total),
  )
}

function referencesOf({ stripe: { state } }: PaymentsLife, session: StubSession): ReadonlySet<string> {
  return new Set([
    session.payment_intent?.id ?? '',
    ...ofPayment(state.refunds, session).flatMap(({ id }) => [id, `${id}:failed`]),
    ...ofPayment(state.disputes, session).flatMap(({ id }) => [`${id}:withdrawn`, `${id}:reinstated`]),
  ])
}

function actsOf(life: PaymentsLife, session: StubSession, random: SeededRandom): readonly Act[] {
  const { state } = life.stripe
  const { id, status, payment_status: paid, payment_intent: intent } = session
  if (status === 'open')
    return [
      [`pay ${id}`, () => state.pay(id)],
      [`pay ${id} later`, () => state.pay(id, 'later')],
      [`expire ${id}`, () => state.expire(id)],
    ]
  if (intent?.status === 'processing')
    return (['succeeded', 'failed'] as const).map((how) => [`the transfer of ${id} has ${how}`, () => state.endTransfer(id, how)])
  return paid === 'paid' && intent !== null ? [...refundActs(life, session, random), ...disputeActs(life, session, random)] : []
}

/** Never more than the payment, and nothing while a bank has the money. A refund may fail much later. */
function refundActs({ stripe: { state } }: PaymentsLife, session: StubSession, random: SeededRandom): readonly Act[] {
  const refunds = ofPayment(state.refunds, session).filter(({ status }) => status === 'succeeded')
  const left = refunds.reduce((sum, { amount }) => sum - amount, session.amount_total)
  const amount = random.pick([left, 1 + random.below(Math.max(1, left))])
  const isDisputed = ofPayment(state.disputes, session).some(takenBack)
  return [
    ...(left > 0 && !isDisputed ? [[`refund ${amount}`, () => state.refund(session.payment_intent?.id ?? '', amount)] as const] : []),
    ...refunds.map(({ id, amount: of }) => [`refund of ${of} fails`, () => state.failRefund(id)] as const),
  ]
}

/** At most two disputes, over all or a part; a refund before does not hinder a bank. */
function disputeActs({ stripe: { state } }: PaymentsLife, session: StubSession, random: SeededRandom): readonly Act[] {
  const disputes = ofPayment(state.disputes, session)
  const amount = random.pick([session.amount_total, 1 + random.below(session.amount_total)])
  const moves = disputes.flatMap(({ id, balance_transactions: { length } }): readonly Act[] => {
    const how = (['withdrawn', 'reinstated'] as const)[length]
    return how === undefined ? [] : [[`dispute ${how}`, () => state.moveDispute(id, how)]]
  })
  const payment = session.payment_intent?.id ?? ''
  return disputes.length < 2 ? [...moves, [`dispute over ${amount}`, () => state.dispute(payment, amount)]] : moves
}
