/** Prepaid balances on a real API server with Redis, the operator and four gateways: what a payment and a refund do to every key of an account. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Answer, type ExpectedRow, expectRow, WIRE_FORMATS, type WireFormat } from '../support/ask.ts'
import { atOnce, numbered } from '../support/at-once.ts'
import { openLab } from '../support/lab.ts'
import { race, type RaceOptions } from '../support/prepaid-race.ts'
import { costOf, PrepaidStack } from '../support/prepaid-stack.ts'
import { BALANCE } from '../support/rows.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const KEYS = 5
/** Output of a call that holds and costs 0.20 and a few micro-units for its prompt. */
const FIFTH = 100

const lab = openLab()
let prepaid: PrepaidStack

beforeAll(async () => {
  prepaid = await PrepaidStack.open(lab, 4)
  await opened('warm', '5') // code that has never run is slow, and times are printed below
})
afterAll(() => prepaid.close())

/** Asserts a refusal by the balance: the row of its dialect, and no amount of the account. */
function expectRefused(answer: Answer, format: WireFormat, row: ExpectedRow): void {
  expectRow(answer, format, row)
  const { error } = JSON.parse(answer.text) as { error: { message: string; metadata: object } }
  expect(error.metadata).toEqual({ limit: 'balance', owner: 'account', needed: null, left: null, resetsAt: null })
  expect(error.message.replace(/try again in [\d.]+s/, '')).not.toMatch(/\d/)
}

/** `make bench PART=credits` measures the times; here they are only printed, since this machine may have other work. */
function printTime(tookMs: number, what: string): void {
  process.stdout.write(`${what} after ${tookMs} ms\n`)
}

async function opened(name: string, amount?: string, keys = KEYS): Promise<string[]> {
  await prepaid.account(name)
  const credentials = await prepaid.keys(name, keys)
  if (amount !== undefined) {
    await prepaid.pay(`${name}-opening`, name, amount)
    await prepaid.untilAll(credentials, 200)
  }
  return credentials
}

describe('a prepaid account without credit', () => {
  let credentials: string[]

  beforeAll(async () => {
    credentials = await opened('penniless')
  })

  it.each(WIRE_FORMATS)('answers 402 for all its keys on every gateway, on %s routes, and tells no amount', async (format) => {
    for (const answer of await prepaid.onAll(credentials, { format })) expectRefused(answer, format, BALANCE.exhausted)
    expect(prepaid.spentOf('penniless')).toBe(0n)
  })

  it('shows what it lacks in the statuses of the account and of its keys', async () => {
    await prepaid.untilBalance('penniless', 0n)
    await prepaid.stack.untilCondition('Account', 'penniless', 'Ready', { status: 'False', reason: 'BalanceExhausted' })
    await prepaid.stack.untilCondition('Account', 'penniless', 'BalanceExhausted')
    for (const name of numbered('penniless', KEYS))
      await prepaid.stack.untilCondition('ApiKey', name, 'Ready', { status: 'False', reason: 'BalanceExhausted' })
  })

  it('works on every gateway after its first Credit, and shows the balance', async () => {
    expect((await prepaid.create('penniless-1', 'penniless', '25.50')).status).toBe(201)
    printTime(await prepaid.untilAll(credentials, 200), `${KEYS} keys worked on 4 gateways`)
    await prepaid.untilBooked('penniless-1')
    const account = await prepaid.stack.untilCondition('Account', 'penniless', 'Ready')
    for (const name of numbered('penniless', KEYS)) await prepaid.stack.untilCondition('ApiKey', name, 'Ready')
    const { amount } = account.status.balance
    expect([Number(amount) > 25, Number(amount) <= 25.5], amount).toEqual([true, true])
  })

  it('appears with its balance and its spend in the columns of kubectl, and a Credit with its account, amount and type', async () => {
    const columns = async (...what: string[]): Promise<string[]> =>
      (await prepaid.stack.site.plane.kubectl('get', ...what, '--no-headers')).trim().split(/\s{2,}/)
    await eventually(async () => {
      const { balance, spent } = (await prepaid.accountObject('penniless')).status
      const shown = await columns('account', 'penniless')
      expect(shown.slice(0, 3)).toEqual(['penniless', 'True', 'Ready'])
      expect(shown).toEqual(expect.arrayContaining([balance.amount, spent]))
    })
    expect((await columns('credit', 'penniless-1')).slice(0, 5)).toEqual(['penniless-1', 'penniless', '25.50', 'TopUp', 'True'])
    const [selected] = await columns('credits', '--field-selector', 'spec.accountRef.name=penniless')
    expect(selected).toBe('penniless-1')
  })
})

