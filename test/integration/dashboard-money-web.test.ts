/** The pages of usage, billing, plan and the overview in a real browser. */
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { missingBrowser, TestBrowser, type BrowserOptions } from '../support/browser.ts'
import { FakeDashboard } from '../support/fake-dashboard.ts'
import { budget, keyView } from '../support/fake-keys.ts'
import { billing, billingBelowZero, dayBefore } from '../support/fake-money.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'

const withoutBrowser = missingBrowser()
const folder = temporaryFolderOfFile()
let browser: TestBrowser
let server: FakeDashboard
let page: Page
let context: BrowserContext

beforeAll(async () => {
  server = await FakeDashboard.start(folder)
  server.pages['/paying'] = '<!doctype html><html lang="en"><title>Pay</title><h1>Pay here</h1></html>'
  if (withoutBrowser === undefined) browser = await TestBrowser.start()
})
afterAll(async () => {
  if (withoutBrowser === undefined) await browser.close()
  server.stop()
})
beforeEach(({ skip }) => {
  skip(withoutBrowser !== undefined, withoutBrowser)
  server.reset()
})
afterEach(() => context?.close())

async function open(path: string, options: BrowserOptions = {}): Promise<void> {
  const opened = await browser.open(options)
  page = opened.page
  context = opened.context
  await page.goto(`${server.origin}${path}`)
}
const link = (name: string) => page.getByRole('link', { name, exact: true })
const button = (name: string) => page.getByRole('button', { name, exact: true })
const figure = (label: string): Promise<string> =>
  page
    .locator('dl > div', { has: page.getByText(label, { exact: true }) })
    .locator('dd')
    .first()
    .innerText()
const here = (): string => page.url().slice(server.origin.length)

/** The cells of a table, by row, its head and foot too. */
async function cells(name: string): Promise<string[][]> {
  const rows = await page.getByRole('table', { name }).getByRole('row').all()
  return await Promise.all(rows.map(async (row) => await row.getByRole('cell').or(row.getByRole('rowheader')).allInnerTexts()))
}

/** Adds up what people read: `−1,234.56` and `€0.30`. In hundredths. */
function added(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Math.round(Number(text.replace('−', '-').replaceAll(/[^\d.-]/g, '')) * 100), 0)
}

