/** A Headgate with prepaid accounts and a model server of its own, whose tokens have simple prices: what it reports is what calls must cost. */
import { expect } from 'vitest'
import { type Answer, ask, type Question } from './ask.ts'
import { CountingModel, type Reported } from './counting-model.ts'
import { conditionOf, objectPath, type TestObject } from './kube-admin.ts'
import type { Lab } from './lab.ts'
import { PATIENT_MS } from './limited-answers.ts'
import type { Program } from './program.ts'
import type { Stack } from './stack.ts'
import { eventually, waitFor } from './wait-for.ts'

const GROUP = 'headgate.dev/v1alpha1'
const PLAN = 'prepaid'
const CURRENCY = 'EUR'
const MODEL = 'priced'
/** Micro-units for each token of a prompt, cached or not, and of an answer. */
const INPUT_PRICE = 1
const OUTPUT_PRICE = 2_000
/** The status of an account is written at least once a minute while it spends, ms. */
const STATUS_WITHIN_MS = 150_000
const POLL_MS = 20

/** What the reported tokens cost, micro-units. */
export function costOf({ inputTokens, outputTokens }: Pick<Reported, 'inputTokens' | 'outputTokens'>): bigint {
  return BigInt(inputTokens * INPUT_PRICE + outputTokens * OUTPUT_PRICE)
}

/** The decimal number of a count of micro-units: `-0.000001`, `12.50`. Independent of the product's own. */
export function amountOf(micros: bigint): string {
  const digits = String(micros < 0n ? -micros : micros).padStart(7, '0')
  const decimals = digits.slice(-6).replace(/0+$/, '').padEnd(2, '0')
  return `${micros < 0n ? '-' : ''}${digits.slice(0, -6)}.${decimals}`
}

