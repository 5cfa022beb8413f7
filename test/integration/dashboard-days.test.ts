/**
 * The usage page across several days, in a real browser over a real API server, operator, gateway, Redis and llama-server. The clock of Redis decides the
 * day of a call. The clock starts two days behind and is moved forward, so no test waits for midnight. Each test needs those before it.
 */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ask } from '../support/ask.ts'
import { missingBrowser, TestBrowser } from '../support/browser.ts'
import { DashboardSite, KEYS_NAMESPACE } from '../support/dashboard-site.ts'
import { PASSWORD } from '../support/dashboard-world.ts'
import { KeyPages, topUp, type MadeKey } from '../support/key-pages.ts'
import { openLab } from '../support/lab.ts'
import { UPSTREAM_MODEL } from '../support/model-server-part.ts'
import { ModelTap, type ReportedUsage } from '../support/model-tap.ts'
import { ClockOfRedis } from '../support/redis-clock.ts'
import type { Stack } from '../support/stack.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'
import { eventually } from '../support/wait-for.ts'

const EMAIL = 'maya@fernwood.example'
const MODEL = 'daily-chat'
const DAY_MS = 86_400_000
/** Longest wait for the figures of a page that has been opened, ms. */
const LOADED_MS = 15_000
const lab = openLab()
const folder = temporaryFolderOfFile()
const withoutBrowser = missingBrowser()
/** `key day`, the day as `2026-11-24`, and the tokens that the model server reported for it. */
const reported = new Map<string, number>()
const made = new Map<string, MadeKey>()
let stack: Stack
let site: DashboardSite
let browser: TestBrowser
let page: Page
let keys: KeyPages
let tap: ModelTap
let clock: ClockOfRedis

beforeEach(({ skip }) => skip(withoutBrowser !== undefined, withoutBrowser))
beforeAll(async () => {
  if (withoutBrowser !== undefined) return
  const plane = await lab.ownControlPlane()
  stack = await lab.stack({ gateways: 1, namespaces: [KEYS_NAMESPACE], operatorEnv: { ACCOUNTS: 'true' } }, plane)
  clock = await ClockOfRedis.of(stack.redis.admin)
  await clock.setBehind(2 * DAY_MS)
  tap = await ModelTap.start(lab.address.ip, lab.address.modelServer.url)
  const backends = [{ name: 'llama', url: tap.url, upstreamModel: UPSTREAM_MODEL, messages: 'Native' }]
  await stack.serveModel(MODEL, { backends, pricing: { inputPerMillion: '1', outputPerMillion: '2' }, contextTokens: 16_384 })
  await stack.apply('Plan', 'default')
  site = await DashboardSite.start(lab, stack, folder)
  browser = await TestBrowser.start()
  const opened = await browser.open()
  await opened.context.grantPermissions(['clipboard-read', 'clipboard-write'])
  page = opened.page
  keys = new KeyPages(page, site.origin)
  await signUp()
})
afterAll(async () => {
  await browser?.close()
  await site?.close()
  tap?.close()
})

async function signUp(): Promise<void> {
  await page.goto(`${site.origin}/sign-up`)
  await page.getByLabel('Email', { exact: true }).fill(EMAIL)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign up', exact: true }).click()
  await page.goto((await site.mails.nextMail(EMAIL, /Verify/)).links[0] ?? '')
  await page.getByRole('button', { name: 'Verify email', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Four steps to your first answer' }).waitFor()
  await topUp(page, site.origin, '$10')
}

async function call(name: string, times: number): Promise<void> {
  const day = new Date(Date.now() - clock.behindMs).toISOString().slice(0, 10)
  const tokens = ({ input, output }: ReportedUsage): number => input + output
  const before = tokens(tap.of(name))
  for (let at = 0; at < times; at += 1) {
    const question = { credential: made.get(name)?.value ?? '', model: MODEL, headers: { 'x-session-id': name } }
    expect((await ask(lab, stack.gateway.url, { ...question, fields: { max_tokens: 4 } })).status).toBe(200)
  }
  reported.set(`${name} ${day}`, tokens(tap.of(name)) - before)
}

/** The tokens that the usage page of a key shows for each day, by the name of the day, such as `Thu 26 Nov`. Days without tokens are left out. */
async function tokensByDay(name: string): Promise<Readonly<Record<string, string | undefined>>> {
  await page.goto(`${site.origin}/usage?days=7&show=tokens&key=${made.get(name)?.id ?? ''}`)
  const twin = page.locator('details', { has: page.getByText('Tokens per day as a table') })
  await twin.waitFor({ timeout: LOADED_MS }) // the next look loads the page again
  const rows = await twin.locator('tbody tr').all()
  const read = rows.map(async (row) => [await row.locator('th').textContent(), (await row.locator('td').allTextContents()).at(-1)] as const)
  return Object.fromEntries((await Promise.all(read)).filter(([, tokens]) => tokens !== '–' && tokens !== '0'))
}

/** The page has what the model server reported, on the day on which it did. */
async function daysAreTrue(name: string): Promise<void> {
  const ofKey = [...reported].filter(([at]) => at.startsWith(`${name} `))
  const shown = ofKey.map(([at, tokens]): readonly [string, string] => [nameOf(at.slice(name.length + 1)), tokens.toLocaleString('en-US')])
  await eventually(async () => expect(await tokensByDay(name)).toEqual(Object.fromEntries(shown)), { everyMs: 500 })
}

/** `Thu 26 Nov` */
function nameOf(day: string): string {
  const part = (options: Intl.DateTimeFormatOptions): string =>
    new Date(`${day}T00:00Z`).toLocaleDateString('en-GB', { ...options, timeZone: 'UTC' })
  return [{ weekday: 'short' } as const, { day: 'numeric' } as const, { month: 'short' } as const].map(part).join(' ')
}

/** Names of the Secrets of closed days: the operator makes one when it closes the first day of an account. */
async function booksOfClosedDays(): Promise<readonly string[]> {
  const path = `/api/v1/namespaces/${stack.operatorNamespace}/secrets?labelSelector=headgate.dev/shards%3Dhistory`
  return (await stack.kube.list(path)).map(({ metadata }) => metadata.name)
}

describe('the page of usage', () => {
  it('has the calls of a day on that day, to the token', async () => {
    for (const name of ['steady', 'short-lived']) made.set(name, await keys.make({ name }))
    await call('steady', 1)
    await call('short-lived', 2)
    await daysAreTrue('steady')
    await daysAreTrue('short-lived')
  })

  it('keeps them there when the next day has begun, also those of a key that is revoked then', async () => {
    await clock.setBehind(DAY_MS)
    await call('steady', 2)
    expect(await booksOfClosedDays(), 'a day stays open during the next one').toEqual([])
    await keys.revoke('short-lived', 1)
    await daysAreTrue('steady')
    await daysAreTrue('short-lived')
  })

  it('keeps them when their day has been closed, which is when the day after has ended', async () => {
    await clock.setBehind(0)
    await call('steady', 3)
    await daysAreTrue('steady')
    await eventually(async () => expect(await booksOfClosedDays()).toHaveLength(1), { everyMs: 500 })
    await daysAreTrue('steady')
    await daysAreTrue('short-lived')
    expect([...reported.keys()].filter((at) => at.startsWith('steady'))).toHaveLength(3)
    await expect.poll(() => page.getByLabel('Key', { exact: true }).innerText()).toContain('short-lived (revoked)')
  })
})