describe('usage', () => {
  beforeEach(() => server.money.use())

  /** The rows of the table below the chart, its head first. */
  async function chartTable(): Promise<string[][]> {
    await page.locator('summary').click()
    return await page
      .locator('details tr')
      .evaluateAll((rows: readonly { readonly children: Iterable<{ readonly textContent: string }> }[]) =>
        rows.map((row) => [...row.children].map(({ textContent }) => textContent)),
      )
  }

  test.each([
    ['7 days', 7, '/usage?days=7'],
    ['30 days', 30, '/usage'],
    ['90 days', 13, '/usage?days=90'],
  ])('of %s has a table below the chart, whose rows add up to its sums, and its sum is the figure above', async (_name, count, path) => {
    await open(path)
    const spend = await figure('Spend')
    const [head = [], ...rows] = await chartTable()
    const sums = rows.pop() ?? []
    expect([rows.length, head[0], head.at(-1)]).toEqual([count, count === 13 ? 'Week' : 'Day', 'EUR'])
    expect(`€${sums.at(-1)}`).toBe(spend.replace('≈ ', ''))
    // each cell is rounded to a cent, so that sums of what is shown may differ by half a cent for each cell
    expect(Math.abs(added(rows.map((row) => row.at(-1) ?? '')) - added([sums.at(-1) ?? '']))).toBeLessThanOrEqual(rows.length)
    expect(Math.abs(added(sums.slice(1, -1)) - added([sums.at(-1) ?? '']))).toBeLessThanOrEqual(sums.length)
  })

  test('of tokens and of requests adds up exactly, in the chart, in the tables and in the figures', async () => {
    await open('/usage?show=requests')
    const requests = await figure('Requests')
    const sums = (await chartTable()).at(-1) ?? []
    expect(sums.at(-1)).toBe(requests)
    expect(added(sums.slice(1, -1))).toBe(added([requests]))
    expect((await cells('Requests, by outcome')).at(-1)).toEqual(['All', requests, '100.00\u00a0%'])
    await link('Tokens').click()
    await page.getByRole('heading', { name: 'Tokens per day' }).waitFor()
    const tokens = await page.locator('details tfoot td').last().innerText()
    const [, read = '', , written = ''] = (await cells('Tokens, by model')).at(-1) ?? []
    expect(added([read, written])).toBe(added([tokens]))
  })

  test('keeps its filters in the URL: a reload and the way back show the same', async () => {
    await open('/usage')
    await link('7 days').click()
    await link('Tokens').click()
    await page.getByLabel('Key', { exact: true }).selectOption('docs-search')
    await page.getByLabel('Model', { exact: true }).selectOption('gpt-oss-120b')
    await expect.poll(here).toBe('/usage?days=7&show=tokens&key=k-2&model=gpt-oss-120b')
    const tokens = await figure('Tokens')
    await page.reload()
    expect(await figure('Tokens')).toBe(tokens)
    expect([
      await page.getByLabel('Key', { exact: true }).inputValue(),
      await page.getByLabel('Model', { exact: true }).inputValue(),
    ]).toEqual(['k-2', 'gpt-oss-120b'])
    expect(await page.locator('[aria-current="true"]').allInnerTexts()).toEqual(['7 days', 'Tokens'])
    await page.goBack()
    await expect.poll(() => page.getByLabel('Model', { exact: true }).inputValue()).toBe('')
    expect(here()).toBe('/usage?days=7&show=tokens&key=k-2')
    await page.goBack()
    await page.goBack()
    await expect.poll(here).toBe('/usage?days=7')
    expect(await page.getByRole('heading', { level: 2 }).first().innerText()).toBe('Spend per day, by model')
  })

  test('has a file of the rows that it shows', async () => {
    await open('/usage?days=7&key=k-2')
    const file = page.waitForEvent('download')
    await link('Download CSV of the usage').click()
    const name = `usage-${dayBefore(6)}-${dayBefore(0)}.csv`
    expect((await file).suggestedFilename()).toBe(name)
    expect(await link('Download CSV of the usage').getAttribute('href')).toBe(
      `/api/usage.csv?from=${dayBefore(6)}&to=${dayBefore(0)}&key=k-2`,
    )
  })

  test('whose file is refused says why, and saves nothing', async () => {
    server.refusals = { 'GET /api/usage.csv': 'unavailable' }
    await open('/usage')
    await link('Download CSV of the usage').click()
    expect(await page.getByRole('alert').innerText()).toContain('Refused: unavailable.')
    expect(here()).toBe('/usage')
  })

  test('that is away is replaced by the reason, and the filters and the budgets stay', async () => {
    server.refusals = { 'GET /api/usage': 'unavailable' }
    server.keys.list = [keyView({})]
    await open('/usage')
    expect(await page.getByRole('alert').innerText()).toContain('The usage could not be loaded')
    expect(await link('7 days').count()).toBe(1)
    await page.getByRole('heading', { name: 'Budgets' }).waitFor()
    server.refusals = {}
    await button('Try again').click()
    await page.getByRole('table', { name: 'Tokens, by model' }).waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
  })

  test('shows the fullest of many budgets, and all of them on demand', async () => {
    server.keys.list = Array.from({ length: 40 }, (_, index) =>
      keyView({ id: `k-${index}`, name: `bot-${index}`, budgets: [budget({ percent: index, used: String(index), amount: '100' })] }),
    )
    await open('/usage')
    await page.getByText('bot-39, ').waitFor()
    expect(await page.getByText('bot-0, ').count()).toBe(0)
    await button('Show all 41 budgets').press('Enter')
    await page.getByText('bot-0, ').waitFor()
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Show the fullest')
  })

  test('shows the first call by itself', async () => {
    server.money.rows = []
    await open('/usage')
    await page.getByText('No calls in these 30 days').waitFor()
    server.money.use()
    await page.getByRole('table', { name: 'Tokens, by model' }).waitFor()
  })
})

