/** The pages of usage, billing, plan and the overview as a screen reader and a phone meet them: every state, light and dark, wide and narrow. */
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { missingBrowser, noSidewaysScroll, noViolations, TestBrowser } from '../support/browser.ts'
import { FakeDashboard } from '../support/fake-dashboard.ts'
import { KEYS_OF_ALL_STATES, PLAN } from '../support/fake-keys.ts'
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

const inUse = (): void => {
  server.money.use()
  server.keys.list = KEYS_OF_ALL_STATES
}
const without =
  (...routes: string[]) =>
  (): void => {
    inUse()
    server.refusals = Object.fromEntries(routes.map((route) => [`GET /api/${route}`, 'internal']))
  }
const pays = (payments: ReturnType<typeof billing>['payments']) => (): void => void (server.money.billing = billing({ payments }))
const long = 'x'.repeat(63)

/** [name, path, what the server answers, what the page then shows] */
const STATES: ReadonlyArray<readonly [string, string, () => void, string]> = [
  ['Overview of a new account', '/', () => undefined, 'Four steps to your first answer'],
  ['Overview of an account in use', '/', inUse, 'Spend, last 7 days'],
  ['Overview below zero', '/', () => (inUse(), (server.money.billing = billingBelowZero())), 'the balance is below zero'],
  ['Overview without balance, keys and usage', '/', without('billing', 'keys', 'usage'), 'The usage could not be loaded'],
  ['Usage without a call', '/usage', () => undefined, 'No calls in these 30 days'],
  ['Usage of 30 days', '/usage', inUse, 'Requests, by outcome'],
  ['Usage of 90 days, in tokens', '/usage?days=90&show=tokens', inUse, 'Tokens per week'],
  ['Usage of 7 days, in requests, of one key', '/usage?days=7&show=requests&key=k-1', inUse, 'Requests per day'],
  ['Usage with filters that find nothing', '/usage?model=none', inUse, 'No calls with these filters'],
  [
    'Usage with long names and lost counts',
    '/usage',
    () => {
      inUse()
      server.money.rows = server.money.rows.map((row) => ({ ...row, model: `${long}${row.model}`, keyName: long }))
      server.money.incomplete = [dayBefore(3)]
    },
    'are missing on',
  ],
  ['Usage that could not be loaded', '/usage', without('usage', 'keys', 'plan'), 'The usage could not be loaded'],
  ['Billing of a new account', '/billing', () => undefined, 'No movement yet.'],
  ['Billing', '/billing', inUse, 'Sum of all movements = balance'],
  [
    'Billing with a payment on its way',
    '/billing',
    () => (server.money.billing = billing({ pending: [{ time: new Date().toISOString(), amount: '100.00', method: 'SEPA debit' }] })),
    'is on its way',
  ],
  [
    'Billing so far below zero that an amount must be typed',
    '/billing',
    () => {
      const loss = { time: new Date().toISOString(), type: 'Dispute', id: 'x', reference: 'dp_1', amount: '-500.00' } as const
      server.money.billing = billing({}, [loss])
    },
    'Other amount',
  ],
  ['Billing below zero', '/billing', () => (server.money.billing = billingBelowZero()), 'the balance is below zero'],
  [
    'Billing by an administrator',
    '/billing',
    pays({ provider: 'manual', amounts: [], command: `headgate credit add ${long}` }),
    'This command adds credit',
  ],
  ['Billing without payments', '/billing', pays({ provider: 'none', amounts: [] }), 'Nothing is paid here.'],
  [
    'Billing after a payment that failed',
    '/billing?top-up=paid&session=cs_1',
    () => (inUse(), (server.money.topUp = 'failed')),
    'The payment failed',
  ],
  ['Billing that could not be loaded', '/billing', without('billing'), 'The balance could not be loaded'],
  ['Plan', '/billing/plan', inUse, 'Models'],
  ['a plan without models', '/billing/plan', () => (server.keys.plan = { ...PLAN, models: [] }), 'no model that your keys may call'],
  ['a plan that is missing', '/billing/plan', () => (server.keys.plan = { ...PLAN, most: undefined, models: [] }), 'does not exist'],
  ['a plan that could not be loaded', '/billing/plan', without('plan'), 'The plan could not be loaded'],
]

describe.each([
  { width: 1280, dark: false },
  { width: 1280, dark: true },
  { width: 360, dark: false },
  { width: 360, dark: true },
])('at a width of $width, dark: $dark', (options) => {
  test.each(STATES)('%s has no violation of WCAG 2.2 AA, no sideways scroll, no error', async (_name, path, arrange, shown) => {
    arrange()
    const opened = await browser.open(options)
    page = opened.page
    context = opened.context
    await page.goto(`${server.origin}${path}`)
    await page.getByText(shown).first().waitFor()
    for (const summary of await page.locator('summary').all()) await summary.click()
    await noViolations(page)
    await noSidewaysScroll(page)
    expect(opened.problems.filter((problem) => !problem.includes('status of 500'))).toEqual([]) // the browser reports the refusals of the test
  })
})
