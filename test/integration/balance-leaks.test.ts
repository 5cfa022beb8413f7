/**
 * Neither the holder of a key nor a tenant can read the balance of an account, its spend or the rest of it. No answer, header, log line, metric,
 * Event or status of a key has these amounts, whatever the answer is.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Answer, ask, callHeaders, PATHS, smallBody, WIRE_FORMATS } from '../support/ask.ts'
import { balancesIn, noteBalance } from '../support/balance-search.ts'
import { CountingModel } from '../support/counting-model.ts'
import { objectPath } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import type { Stack } from '../support/stack.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const lab = openLab()
const NAME = 'balance-leaks'
const TOP_UP = '73914.826531'
const DISPUTE = '94182.736459'
/** What is left of both Credits without any spend. */
const BOTH = '-20267.909928'
/** One call costs thousands, so that every amount left is unusual too. */
const PRICING = { inputPerMillion: '12345671.234579', outputPerMillion: '987654326.543213' }
const MODEL = 'leaks-model'
/** Never ends a stream. */
const SILENT = 'leaks-silent'
let model: CountingModel
let stack: Stack
let credential: string
/** Everything that a holder of the key or a tenant has seen. */
const seen: string[] = []
/** Amounts that nobody but an administrator may see. */
const secret: string[] = []

beforeAll(async () => {
  const plane = await lab.ownControlPlane() // one installation of a cluster has accounts
  model = await CountingModel.start(lab.address.ip)
  stack = await lab.stack({ gateways: 2, namespaces: [NAME], operatorEnv: { ACCOUNTS: 'true', BILLING_LOW_BALANCE: '70000' } }, plane)
  await stack.serveModel(MODEL, { pricing: PRICING })
  await stack.serveModel(SILENT, { backends: [{ name: 'silent', url: model.url }], contextTokens: 8_192, pricing: PRICING })
  await stack.apply('Plan', NAME)
  const namespaces = { matchLabels: { 'kubernetes.io/metadata.name': NAME } }
  await stack.apply('Account', NAME, { planRef: { name: NAME }, billing: 'Prepaid', namespaces })
  for (const amount of [TOP_UP, DISPUTE, BOTH]) note(amount)
  await credit('leaks-top-up', TOP_UP, 'TopUp')
  await stack.untilCondition('Account', NAME, 'Ready')
  credential = await stack.issueKey(NAME, { accountRef: { name: NAME } })
})
afterAll(() => model.close())

function note(amount: string): void {
  secret.push(amount)
  noteBalance(lab.folder, amount)
}

async function credit(name: string, amount: string, type: string): Promise<void> {
  const spec = { accountRef: { name: NAME }, amount, type }
  await stack.kube.apply({ apiVersion: 'headgate.dev/v1alpha1', kind: 'Credit', metadata: { name }, spec })
  const path = objectPath('headgate.dev/v1alpha1', 'Credit', '', name)
  await waitFor(`Credit ${name} to be booked`, async () => JSON.stringify((await stack.kube.get(path))?.status).includes('"Booked"'))
}

/** What an administrator sees. */
async function account(): Promise<{ readonly balance: string; readonly spent: string }> {
  const { balance, spent } = (await stack.kube.get(stack.path('Account', NAME)))?.status ?? {}
  return { balance: (balance as { amount: string } | undefined)?.amount ?? '', spent: String(spent) }
}

/** Notes what is spent and left once no call holds anything, as Redis has it. */
async function noteSpend(credits: string): Promise<void> {
  const [key = ''] = await stack.redis.admin.keys('*:balance')
  const { s: spent = '' } = await waitFor('no hold', async () => {
    const balance = await stack.redis.admin.hgetall(key)
    return balance.H === undefined && balance
  })
  const micros = (amount: string): number => Math.round(Number(amount) * 1e6)
  for (const amount of [Number(spent), micros(credits) - Number(spent)]) note((amount / 1e6).toFixed(6))
}