/** The reverse. */
function microsOf(amount: string): bigint {
  const [, sign = '', units = '', decimals = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(amount) ?? []
  return BigInt(`${sign}${units}${decimals.padEnd(6, '0')}`)
}

export interface PrepaidCall extends Question {
  readonly maxTokens?: number
  /** The model server counts by it. Default: the name of the account. Others begin with `<account>/`. */
  readonly session?: string
}

export class PrepaidStack {
  readonly stack: Stack
  readonly model: CountingModel
  /** Sessions of calls whose gateway was killed: nobody knows their cost. */
  readonly unmeasured = new Set<string>()
  /** The Credits that count, by name: what was created first. */
  readonly #credits = new Map<string, { readonly account: string; readonly micros: bigint }>()
  readonly #lab: Lab
  /** Name of the account of each credential. */
  readonly #accounts = new Map<string, string>()

  private constructor(lab: Lab, stack: Stack, model: CountingModel) {
    this.#lab = lab
    this.stack = stack
    this.model = model
  }

  static async open(lab: Lab, gateways: number): Promise<PrepaidStack> {
    const plane = await lab.ownControlPlane() // one installation of a cluster has accounts
    const stack = await lab.stack(
      { gateways, operatorEnv: { ACCOUNTS: 'true', BILLING_CURRENCY: CURRENCY }, gatewayEnv: { LIMITS_WAIT_MS: PATIENT_MS } },
      plane,
    )
    const model = await CountingModel.start(lab.address.ip)
    const backends = [{ name: 'counting', url: model.url, messages: 'Native' }]
    const pricing = { inputPerMillion: '1', cachedInputPerMillion: '1', outputPerMillion: '2000' }
    await stack.serveModel(MODEL, { backends, pricing, contextTokens: 8_192 })
    await stack.serveModel('unpriced', { backends, contextTokens: 8_192 })
    await stack.apply('Plan', PLAN)
    return new PrepaidStack(lab, stack, model)
  }

  /** Sum of the Credits of an account, micro-units. */
  creditedTo(name: string): bigint {
    return [...this.#credits.values()].filter(({ account }) => account === name).reduce((sum, { micros }) => sum + micros, 0n)
  }

  /** Those that run. */
  get gateways(): readonly Program[] {
    return this.stack.gateways.filter(({ process }) => process.running)
  }

  /** What the calls of an account cost by what the model server reported, without those of killed gateways, micro-units. */
  spentOf(account: string): bigint {
    const sessions = [...this.model.bySession].filter(([session]) => session === account || session.startsWith(`${account}/`))
    return sessions.filter(([session]) => !this.unmeasured.has(session)).reduce((sum, [, reported]) => sum + costOf(reported), 0n)
  }

  close(): Promise<void> {
    return this.model.close()
  }

  /**
   * Waits until Redis has the cost of every call of every account. A gateway reports calls that have ended within some seconds, and what it has
   * not reported is lost when it is killed.
   */
  async untilReported(): Promise<void> {
    const { admin } = this.stack.redis
    const sessions = [...this.model.bySession].filter(([session]) => !this.unmeasured.has(session))
    const cost = sessions.reduce((sum, [, reported]) => sum + costOf(reported), 0n)
    await waitFor('Redis to have the cost of every call', async () => {
      const keys = await admin.keys('hg:l:*:balance')
      const counted = await Promise.all(keys.map(async (key) => BigInt((await admin.hget(key, 's')) ?? 0)))
      return counted.reduce((sum, one) => sum + one, 0n) === cost
    })
  }

  /** Applies an account and waits until every gateway has it. */
  async account(name: string, spec: object = {}, annotations: Readonly<Record<string, string>> = {}): Promise<TestObject> {
    await this.applyAccount(name, spec, annotations)
    return this.stack.untilCondition('Account', name, 'Programmed')
  }

  async applyAccount(name: string, spec: object = {}, annotations: Readonly<Record<string, string>> = {}): Promise<TestObject> {
    const namespaces = { matchLabels: { 'kubernetes.io/metadata.name': this.stack.namespace } }
    return this.stack.kube.apply({
      apiVersion: GROUP,
      kind: 'Account',
      metadata: { name, annotations },
      spec: { planRef: { name: PLAN }, billing: 'Prepaid', namespaces, ...spec },
    })
  }

  /** Issues keys `<account>-0` … of an account, and waits until every gateway has them. @returns their credentials */
  async keys(account: string, count: number): Promise<string[]> {
    const names = Array.from({ length: count }, (_, at) => `${account}-${at}`)
    return Promise.all(
      names.map(async (name) => {
        await this.stack.apply('ApiKey', name, { accountRef: { name: account } })
        await this.stack.untilCondition('ApiKey', name, 'Programmed')
        const credential = await this.stack.value(name)
        this.#accounts.set(credential, account)
        return credential
      }),
    )
  }

  /** Creates a Credit, as a payment service does. @returns the answer of the API server, which may be a refusal */
  async create(id: string, account: string, amount: string, spec: object = {}): Promise<{ status: number; text: string }> {
    const credit = { accountRef: { name: account }, amount, type: amount.startsWith('-') ? 'Refund' : 'TopUp', ...spec }
    const object = { apiVersion: GROUP, kind: 'Credit', metadata: { name: id }, spec: credit }
    const answer = await this.stack.kube.answer('POST', objectPath(GROUP, 'Credit'), object)
    if (answer.status === 201 && !this.#credits.has(id)) this.#credits.set(id, { account, micros: microsOf(amount) })
    return answer
  }

  /** Creates a Credit and waits until it counts. */
  async pay(id: string, account: string, amount: string): Promise<void> {
    const { status, text } = await this.create(id, account, amount)
    if (status !== 201) throw new Error(text)
    await this.untilBooked(id)
  }

  credit(id: string): Promise<TestObject | undefined> {
    return this.stack.kube.get(objectPath(GROUP, 'Credit', '', id))
  }

  async deleteCredit(id: string): Promise<void> {
    await this.stack.kube.remove(objectPath(GROUP, 'Credit', '', id))
    await waitFor(`${id} to be deleted`, async () => (await this.credit(id)) === undefined)
  }

  /** Waits until the condition Booked has this reason. */
  async untilBooked(id: string, reason = 'Booked'): Promise<void> {
    await waitFor(`Credit ${id} to be ${reason}`, async () => {
      const found = conditionOf(await this.credit(id), 'Booked')
      return found?.reason === reason && found.status === (reason === 'Booked' ? 'True' : 'False')
    })
  }

  /** Waits until the status of an account has exactly this balance, micro-units. The operator may take a minute to show spend. */
  async untilBalance(account: string, micros: bigint): Promise<void> {
    const shown = amountOf(micros)
    const check = async (): Promise<void> => expect(await this.balanceIn(account), account).toEqual(`${shown} ${CURRENCY}`)
    await eventually(check, { deadlineMs: STATUS_WITHIN_MS, everyMs: 100 })
  }

  /**
   * Waits until the books have all spend of an account, and its balance is exact. The status is written at once after a Credit, so the least
   * Credits are paid meanwhile. @param forged spend that no call has had, micro-units
   */
  async untilExact(account: string, forged = 0n): Promise<void> {
    await waitFor(
      `the exact balance of ${account}`,
      async () => {
        const exact = `${amountOf(this.creditedTo(account) - this.spentOf(account) - forged)} ${CURRENCY}`
        const shown = await this.balanceIn(account)
        if (shown === exact) return true
        await this.pay(`${account}-least-${this.#credits.size}`, account, '0.000001')
        throw new Error(`${shown} instead of ${exact}`)
      },
      { everyMs: 1_000 },
    )
  }

  /** Amount and currency in the status; undefined without a balance. */
  async balanceIn(account: string): Promise<string | undefined> {
    const { balance } = (await this.accountObject(account))['status'] ?? {}
    return balance && `${balance.amount} ${balance.currency}`
  }

  async accountObject(name: string): Promise<TestObject> {
    const found = await this.stack.kube.get(this.stack.path('Account', name))
    if (found === undefined) throw new Error(`no Account ${name}`)
    return found
  }

  async call(gateway: Pick<Program, 'url'>, credential: string, call: PrepaidCall = {}): Promise<Answer> {
    const { maxTokens = 1, session = this.#accounts.get(credential) ?? '', fields, ...question } = call
    return ask(this.#lab, gateway.url, {
      ...{ credential, model: MODEL, fields: { max_tokens: maxTokens, ...fields } },
      headers: { 'x-session-id': session },
      ...question,
    })
  }

  /** Waits until each key has had this status from every gateway. @returns ms that it took */
  async untilAll(credentials: readonly string[], status: number, call: PrepaidCall = {}): Promise<number> {
    const startedMs = performance.now()
    const one = async (gateway: Program, credential: string): Promise<void> => {
      const isReached = async (): Promise<boolean> => {
        const { status: seen } = await this.call(gateway, credential, call)
        if (seen !== status) throw new Error(`it answers ${seen}`)
        return true
      }
      await waitFor(`${gateway.spec.pod} to answer ${status}`, isReached, { everyMs: POLL_MS })
    }
    await Promise.all(this.gateways.flatMap((gateway) => credentials.map((credential) => one(gateway, credential))))
    return Math.round(performance.now() - startedMs)
  }

  /** Answers of every key on every gateway, once each. */
  async onAll(credentials: readonly string[], call: PrepaidCall = {}): Promise<Answer[]> {
    return Promise.all(this.gateways.flatMap((gateway) => credentials.map((credential) => this.call(gateway, credential, call))))
  }
}
