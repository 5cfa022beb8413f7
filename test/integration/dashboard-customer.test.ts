/**
 * The story of a customer in a real browser, over a real API server, operator, gateways, Redis and llama-server: from sign-up over a top-up and a key
 * to the end of the balance and of the key. What the pages say is compared with what the model server reported and with what gateways enforce.
 * Dashboard and payments are programs with the rights of the chart. Mails and Stripe are stand-ins. Each test needs those before it.
 */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ask } from '../support/ask.ts'
import { missingBrowser, noViolations, TestBrowser } from '../support/browser.ts'
import { DashboardSite, KEYS_NAMESPACE } from '../support/dashboard-site.ts'
import { PASSWORD } from '../support/dashboard-world.ts'
import { KeyPages, topUp, type KeyFields, type MadeKey } from '../support/key-pages.ts'
import { openLab } from '../support/lab.ts'
import { UPSTREAM_MODEL } from '../support/model-server-part.ts'
import { ModelTap } from '../support/model-tap.ts'
import type { Stack } from '../support/stack.ts'
import { SteadyCalls } from '../support/steady-calls.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'
import { eventually } from '../support/wait-for.ts'

const EMAIL = 'maya@fernwood.example'
/** Micro-units for a token, so that sums are exact. */
const PRICES = {
  'story-chat': { fresh: 1_000, cached: 500, output: 50_000 },
  'story-code': { fresh: 1_000, cached: 500, output: 2_000 },
  'story-else': { fresh: 1_000, cached: 500, output: 2_000 },
} as const
type Model = keyof typeof PRICES
const MODELS = Object.keys(PRICES) as Model[]
const CEILING = { requestsPerMinute: 40, tokensPerMinute: 100_000 }
const USUAL = { requestsPerMinute: 4 }
const TOP_UP = '$10'
const TOP_UP_MICROS = 10_000_000
const INVOICES: KeyFields = {
  name: 'invoice-reader',
  models: ['story-chat', 'story-code'],
  budget: { amount: '25.00', window: 'a week' },
  requestsPerMinute: '38',
  tokensPerMinute: '90,000',
}
/** Longest wait for the figures of a page that has been opened, ms. */
const LOADED_MS = 15_000
/** Calls that a loss of Redis may take from the usage, ms. */
const MAX_LOST_MS = 10_000
const lab = openLab()
const folder = temporaryFolderOfFile()
const withoutBrowser = missingBrowser()
const taps = new Map<Model, ModelTap>()
/** Keys of Maya by name. */
const made = new Map<string, MadeKey>()
/** Calls that the gateways refused, by key and status. */
const refused = new Map<string, number>()
let stack: Stack
let site: DashboardSite
let browser: TestBrowser
let page: Page
let keys: KeyPages
let others: SteadyCalls
/** Answers of the dashboard that are errors. */
const errors: string[] = []

beforeEach(({ skip }) => skip(withoutBrowser !== undefined, withoutBrowser))
beforeAll(async () => {
  if (withoutBrowser !== undefined) return
  const plane = await lab.ownControlPlane()
  stack = await lab.stack({ gateways: 2, namespaces: [KEYS_NAMESPACE], operatorEnv: { ACCOUNTS: 'true' } }, plane)
  for (const model of MODELS) await serve(model)
  await stack.apply('Plan', 'default', { models: MODELS, perKey: { limits: { default: USUAL, ceiling: CEILING } } })
  await startOtherCustomer()
  site = await DashboardSite.start(lab, stack, folder)
  browser = await TestBrowser.start()
  const opened = await browser.open()
  await opened.context.grantPermissions(['clipboard-read', 'clipboard-write'])
  page = opened.page
  page.on('response', (answer) => {
    if (answer.status() >= 400 && answer.url().startsWith(site.origin)) errors.push(`${answer.status()} ${answer.url()}`)
  })
  page.on('pageerror', ({ message }) => errors.push(message))
  keys = new KeyPages(page, site.origin)
})
afterAll(async () => {
  await others?.stop()
  await browser?.close()
  await site?.close()
  for (const tap of taps.values()) tap.close()
})

