/**
 * `make screenshots`: draws each page of the dashboard into docs/images/, light and dark, at 1280 and 360 pixels, in a real browser: sign-in,
 * verification and settings from a real dashboard, and the pages of an account in use from one whose cluster is invented. Prints the size of each
 * picture.
 */
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Account } from '#api/account.ts'
import { accounts } from '#api/resources.ts'
import type { Cookie, Page } from 'playwright-core'
import type { Refusal } from '../dashboard/server/page-data/people.ts'
import { startLocalDashboard, type LocalDashboard } from '../standalone/dashboard.ts'
import { ObjectStore } from '../standalone/object-store.ts'
import { drawAccount } from './support/account-pictures.ts'
import { missingBrowser, TestBrowser } from './support/browser.ts'
import { FakeDashboard } from './support/fake-dashboard.ts'

const IMAGES = join(import.meta.dirname, '../docs/images')
const EMAIL = 'maya@fernwood.example'
const PASSWORD = 'four quiet herons wade'
const LOG = {
  debug: () => undefined,
  info: () => undefined,
  warn: (...line: unknown[]) => print(String(line)),
  error: (...line: unknown[]) => print(String(line)),
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-screenshots-'))
  const store = new ObjectStore()
  const dashboard = await startLocalDashboard({
    store,
    stateFolder: folder,
    host: '127.0.0.1',
    port: 0,
    apiURL: 'http://127.0.0.1:8080',
    keysNamespace: 'headgate-accounts',
    usageURL: 'http://127.0.0.1:9', // nothing answers there
    currency: 'USD',
    lowBalance: undefined,
    payments: 'manual',
    log: LOG,
  })
  const browser = await TestBrowser.start()
  try {
    mkdirSync(IMAGES, { recursive: true })
    const { page } = await browser.open({ width: 1280, height: 800 })
    await story(dashboard, store, page)
    const cookies = await page.context().cookies()
    for (const look of LOOKS) await drawAll(browser, look, { url: dashboard.url, cookies })
    const inUse = await FakeDashboard.start(join(folder, 'pages'))
    await drawAccount(browser, inUse, shoot)
    inUse.stop()
  } finally {
    await browser.close()
    await dashboard.stop()
    rmSync(folder, { recursive: true })
  }
}

/** Each page in one look: before sign-in, after it, and where its data cannot be loaded. */
async function drawAll(browser: TestBrowser, { suffix, ...look }: (typeof LOOKS)[number], { url, cookies }: Signed): Promise<void> {
  const { page, context } = await browser.open(look)
  for (const [name, path] of Object.entries(BEFORE)) await draw(page, `${url}${path}`, `${name}${suffix}`)
  await context.addCookies(cookies)
  for (const [name, path] of Object.entries(AFTER)) await draw(page, `${url}${path}`, `${name}${suffix}`)
  await page.route('**/api/me', (route) => route.fulfill({ status: 500, json: FAILURE }))
  await page.goto(url)
  await page.getByRole('button', { name: 'Try again' }).waitFor() // after the page's own tries
  await shoot(page, `overview-error${suffix}`)
  await context.close()
}

/** A dashboard, and the cookies of a signed-in person. */
interface Signed {
  readonly url: string
  readonly cookies: Cookie[]
}

const LOOKS = [
  { dark: false, width: 1280, height: 800, suffix: '' },
  { dark: true, width: 1280, height: 800, suffix: '-dark' },
  { dark: false, width: 360, height: 720, suffix: '-phone' },
  { dark: true, width: 360, height: 720, suffix: '-phone-dark' },
]
const FAILURE: Refusal = { error: { code: 'internal', message: 'Something went wrong on our side.', requestID: 'req_7Qh2kXw0f1A' } }
const BEFORE = {
  'sign-up': '/sign-up',
  'sign-in': '/sign-in',
  'sign-in-provider-error': '/sign-in?error=email_not_verified&provider=github',
  'session-ended': '/sign-in?reason=session-ended&next=/settings',
  reset: '/reset',
  'two-factor': '/two-factor',
  'not-found': '/nothing',
}
const AFTER = { settings: '/settings' }

/** Signs up, verifies and waits for the Account, with a picture of each page that only a story shows. */
async function story({ url }: LocalDashboard, store: ObjectStore, page: Page): Promise<void> {
  await page.goto(`${url}/sign-up`)
  await page.getByLabel('Email').fill(EMAIL)
  await page.getByLabel('Password', { exact: true }).fill('short')
  await page.getByRole('button', { name: 'Sign up' }).click()
  await shoot(page, 'sign-up-errors')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign up' }).click()
  await page.getByRole('heading', { name: 'Check your mail' }).waitFor()
  await shoot(page, 'check-your-mail')
  await page.goto(`${url}/dev/mail`)
  await page.getByRole('link', { name: /Verify/ }).click()
  await page.getByRole('link', { name: /verify\?token/ }).click()
  await shoot(page, 'verify')
  await page.getByRole('button', { name: 'Verify email' }).click()
  await page.getByRole('heading', { level: 1 }).waitFor()
  await makeReady(store)
}

/** Does the work of the operator, which is not here. */
async function makeReady(store: ObjectStore): Promise<void> {
  const [account] = await store.list<Account>(accounts, '')
  if (account === undefined) throw new Error('there is no Account')
  const lastTransitionTime = new Date().toISOString()
  const conditions = [{ type: 'Ready', status: 'True' as const, reason: 'Ready', message: '', lastTransitionTime, observedGeneration: 1 }]
  await store.applyStatus(accounts, { ...account, status: { conditions } })
}

async function draw(page: Page, url: string, name: string): Promise<void> {
  await page.goto(url)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.waitForLoadState('networkidle')
  await shoot(page, name)
}

async function shoot(page: Page, name: string, isWhole = true): Promise<void> {
  const path = join(IMAGES, `${name}.png`)
  await page.screenshot({ path, fullPage: isWhole })
  print(`screenshots: docs/images/${name}.png ${Math.round(statSync(path).size / 1024)} KiB`)
}

const reason = missingBrowser()
if (reason !== undefined) {
  process.stderr.write(`screenshots: ${reason}\n`)
  process.exitCode = 1
} else await main()
