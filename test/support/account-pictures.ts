/** Pictures of the pages of an account in use: overview, keys, usage, billing and plan. Values of keys in them open nothing. */
import type { Page } from 'playwright-core'
import type { TestBrowser } from './browser.ts'
import type { FakeDashboard } from './fake-dashboard.ts'
import { arrangeAccount, arrangeNewAccount } from './pictured-account.ts'

interface Picture {
  readonly path: string
  /** What the page does not show before. */
  readonly shown: string
  readonly act?: (page: Page) => Promise<void>
}

const PICTURES: Readonly<Record<string, Picture>> = {
  'overview-new': { path: '/', shown: 'Four steps to your first answer' },
  overview: { path: '/', shown: 'Last 7 days as a table' },
  keys: { path: '/keys', shown: 'checkout-bot production' },
  'key-new': { path: '/keys?new', shown: 'Where it lives', act: fillForm },
  'key-created': { path: '/keys?new', shown: 'Where it lives', act: createKey },
  key: { path: '/keys/k-1', shown: 'Last 30 days as a table' },
  usage: { path: '/usage', shown: 'Requests, by outcome' },
  billing: { path: '/billing', shown: 'Download CSV' },
  plan: { path: '/billing/plan', shown: 'qwen-2.5-coder-32b' },
}
/** Pages whose picture ends with the window: their tables are long. */
const CUT = new Set(['usage', 'billing', 'key-new', 'key-created'])
const PHONE = 360
const LOOKS = [
  { dark: false, width: 1280, height: 940, suffix: '', pages: Object.keys(PICTURES) },
  { dark: true, width: 1280, height: 940, suffix: '-dark', pages: Object.keys(PICTURES) },
  { dark: false, width: PHONE, height: 760, suffix: '-phone', pages: ['overview', 'keys', 'key-created', 'billing'] },
  { dark: true, width: PHONE, height: 760, suffix: '-phone-dark', pages: ['overview'] },
]

/** @param shoot writes a picture of the page under a name */
export async function drawAccount(
  browser: TestBrowser,
  server: FakeDashboard,
  shoot: (page: Page, name: string, isWhole: boolean) => Promise<void>,
): Promise<void> {
  for (const { pages, suffix, ...look } of LOOKS) {
    for (const name of pages) {
      const { path, shown, act } = PICTURES[name] ?? { path: '/', shown: '' }
      arrangeAccount(server)
      if (name === 'overview-new') arrangeNewAccount(server)
      const { page, context } = await browser.open(look)
      await page.goto(`${server.origin}${path}`)
      await page.getByText(shown).first().waitFor()
      await page.waitForLoadState('networkidle')
      await act?.(page)
      await shoot(page, `${name}${suffix}`, !CUT.has(name) && look.width > PHONE)
      await context.close()
    }
  }
}

async function fillForm(page: Page): Promise<void> {
  const form = page.getByRole('dialog')
  await form.getByLabel('Name').fill('invoice-reader production')
  await form.getByLabel('Only these').check()
  await form.getByLabel('llama-3.3-70b').check()
  await form.getByLabel('llama-3.1-8b').check()
  await form.getByLabel('Maximum budget').fill('25.00')
  await form.getByLabel('Name').focus() // the beginning of the form
}

async function createKey(page: Page): Promise<void> {
  await page.getByLabel('Name').first().fill('invoice-reader production')
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByText('You can call now.').waitFor()
}