async function serve(model: Model): Promise<void> {
  const tap = await ModelTap.start(lab.address.ip, lab.address.modelServer.url)
  taps.set(model, tap)
  const { fresh, cached, output } = PRICES[model]
  const pricing = { inputPerMillion: String(fresh), cachedInputPerMillion: String(cached), outputPerMillion: String(output) }
  const backends = [{ name: 'llama', url: tap.url, upstreamModel: UPSTREAM_MODEL, messages: 'Native' }]
  await stack.serveModel(model, { backends, pricing, contextTokens: 16_384 })
}

/** A customer with another account, whose key is called all the time. */
async function startOtherCustomer(): Promise<void> {
  const namespaces = { matchLabels: { 'kubernetes.io/metadata.name': KEYS_NAMESPACE } }
  await stack.apply('Plan', 'another')
  await stack.apply('Account', 'sam', { planRef: { name: 'another' }, namespaces })
  await stack.untilCondition('Account', 'sam', 'Ready')
  const credential = await stack.issueKey('sam-key', { accountRef: { name: 'sam' } }, KEYS_NAMESPACE)
  others = new SteadyCalls(lab, [stack.gateways[1]?.url ?? ''], [{ name: 'sam', credential, model: 'story-else' }])
}

const button = (name: string) => page.getByRole('button', { name, exact: true })
const field = (name: string) => page.getByLabel(name, { exact: true })
const heading = (name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor()

function keyOf(name: string): MadeKey {
  const key = made.get(name)
  if (key === undefined) throw new Error(`${name} has not been made`)
  return key
}

async function makeKey(fields: KeyFields): Promise<void> {
  made.set(fields.name, await keys.make(fields))
}

/** One call, which the model server's report is counted for by the name of the key. */
async function statusOf(name: string, model: Model, { gateway = 0, maxTokens = 1 } = {}): Promise<number> {
  const { status } = await ask(lab, stack.gateways[gateway]?.url ?? '', {
    ...{ credential: keyOf(name).value, model, headers: { 'x-session-id': name } },
    fields: { max_tokens: maxTokens },
  })
  if (status !== 200) noteRefusal(name, status)
  return status
}

function noteRefusal(name: string, status: number): void {
  refused.set(`${name} ${status}`, (refused.get(`${name} ${status}`) ?? 0) + 1)
}

function openai(name: string): OpenAI {
  const { SERVICE_API_KEY: apiKey = '', SERVICE_BASE_URL: baseURL = '' } = keyOf(name).env
  return new OpenAI({ apiKey, baseURL, maxRetries: 0, defaultHeaders: { 'x-session-id': name } })
}

function anthropic(name: string): Anthropic {
  const { SERVICE_API_KEY: authToken = '', SERVICE_BASE_URL: url = '' } = keyOf(name).env
  const baseURL = url.replace(/\/v1$/, '')
  return new Anthropic({ authToken, apiKey: null, baseURL, maxRetries: 0, defaultHeaders: { 'x-session-id': name } })
}

/** The rows of a table by their header, without the head. */
async function tableRows(name: string): Promise<Readonly<Record<string, readonly string[]>>> {
  const rows = await page
    .getByRole('table', { name })
    .getByRole('row')
    .filter({ has: page.getByRole('rowheader') })
    .all()
  const read = rows.map(async (row) => [await row.getByRole('rowheader').innerText(), await row.getByRole('cell').allInnerTexts()] as const)
  return Object.fromEntries(await Promise.all(read))
}

const count = (number: number): string => (number === 0 ? '–' : number.toLocaleString('en-US'))

/** The page of usage shows for a key what the model server has reported, by model and to the token, and how its calls ended. */
async function usageIsTrue(name: string): Promise<void> {
  const used = MODELS.map((model) => ({ model, usage: taps.get(model)?.of(name) })).filter(({ usage }) => usage?.requests)
  const answered = used.reduce((sum, { usage }) => sum + (usage?.requests ?? 0), 0)
  expect(answered).toBeGreaterThan(0)
  const refusals = [
    ['Over a rate limit, 429', refused.get(`${name} 429`)],
    ['Budget or balance used up, 402', refused.get(`${name} 402`)],
    ['Model not allowed, 403', refused.get(`${name} 403`)],
  ].filter(([, times]) => times !== undefined)
  await eventually(
    async () => {
      await page.goto(`${site.origin}/usage?days=7&key=${keyOf(name).id}`)
      await page.getByRole('table', { name: 'Tokens, by model' }).waitFor({ timeout: LOADED_MS }) // the next look loads the page again
      const { All: _sum, ...tokens } = await tableRows('Tokens, by model')
      expect(Object.fromEntries(Object.entries(tokens).map(([model, cells]) => [model, cells.slice(0, 3)]))).toEqual(
        Object.fromEntries(
          used.map(({ model, usage }) => [model, [count(usage?.input ?? 0), count(usage?.cached ?? 0), count(usage?.output ?? 0)]]),
        ),
      )
      const { All: _all, 'Failed, 5xx': failed, ...outcomes } = await tableRows('Requests, by outcome')
      expect(failed?.[0]).toBe('0')
      expect(Object.entries(outcomes).map(([outcome, [requests]]) => [outcome, requests])).toEqual([
        ['Answered', count(answered)],
        ...refusals.map(([outcome, times]) => [outcome, count(Number(times))]),
      ])
    },
    { everyMs: 500 },
  )
}

/** The balance of the page is what was paid, less the price of all that the model server has reported; the ledger says so, too. */
async function balanceIsTrue(topUps: number): Promise<void> {
  const spent = MODELS.flatMap((model) => [...made.keys()].map((name) => [model, taps.get(model)?.of(name)] as const)).reduce(
    (sum, [model, usage]) => {
      const { input = 0, cached = 0, output = 0 } = usage ?? {}
      return sum + (input - cached) * PRICES[model].fresh + cached * PRICES[model].cached + output * PRICES[model].output
    },
    0,
  )
  const left = (topUps * TOP_UP_MICROS - spent) / 1_000_000
  await eventually(
    async () => {
      await page.goto(`${site.origin}/billing`)
      await page.getByText('Sum of all movements = balance').waitFor()
      const balance = page.locator('dl > div', { has: page.getByText('Balance', { exact: true }) }).locator('dd')
      expect(await balance.first().innerText()).toBe(left.toLocaleString('en-US', { style: 'currency', currency: 'USD' }))
    },
    { everyMs: 500 },
  )
}

describe('a customer', () => {
  it('signs up, proves the address, and is led to the first top-up', async () => {
    await page.goto(site.origin)
    await page.getByRole('link', { name: 'Sign up' }).click()
    await field('Email').fill(EMAIL)
    await field('Password').fill(PASSWORD)
    await button('Sign up').click()
    await page.goto((await site.mails.nextMail(EMAIL, /Verify/)).links[0] ?? '')
    await button('Verify email').click()
    await heading('Four steps to your first answer')
    expect(await page.locator('[aria-current="step"] h2').innerText()).toBe('Top up')
  })

  it('pays at the provider, and comes back to a balance that has the amount', async () => {
    await topUp(page, site.origin, TOP_UP)
    await balanceIsTrue(1)
  })

  it('makes a key for two models with a budget and both rates, and copies its value once every gateway admits it', async () => {
    await makeKey(INVOICES)
    await noViolations(page)
    await makeKey({ name: 'night-batch', requestsPerMinute: '40' })
    expect(await statusOf('night-batch', 'story-code', { gateway: 1 })).toBe(200)
  })

  it('is answered in both SDKs with the variables that the page gave, at once and streamed', async () => {
    const question = { max_tokens: 16, messages: [{ role: 'user' as const, content: 'Say something.' }] }
    const chat = openai(INVOICES.name).chat.completions
    expect((await chat.create({ ...question, model: 'story-chat' })).model).toBe('story-chat')
    for await (const chunk of await chat.create({ ...question, model: 'story-code', stream: true })) expect(chunk.model).toBe('story-code')
    const { messages } = anthropic(INVOICES.name)
    expect(await messages.create({ ...question, model: 'story-code' })).toMatchObject({ type: 'message', model: 'story-code' })
    expect((await messages.stream({ ...question, model: 'story-chat' }).finalMessage()).model).toBe('story-chat')
    expect([taps.get('story-chat')?.of(INVOICES.name).requests, taps.get('story-code')?.of(INVOICES.name).requests]).toEqual([2, 2])
  })

  it('sees these calls on the page of usage, to the token', async () => {
    await usageIsTrue(INVOICES.name)
    await page.goto(site.origin)
    await heading('Overview')
  })

  it('is refused with 403 for a model of the plan that the key is not for', async () => {
    const messages = [{ role: 'user' as const, content: 'Say something.' }]
    const error: unknown = await openai(INVOICES.name)
      .chat.completions.create({ model: 'story-else', messages })
      .catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(OpenAI.PermissionDeniedError)
    noteRefusal(INVOICES.name, 403)
    expect(await statusOf(INVOICES.name, 'story-else')).toBe(403)
    await usageIsTrue(INVOICES.name)
  })

  it('is refused with 402 in both SDKs at the end of the balance, and not before', async () => {
    for (const maxTokens of [32, 4, 1]) while ((await statusOf(INVOICES.name, 'story-chat', { maxTokens })) === 200);
    expect(refused.get(`${INVOICES.name} 402`)).toBe(3)
    const question = { model: 'story-chat', max_tokens: 8, messages: [{ role: 'user' as const, content: 'Say something.' }] }
    const calls = [openai(INVOICES.name).chat.completions.create(question), anthropic(INVOICES.name).messages.create(question)]
    for (const { reason } of (await Promise.allSettled(calls)) as { readonly reason?: unknown }[]) {
      expect(reason).toMatchObject({ status: 402, message: expect.stringContaining('balance') })
      noteRefusal(INVOICES.name, 402)
    }
    await balanceIsTrue(1)
    await usageIsTrue(INVOICES.name)
  })

  it('tops up, and the same key is answered again on every gateway', async () => {
    await topUp(page, site.origin, TOP_UP)
    for (const gateway of [0, 1]) expect(await statusOf(INVOICES.name, 'story-chat', { gateway })).toBe(200)
    await balanceIsTrue(2)
  })

  it('revokes the key by typing its name, and every gateway answers 401 once the page says so', async () => {
    await keys.revoke(INVOICES.name, 2)
    for (const gateway of [0, 1]) expect(await statusOf(INVOICES.name, 'story-chat', { gateway })).toBe(401)
    await expect(openai(INVOICES.name).models.list()).rejects.toMatchObject({ status: 401 })
    await expect(anthropic(INVOICES.name).models.list()).rejects.toMatchObject({ status: 401 })
    for (const gateway of [0, 1]) expect(await statusOf('night-batch', 'story-code', { gateway })).toBe(200)
  })

  it('has disturbed no other customer: each call of another key was answered all the time', async () => {
    const answers = await others.stop()
    expect(answers).toEqual({ 'sam 200': expect.any(Number) })
    expect(answers['sam 200']).toBeGreaterThan(50)
  })
})

describe('what the pages say is true:', () => {
  it('the usage of a key, also after it was revoked', async () => {
    await usageIsTrue(INVOICES.name)
    await expect.poll(() => field('Key').innerText()).toContain(`${INVOICES.name} (revoked)`)
    await usageIsTrue('night-batch')
    await balanceIsTrue(2)
  })

  it.each<[string, KeyFields, value: number, owner: string]>([
    ['a limit of the key', { name: 'three-a-minute', requestsPerMinute: '3' }, 3, 'key'],
    ['the usual limit of the plan', { name: 'as-usual' }, USUAL.requestsPerMinute, 'plan'],
    ['the ceiling of the plan', { name: 'wants-much', requestsPerMinute: '500' }, CEILING.requestsPerMinute, 'plan'],
  ])('%s is the one that gateways enforce together', async (_what, fields, value, owner) => {
    await makeKey(fields)
    expect((await keys.limitsInForce(fields.name))['Requests per minute']).toEqual([String(value), owner])
    for (let at = 0; at < value; at += 1) expect(await statusOf(fields.name, 'story-code', { gateway: at % 2 })).toBe(200)
    for (const gateway of [0, 1]) expect(await statusOf(fields.name, 'story-code', { gateway })).toBe(429)
    await usageIsTrue(fields.name)
  })

  it('the tokens of a minute and the models are those that gateways say and hold', async () => {
    await makeKey({ name: 'careful', models: ['story-code'], tokensPerMinute: '200,000', budget: { amount: '0.20', window: 'a day' } })
    expect(await keys.limitsInForce('careful')).toMatchObject({ Models: ['story-code', 'key'], 'Tokens per minute': ['100,000', 'plan'] })
    const call = { credential: keyOf('careful').value, model: 'story-code', headers: { 'x-session-id': 'careful' } }
    const answer = await ask(lab, stack.gateway.url, { ...call, fields: { max_tokens: 1 } })
    expect([answer.status, answer.headers.get('x-ratelimit-limit-tokens')]).toEqual([200, '100000'])
    expect(await statusOf('careful', 'story-chat')).toBe(403)
  })

  it('a budget of the key ends its calls, and names its owner there as in the answer', async () => {
    await keys.open('careful')
    const budget = page.locator('section', { has: page.getByRole('heading', { name: 'Budgets' }) })
    await expect.poll(() => budget.innerText()).toMatch(/This key, today\s+key\s.*of \$0\.20/s)
    const call = { credential: keyOf('careful').value, model: 'story-code', headers: { 'x-session-id': 'careful' } }
    const answer = await ask(lab, stack.gateway.url, { ...call, fields: { max_tokens: 200 } }) // dearer than the budget
    expect(JSON.parse(answer.text)).toMatchObject({ error: { metadata: { owner: 'key' } } })
    expect(answer.status).toBe(402)
    noteRefusal('careful', 402)
    await usageIsTrue('careful')
    await balanceIsTrue(2)
  })

  it('and no page has had an error of its own', () => {
    expect(errors).toEqual([])
  })

  it('after Redis has lost everything, the usage lacks ten seconds at most, and the page says so', async () => {
    const answered = async (): Promise<number> => {
      await page.goto(`${site.origin}/usage?days=7`)
      await page.getByRole('table', { name: 'Requests, by outcome' }).waitFor({ timeout: LOADED_MS })
      return Number((await tableRows('Requests, by outcome'))['Answered']?.[0])
    }
    const reported = (): number =>
      MODELS.flatMap((model) => [...made.keys()].map((name) => taps.get(model)?.of(name).requests ?? 0)).reduce((a, b) => a + b)
    await eventually(async () => expect(await answered()).toBe(reported()), { everyMs: 500 })
    const young = [...taps.values()].reduce((sum, tap) => sum + tap.withinLast(MAX_LOST_MS), 0)
    await stack.redis.admin.flushall()
    await eventually(async () => expect(await statusOf('night-batch', 'story-code')).toBe(200))
    await eventually(
      async () => {
        const shown = await answered()
        expect([shown <= reported(), shown >= reported() - young]).toEqual([true, true])
        await page.getByText(/Up to ten seconds of calls are missing on/).waitFor({ timeout: LOADED_MS })
      },
      { everyMs: 500 },
    )
  })
})