describe('the name of a Credit', () => {
  const MICROS = 1_000_000n

  it('exists and counts once when it is created fifty times at once', async () => {
    await prepaid.account('once')
    const creates = Array.from({ length: 50 }, () => prepaid.create('payment', 'once', '25'))
    const answers = await Promise.all(creates)
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ status, text }) => status === 409 && text.includes('AlreadyExists'))).toHaveLength(49)
    await prepaid.untilBooked('payment')
    await prepaid.untilBalance('once', 25n * MICROS)
  })

  it('B1 counts once when the Credit was deleted and the payment is replayed', async () => {
    await prepaid.deleteCredit('payment')
    await prepaid.pay('payment', 'once', '25.000000')
    await prepaid.pay('marker-1', 'once', '1')
    await prepaid.untilBalance('once', 26n * MICROS)
  })

  it.each([
    ['another amount', 'once', '250'],
    ['another account', 'other', '25'],
  ])('never counts for %s', async (_, name, amount) => {
    await prepaid.account('other')
    await prepaid.deleteCredit('payment')
    expect((await prepaid.create('payment', name, amount)).status).toBe(201)
    await prepaid.untilBooked('payment', 'IdUsed')
    await prepaid.pay(`marker-${name}-${amount}`, 'once', '1')
    await prepaid.pay(`marker-${name}-${amount}-other`, 'other', '1')
    const paid = name === 'once' ? 1n : 2n
    await prepaid.untilBalance('once', (26n + paid) * MICROS)
    await prepaid.untilBalance('other', paid * MICROS)
  })
})

describe('a refund below zero', () => {
  it('stops every key on every gateway, until the debt is repaid', async () => {
    const credentials = await opened('refunded', '10', 3)
    expect((await prepaid.create('refund', 'refunded', '-25.000001')).status).toBe(201)
    printTime(await prepaid.untilAll(credentials, 402), 'a refund stopped 3 keys on 4 gateways')
    for (const answer of await prepaid.onAll(credentials)) expectRefused(answer, 'openai', BALANCE.exhausted)
    await prepaid.stack.untilCondition('Account', 'refunded', 'Ready', { status: 'False', reason: 'BalanceExhausted' })
    expect((await prepaid.accountObject('refunded')).status.balance.amount).toMatch(/^-15\.\d+$/)
    await prepaid.pay('refunded-too-little', 'refunded', '15.00')
    for (const answer of await prepaid.onAll(credentials)) expectRefused(answer, 'openai', BALANCE.exhausted)
    expect((await prepaid.create('refunded-repaid', 'refunded', '20')).status).toBe(201)
    printTime(await prepaid.untilAll(credentials, 200), 'a repaid debt opened 3 keys on 4 gateways')
  })
})

describe('a balance that running calls hold', () => {
  /** Room for two calls of 0.20, and with digits that are found in no other text. */
  const AMOUNT = '0.512345'
  let credential: string

  beforeAll(async () => {
    await prepaid.account('held')
    credential = (await prepaid.keys('held', 1))[0] ?? ''
    await prepaid.pay('held-opening', 'held', AMOUNT)
  })

  it.each(WIRE_FORMATS)(
    'refuses others with a wait on %s routes, and for good a call that needs more than the whole balance; none tells an amount',
    async (format) => {
      const [first, second] = prepaid.gateways
      if (!first || !second) throw new Error('two gateways are needed')
      prepaid.model.hold()
      const before = prepaid.model.reported.requests
      const running = prepaid.call(first, credential, { maxTokens: FIFTH })
      await waitFor('the call to run', () => prepaid.model.reported.requests > before)
      const left = 512_345n - prepaid.spentOf('held') + costOf({ inputTokens: 7, outputTokens: FIFTH }) // of which the running call holds 0.20
      const fits = Math.floor(Number(left) / 2_000) - 5
      const waiting = await prepaid.call(second, credential, { format, maxTokens: fits })
      const seconds = Number(waiting.headers.get('retry-after'))
      expectRefused(waiting, format, { ...BALANCE.held, isFinal: false, retryAfter: seconds })
      expect([seconds > 0, seconds <= 5]).toEqual([true, true])
      const tooLarge = await prepaid.call(second, credential, { format, maxTokens: fits + 10 })
      expectRefused(tooLarge, format, BALANCE.tooSmall)
      for (const { text, headers } of [waiting, tooLarge])
        expect(`${text}${JSON.stringify([...headers])}`).not.toMatch(new RegExp(`512345|0\\.5123|${left}`))
      prepaid.model.release()
      expect((await running).status).toBe(200)
    },
  )

  it('admits the call that had to wait once the others have ended, and no call of a model without a price', async () => {
    await prepaid.untilAll([credential], 200)
    for (const format of WIRE_FORMATS)
      expectRefused(await prepaid.call(prepaid.stack.gateway, credential, { format, model: 'unpriced' }), format, BALANCE.unpriced)
  })
})