/** One call in each dialect; both answers must have this message, or this status. */
async function call(fields: object, expected: number | string): Promise<void> {
  for (const [at, format] of WIRE_FORMATS.entries()) {
    const url = stack.gateways[at]?.url ?? ''
    const answer = await ask(lab, url, { credential, format, model: MODEL, fields: { ...fields } })
    seen.push(textOf(answer))
    expect(typeof expected === 'number' ? answer.status : messageOf(answer), answer.text).toBe(expected)
  }
}

/** The message of a refusal, without the time of the next try. Its metadata name the balance and have no amount. */
function messageOf({ text }: Answer): unknown {
  const { error } = JSON.parse(text) as { readonly error: { readonly type: string; readonly code?: string; readonly message: string } }
  expect(error).toMatchObject({ metadata: { limit: 'balance', owner: 'account', needed: null, left: null } })
  return error.message.replace(/ Please try again in [\d.]+s\.$/, '')
}

function textOf({ status, headers, text }: Answer): string {
  return `${status} ${JSON.stringify(Object.fromEntries(headers))}\n${text}`
}

/** What a key can ask about itself, and what a tenant sees in the namespace of the key. */
async function look(): Promise<void> {
  for (const { url } of stack.gateways) {
    for (const path of ['/v1/key', '/v1/models', `/v1/models/${MODEL}`]) {
      const answer = await fetch(url + path, { headers: callHeaders(credential) })
      seen.push(lab.record(textOf({ status: answer.status, headers: answer.headers, text: await answer.text() })))
      expect(answer.status).toBe(200)
    }
  }
  seen.push(JSON.stringify(await stack.list('ApiKey')), JSON.stringify(await stack.list('ServedModel')))
  for (const namespace of [NAME, 'default']) seen.push(JSON.stringify(await stack.kube.list(objectPath('v1', 'Event', namespace))))
  for (const program of [...stack.gateways, ...stack.operators]) seen.push(await program.metrics(), program.process.log())
}

/** Cents alone may be a leak as well. */
function leaks(): string[] {
  const text = seen.join('\n')
  const cents = secret.map((amount) => amount.replace(/^-/, '').replace(/(\.\d\d)\d+$/, '$1'))
  return [...balancesIn(text, secret), ...cents.filter((amount) => new RegExp(`(?<!\\d)${amount.replace('.', '\\.')}(?!\\d)`).test(text))]
}

describe('what a prepaid account has', () => {
  it('is in no answer, header, log line, metric, Event or status of its keys', async () => {
    await call({ max_tokens: 5 }, 200)
    await noteSpend(TOP_UP)
    await eventually(async () => expect(secret).toEqual(expect.arrayContaining(Object.values(await account()))), { deadlineMs: 150_000 })
    await look()

    await call({ max_tokens: 1_000 }, 'This call does not fit the balance of its account; lower max_tokens or shorten the prompt')
    await call(
      { max_tokens: 1_000, stream: true },
      'This call does not fit the balance of its account; lower max_tokens or shorten the prompt',
    )

    const leave = new AbortController()
    const body = JSON.stringify(smallBody(SILENT, { max_tokens: 40, stream: true, messages: [{ role: 'user', content: 'be silent' }] }))
    const request = { method: 'POST', headers: callHeaders(credential), body, signal: leave.signal }
    const running = await fetch(stack.gateway.url + PATHS.openai, request)
    expect(running.status).toBe(200)
    await call({ max_tokens: 40 }, 'Budget is held by running requests: the balance of the account of this key.')
    leave.abort()
    await noteSpend(TOP_UP)

    await credit('leaks-dispute', `-${DISPUTE}`, 'Dispute')
    await eventually(() => call({ max_tokens: 1 }, 'Balance exhausted'))
    await stack.untilCondition('ApiKey', NAME, 'Ready', { status: 'False', reason: 'BalanceExhausted' })
    await noteSpend(BOTH)
    await eventually(async () => expect((await account()).balance).toMatch(/^-/))
    await look()
    expect(seen.join('\n')).toContain('BalanceExhausted')
    expect(leaks()).toEqual([])
  })
})