describe('billing', () => {
  test('lists every movement, and their sum is the balance', async () => {
    server.money.use()
    await open('/billing')
    const balance = await figure('Balance')
    const rows = await cells('Ledger')
    const amounts = rows.slice(1, -1).map((row) => row[2] ?? '')
    expect(amounts).toHaveLength(server.money.billing.movements.length)
    expect(rows.at(-1)).toEqual(['', 'Sum of all movements = balance', '', balance.replace('€', '')])
    expect(rows[1]?.at(-1)).toBe(balance.replace('€', ''))
    expect(Math.abs(added(amounts) - added([balance]))).toBeLessThanOrEqual(amounts.length)
  })

  test('a click tops up once, and leads to the page of the provider', async () => {
    await open('/billing')
    await page.getByText('€25', { exact: true }).click()
    await button('Top up').dblclick()
    await page.getByRole('heading', { name: 'Pay here' }).waitFor()
    expect(server.changes).toEqual([expect.stringMatching(/^POST \/api\/billing\/top-up {"amount":"25.00","attempt":"[0-9a-f]{32}"}$/)])
  })

  test('a top-up that is tried again is the same payment, and another amount is another one', async () => {
    server.refusals = { 'POST /api/billing/top-up': 'unavailable' }
    await open('/billing')
    for (const amount of ['€25', '€25', '€50']) {
      await page.getByText(amount, { exact: true }).click()
      await button('Top up').click()
      await page.getByRole('alert').waitFor()
      await expect.poll(() => button('Top up').getAttribute('aria-busy')).toBeNull()
    }
    const [first, second, third] = server.changes.map((change) => /"attempt":"(\w+)"/.exec(change)?.[1])
    expect([first === second, first === third]).toEqual([true, false])
  })

  test('the amounts can be picked by the keyboard', async () => {
    await open('/billing')
    await page.getByRole('radio', { name: '€50' }).focus()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Pay here' }).waitFor()
    expect(server.changes).toEqual([expect.stringContaining('"amount":"100.00"')])
  })

  test('another amount is typed by the keyboard: what is wrong is said at the field, and nothing is sent', async () => {
    await open('/billing')
    await page.getByRole('radio', { name: '€100' }).focus()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('Tab')
    await page.keyboard.type('4.99')
    await page.keyboard.press('Enter')
    const field = page.getByLabel('Other amount')
    const words = async (): Promise<string | null> =>
      await page.locator(`[id="${await field.getAttribute('aria-describedby')}"]`).textContent()
    await expect.poll(words).toBe('Choose an amount from €5 to €1,000.')
    expect(await page.evaluate('document.activeElement.name')).toBe('amount')
    await field.fill('half')
    await page.keyboard.press('Enter')
    await expect.poll(words).toBe('Write an amount like 25.00.')
    expect(server.changes).toEqual([])
    await field.fill('42.50')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Pay here' }).waitFor()
    expect(server.changes).toEqual([expect.stringContaining('"amount":"42.50"')])
  })

  test('back from paying, the page waits until the amount is in the balance', async () => {
    await open('/billing?top-up=paid&session=cs_1')
    await page.getByText('The payment is being confirmed').waitFor()
    expect(server.changes[0]).toBe('POST /api/billing/top-up/check {"session":"cs_1"}')
    const credit = { time: new Date().toISOString(), type: 'TopUp', id: 'x', reference: 'pi_1', amount: '50.00' } as const
    server.money.topUp = 'paid'
    server.money.billing = billing({}, [credit])
    await page.getByText('€50.00 is in the balance').waitFor()
    expect(await figure('Balance')).toBe('€50.00')
  })

  test.each([
    ['failed', 'The payment failed'],
    ['expired', 'Nothing was charged'],
    ['processing', 'The payment is on its way'],
  ] as const)('back from paying, a payment that is %s says "%s"', async (state, words) => {
    server.money.topUp = state
    await open('/billing?top-up=paid&session=cs_1')
    await page.getByText(words, { exact: true }).waitFor()
  })

  test('below zero, the banner says the least amount, and Overview says the same once', async () => {
    server.money.billing = billingBelowZero()
    server.keys.list = [keyView({ state: 'BalanceUsedUp' })]
    await open('/billing')
    const words = await page.getByRole('alert').innerText()
    expect(words).toMatch(/^All keys are stopped: the balance is below zero\s+Your bank took back a top-up.*top up at least €/s)
    expect(await figure('Balance')).toMatch(/^−€/)
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('heading', { name: 'Needs attention' }).waitFor()
    expect(await page.getByRole('alert').allInnerTexts()).toEqual([expect.stringContaining('Your bank took back a top-up.')])
  })

  test('the plan is a tab with an address of its own, within Billing', async () => {
    await open('/billing')
    await link('Plan').click()
    await page.getByRole('table', { name: 'Models' }).waitFor()
    expect(here()).toBe('/billing/plan')
    expect(await page.locator('[aria-current="page"]').allInnerTexts()).toEqual(['Billing', 'Plan'])
    expect((await cells('Limits of the plan')).at(-1)).toEqual(['Keys', '–', '–', '0 of 20'].map((text) => expect.stringContaining(text)))
  })
})