describe('fifty calls at once, over five keys and four gateways', () => {
  const shown = (counts: Readonly<Record<string, number>>): void =>
    void process.stdout.write(`50 calls at once with a balance for three: ${JSON.stringify(counts)}\n`)
  let options: Pick<RaceOptions, 'credentials' | 'account' | 'maxTokens'>
  let keys: string[]

  beforeAll(async () => {
    await prepaid.account('race')
    keys = await prepaid.keys('race', KEYS)
    options = { credentials: Array.from({ length: 50 }, (_, at) => keys[at % KEYS] ?? ''), account: 'race', maxTokens: FIFTH }
  })

  it('with a balance for three, never overspend: three run, then all keys answer 402', async () => {
    await prepaid.pay('race-1', 'race', '0.70')
    await prepaid.untilAll(keys, 402, { maxTokens: 10 * FIFTH }) // every gateway knows the balance
    const { counts } = await race(prepaid, { ...options, isKilled: false })
    shown(counts)
    expect(counts['200']).toBe(3)
    expect((counts['402'] ?? 0) + (counts['429'] ?? 0)).toBe(47)
    await prepaid.untilAll(keys, 402, { maxTokens: FIFTH })
    for (const answer of await prepaid.onAll(keys, { maxTokens: FIFTH })) expectRefused(answer, 'openai', BALANCE.tooSmall)
  })

  it('of which one is killed, overspend by no more than its calls; then all keys answer 402, and pass after a Credit', async () => {
    await prepaid.untilReported()
    await prepaid.pay('race-2', 'race', '0.60') // for three again, with the rest of the first Credit
    await prepaid.untilAll(keys, 402, { maxTokens: 10 * FIFTH })
    const { counts, killed } = await race(prepaid, { ...options, isKilled: true })
    shown(counts)
    expect(prepaid.unmeasured.size).toBeGreaterThan(0)
    expect((counts['200'] ?? 0) + prepaid.unmeasured.size).toBeLessThanOrEqual(3)
    expect((counts['402'] ?? 0) + (counts['429'] ?? 0)).toBeGreaterThanOrEqual(47)
    await killed?.start()
    await prepaid.untilAll(keys, 402, { maxTokens: FIFTH }) // the holds of the killed process come back, and are spent
    expect(prepaid.spentOf('race')).toBeLessThanOrEqual(1_300_000n)
    for (const answer of await prepaid.onAll(keys, { maxTokens: FIFTH })) expectRefused(answer, 'openai', BALANCE.tooSmall)
    expect((await prepaid.create('race-3', 'race', '30')).status).toBe(201)
    printTime(await prepaid.untilAll(keys, 200, { maxTokens: FIFTH }), 'a Credit opened 5 keys on 4 gateways')
  })
})

describe('at rest', () => {
  it('each balance is exactly its Credits without what the model server reported for its calls', async () => {
    await atOnce(['penniless', 'refunded', 'held', 'race'], async (account) => {
      expect(prepaid.spentOf(account)).toBeGreaterThan(0n)
      await prepaid.untilBalance(account, prepaid.creditedTo(account) - prepaid.spentOf(account))
    })
  })
})
