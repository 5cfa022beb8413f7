/** The pages of keys as a screen reader and a phone meet them: every state and every dialog, light and dark, wide and narrow. */
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { missingBrowser, noSidewaysScroll, noViolations, TestBrowser, type BrowserOptions } from '../support/browser.ts'
import { FakeDashboard } from '../support/fake-dashboard.ts'
import { KEYS_OF_ALL_STATES, keyView } from '../support/fake-keys.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'

const withoutBrowser = missingBrowser()
const folder = temporaryFolderOfFile()
let browser: TestBrowser
let server: FakeDashboard
let page: Page
let context: BrowserContext
let problems: readonly string[]

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

async function open(path: string, options: BrowserOptions): Promise<void> {
  const opened = await browser.open(options)
  page = opened.page
  context = opened.context
  problems = opened.problems
  await page.goto(`${server.origin}${path}`)
}
const button = (name: string) => page.getByRole('button', { name, exact: true })
const dialog = (name: string) => page.getByRole('dialog', { name })

async function looksRight(): Promise<void> {
  await noViolations(page)
  await noSidewaysScroll(page)
  expect(await page.evaluate(CUT_OFF)).toEqual([])
}
/** Parts of an open dialog that are wider than the dialog, which cuts them off. */
const CUT_OFF =
  '[...document.querySelectorAll("dialog[open], dialog[open] > *")].filter((part) => part.scrollWidth > part.clientWidth).map((part) => part.textContent)'

const withAllKeys = (): void => void (server.keys.list = KEYS_OF_ALL_STATES)
/** [name, path, what the server answers, what the page then shows] */
const STATES: ReadonlyArray<readonly [string, string, () => void, string]> = [
  ['API Keys without a key', '/keys', () => undefined, 'No keys yet'],
  ['API Keys in all states', '/keys', withAllKeys, 'being-replaced'],
  ['API Keys that could not be loaded', '/keys', () => (server.refusals = { 'GET /api/keys': 'internal' }), 'The keys could not be loaded'],
  [
    'API Keys with a long name',
    '/keys',
    () => (server.keys.list = [keyView({ name: 'x'.repeat(63), models: ['y'.repeat(253)] })]),
    'x'.repeat(63),
  ],
  ['a key that works', '/keys/k-1', withAllKeys, 'Limits in force'],
  ['a key with a used up budget', '/keys/k-3', withAllKeys, 'Calls answer 402'],
  ['a Suspended key', '/keys/k-4', withAllKeys, 'Suspended on 3/3 gateways'],
  ['a key that is not accepted', '/keys/k-7', withAllKeys, 'This key is not accepted'],
  ['a key with a former value', '/keys/k-8', withAllKeys, 'The old value works until'],
  ['a Revoked key', '/keys/k-9', withAllKeys, 'Revoked on 3/3 gateways'],
  [
    'a key that could not be loaded',
    '/keys/k-1',
    () => (server.refusals = { 'GET /api/keys/k-1': 'internal' }),
    'The key could not be loaded',
  ],
]

describe.each([
  { width: 1280, dark: false },
  { width: 1280, dark: true },
  { width: 360, dark: false },
  { width: 360, dark: true },
])('at a width of $width, dark: $dark', (options) => {
  test.each(STATES)('%s has no violation of WCAG 2.2 AA, no sideways scroll, no error', async (_name, path, arrange, words) => {
    arrange()
    await open(path, options)
    await page.getByText(words).first().waitFor()
    await looksRight()
    expect(problems.filter((problem) => !problem.includes('status of 500'))).toEqual([]) // the browser reports the refusals of the test
  })

  test('a search without a result and the revoked keys', async () => {
    withAllKeys()
    await open('/keys', options)
    await page.getByLabel('Search keys').fill('nothing')
    await button('Clear search').waitFor()
    await looksRight()
    await button('Clear search').click()
    await page.getByLabel('Show revoked').check()
    await looksRight()
  })

  test('the form of a new key with all its errors, and the dialog with the value', async () => {
    await open('/keys?new', options)
    await dialog('New key').waitFor()
    await looksRight()
    await dialog('New key').getByLabel('Only these').check()
    await dialog('New key').getByLabel('Requests per minute').fill('x')
    await dialog('New key').getByLabel('Tokens per minute').fill('200000')
    await dialog('New key').getByLabel('Expires').selectOption('On a date')
    await button('Create key').click()
    await page.getByText('Four things to change').waitFor()
    await looksRight()
    await dialog('New key').getByLabel('All of the plan').check()
    await dialog('New key').getByLabel('Expires').selectOption('In 90 days')
    await dialog('New key').getByLabel('Requests per minute').fill('')
    await dialog('New key').getByLabel('Name').fill('invoice-reader')
    await button('Create key').click()
    await dialog('Copy your key now').waitFor()
    await looksRight()
    for (const name of ['curl', 'Anthropic']) {
      await page.getByRole('tab', { name }).click()
      await looksRight()
    }
    await page.keyboard.press('Escape')
    await page.getByText('The key has not been copied.').waitFor()
    await looksRight()
  })

  test('the dialogs of a key whose name has no space', async () => {
    const name = 'x'.repeat(63)
    server.keys.list = [keyView({ name })]
    await open('/keys/k-1', options)
    for (const [words, title] of [
      ['Replace', `Replace ${name}`],
      ['Revoke', `Revoke ${name}?`],
    ] as const) {
      await button(words).click()
      await dialog(title).waitFor()
      await looksRight()
      await page.keyboard.press('Escape')
    }
    await button('Replace').click()
    await dialog(`Replace ${name}`).getByRole('button', { name: 'Replace' }).click()
    await dialog('Copy your key now').waitFor()
    await looksRight()
  })

  test('the dialogs that change a key', async () => {
    withAllKeys()
    await open('/keys/k-1', options)
    await button('Replace').click()
    await dialog('Replace checkout-bot production').waitFor()
    await looksRight()
    await page.keyboard.press('Escape')
    await button('Revoke').click()
    await dialog('Revoke checkout-bot production?').waitFor()
    await page.keyboard.press('Enter')
    await page.getByText('This is not checkout-bot production.').waitFor()
    await looksRight()
    await page.keyboard.press('Escape')
    await button('Edit limits').click()
    await dialog('Edit limits').waitFor()
    await looksRight()
  })
})