describe('overview', () => {
  test('its steps tick by themselves, and then give way to the figures', async () => {
    await open('/')
    const now = (): Promise<string> => page.locator('[aria-current="step"] h2').innerText()
    await page.getByRole('heading', { name: 'Four steps to your first answer' }).waitFor()
    expect(await now()).toBe('Top up')
    server.money.billing = billing({}, [{ time: new Date().toISOString(), type: 'Grant', id: 'x', reference: '', amount: '10.00' }])
    await expect.poll(now).toBe('Make a key')
    expect(await link('New key').getAttribute('href')).toBe('/keys?new')
    server.keys.list = [keyView({ lastUsedAt: undefined })]
    await expect.poll(now).toBe('Call a model')
    server.keys.list = [keyView({ lastUsedAt: new Date().toISOString() })]
    await page.getByRole('heading', { name: 'Needs attention' }).waitFor()
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Overview')
  })

  test('names what needs attention, with a way to each key', async () => {
    server.money.use()
    const ends = new Date(Date.now() + 3 * 86_400_000).toISOString()
    server.keys.list = [keyView({}), keyView({ id: 'k-5', name: 'ci-smoke-tests', expiresAt: ends })]
    await open('/')
    await page.getByText('Expires in 3 days').waitFor()
    await link('Extend: ci-smoke-tests').click()
    await page.getByRole('heading', { name: 'ci-smoke-tests' }).waitFor()
  })

  test('offline, what was loaded stays, and New key and Top up wait with the reason', async () => {
    server.money.use()
    server.keys.list = [keyView({})]
    await open('/')
    await page.getByText('All keys are well.').waitFor()
    await page.waitForLoadState('networkidle')
    await context.setOffline(true)
    await page.getByText('You are offline').waitFor()
    expect(await button('New key').isDisabled()).toBe(true)
    await page.getByRole('link', { name: 'Billing' }).click() // the page was fetched before
    await page.getByRole('heading', { name: 'Ledger' }).waitFor()
    expect(await button('Top up').isDisabled()).toBe(true)
    await context.setOffline(false)
    await page.getByText('You are offline').waitFor({ state: 'detached' })
    expect(await button('Top up').isEnabled()).toBe(true)
  })
})
