/** The pages of signed-in people in a real browser: what a keyboard, a screen reader and a bad network meet. */
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { missingBrowser, noSidewaysScroll, noViolations, TestBrowser, type BrowserOptions } from '../support/browser.ts'
import { BACKUP_CODES, FakeDashboard } from '../support/fake-dashboard.ts'
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

async function open(path: string, options: BrowserOptions = {}): Promise<void> {
  const opened = await browser.open(options)
  page = opened.page
  context = opened.context
  problems = opened.problems
  await page.goto(`${server.origin}${path}`)
}
const button = (name: string) => page.getByRole('button', { name, exact: true })
const dialog = (name: string) => page.getByRole('dialog', { name })
const focused = (): Promise<string | undefined> => page.evaluate('document.activeElement.textContent || document.activeElement.name')

describe('a change that needs a fresh proof', () => {
  beforeEach(() => {
    server.wantsProof = true
  })

  test('asks for the password, keeps asking after a wrong one, and then goes on by itself', async () => {
    await open('/settings')
    await button('End all others').click()
    const confirm = dialog('Confirm it is you')
    await confirm.getByLabel('Password').fill('wrong')
    await page.keyboard.press('Enter')
    await confirm.getByText('Refused: wrong-credentials.').waitFor()
    expect(await focused()).toBe('password')
    await confirm.getByLabel('Password').fill('the right password')
    await page.keyboard.press('Enter')
    await confirm.waitFor({ state: 'detached' })
    await expect
      .poll(() => server.changes)
      .toEqual([
        'POST /api/sessions/end-others {}',
        'POST /api/confirm {"password":"wrong"}',
        'POST /api/confirm {"password":"the right password"}',
        'POST /api/sessions/end-others {}',
      ])
    await expect.poll(focused).toBe('Sessions')
  })

  test('is not made when the person closes the dialog, and the focus is back at its button', async () => {
    await open('/settings')
    await button('End all others').press('Enter')
    await dialog('Confirm it is you').waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(focused).toBe('End all others')
    expect(server.changes).toEqual(['POST /api/sessions/end-others {}'])
    expect(await page.getByRole('alert').count()).toBe(0)
  })

  test('leads a person without a password to sign in again, and back', async () => {
    server.me = { ...server.me, person: { ...server.me.person, hasPassword: false } }
    await open('/settings')
    await button('End all others').click()
    await dialog('Confirm it is you').getByRole('button', { name: 'Sign in again' }).click()
    await page.waitForURL('**/sign-in?reason=confirm&next=%2Fsettings')
  })

  test('asks for the password and a code once two-factor is on, grouped or not', async () => {
    server.me = { ...server.me, person: { ...server.me.person, twoFactor: { isOn: true } } }
    await open('/settings')
    await button('End all others').click()
    const confirm = dialog('Confirm it is you')
    await confirm.getByLabel('Password').fill('the right password')
    await page.keyboard.press('Enter')
    await confirm.getByText('Type your code.').waitFor()
    await confirm.getByLabel('Code').fill('123 456')
    await page.keyboard.press('Enter')
    await expect
      .poll(() => server.changes.slice(1))
      .toEqual(['POST /api/confirm {"password":"the right password","code":"123456"}', 'POST /api/sessions/end-others {}'])
  })

  test('asks above the dialog from which the change came', async () => {
    await open('/settings')
    await button('Delete account').click()
    await dialog('Delete your account?').getByLabel('Type your email').fill('maya@x.example')
    await page.keyboard.press('Enter')
    await dialog('Confirm it is you').getByLabel('Password').fill('the right password')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/sign-in?reason=account-deleted')
    expect(server.changes.at(-1)).toBe('POST /api/account/delete {"email":"maya@x.example"}')
  })
})

test('an account is not deleted before its email is typed, and the field says so', async () => {
  await open('/settings')
  await button('Delete account').click()
  const email = dialog('Delete your account?').getByLabel('Type your email')
  await email.fill('maya@other.example')
  await page.keyboard.press('Enter')
  await page.getByText('This is not maya@x.example.').waitFor()
  expect(await email.getAttribute('aria-invalid')).toBe('true')
  expect(server.changes).toEqual([])
})

test('two clicks save once', async () => {
  await open('/settings')
  await page.getByLabel('Name').fill('Maya O')
  await button('Save').dblclick()
  await page.getByText('Saved').waitFor()
  expect(server.changes).toEqual(['PATCH /api/me {"name":"Maya O"}'])
})

test('a session that ended leads to sign-in and back, with what was typed; no password is ever stored', async () => {
  await open('/settings')
  await page.getByLabel('Current password').fill('the right password')
  await page.getByLabel('New password').fill('a new long password')
  await page.getByLabel('Name').fill('Maya Okafor')
  server.hasSession = false
  await button('Save').click()
  await page.waitForURL('**/sign-in?reason=session-ended&next=%2Fsettings')
  expect(await page.evaluate('JSON.stringify([{ ...sessionStorage }, { ...localStorage }])')).not.toMatch(/right|long/)
  server.hasSession = true
  await page.goto(`${server.origin}/settings`)
  await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('Maya Okafor')
  await button('Sign out').click()
  await page.waitForURL('**/sign-in?reason=signed-out')
  await page.goto(`${server.origin}/settings`)
  await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('Maya')
})

test('navigation moves the focus to the heading and changes the title; the first page leaves the focus alone', async () => {
  await open('/')
  await page.getByRole('heading', { name: 'Four steps to your first answer' }).waitFor()
  expect([await page.title(), await page.evaluate('document.activeElement === document.body')]).toEqual(['Overview · Headgate', true])
  await page.getByRole('link', { name: 'Settings' }).press('Enter')
  await expect.poll(() => page.evaluate('document.activeElement.outerHTML')).toMatch(/^<h1.*Settings/)
  expect(await page.title()).toBe('Settings · Headgate')
  expect(await page.getByRole('link', { name: 'Settings' }).getAttribute('aria-current')).toBe('page')
})

test('what a provider led to is said once, at its section, in our own words', async () => {
  await open('/settings?provider=github&error=%3Cb%3Eyou+won%3C/b%3E')
  const alert = page.getByRole('alert')
  expect(await alert.textContent()).toBe('GitHub was not linkedSomething did not work between the provider and this page. Link again.')
  await expect.poll(focused).toBe('Sign-in')
  expect(page.url()).toBe(`${server.origin}/settings`)
  await page.goto(`${server.origin}/settings?linked=github`)
  await page.getByText('GitHub is linked').waitFor()
})

test('a page whose code fails says so and offers a way on; the other pages work', async () => {
  server.me = { ...server.me, account: { state: 'Unheard' } as never }
  await open('/')
  await page.getByRole('heading', { name: 'Something went wrong on this page' }).waitFor()
  await noViolations(page)
  await page.getByRole('link', { name: 'Settings' }).click()
  await page.getByRole('heading', { name: 'Sessions', exact: true }).waitFor()
})

test('the first Tab offers to skip to the content', async () => {
  await open('/')
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.keyboard.press('Tab')
  expect(await focused()).toBe('Skip to content')
})

test('offline, the data stays, buttons that change something are disabled with the reason, and all is back by itself', async () => {
  await open('/settings')
  await button('Save').waitFor()
  await context.setOffline(true)
  await page.getByText('You are offline').waitFor()
  const save = button('Save')
  expect([await save.isDisabled(), await page.getByLabel('Name').inputValue()]).toEqual([true, 'Maya'])
  expect(await page.locator(`#${await save.getAttribute('aria-describedby')}`).textContent()).toContain('You are offline')
  await context.setOffline(false)
  await page.getByText('You are offline').waitFor({ state: 'detached' })
  expect(await save.isEnabled()).toBe(true)
})

test('while the cluster is away the page is read only, and says so', async () => {
  server.me = { ...server.me, readOnlySince: '2026-11-24T12:03:00Z' }
  await open('/settings')
  await page.getByText('The cluster does not answer the dashboard.').waitFor()
  expect(await button('Change email').isDisabled()).toBe(true)
})

test('a list that could not be loaded is replaced by the reason and a button that loads it; the rest works', async () => {
  server.refusals = { 'GET /api/sessions': 'unavailable' }
  await open('/settings')
  const alert = page.getByRole('alert')
  await alert.waitFor()
  expect(await alert.textContent()).toMatch(/^The sessions could not be loaded.*Request id req_7/)
  server.refusals = {}
  await alert.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('Firefox on Linux').waitFor()
})

describe('two-factor', () => {
  async function turnOn(): Promise<void> {
    await button('Turn on two-factor').click()
    const secret = dialog('Turn on two-factor')
    await secret.getByText('JBSW Y3DP EHPK 3PXP').waitFor()
    await secret.getByLabel('Code').fill('000000')
    await page.keyboard.press('Enter')
    await secret.getByText('Refused: wrong-credentials.').waitFor()
    await secret.getByLabel('Code').fill('123456')
    await page.keyboard.press('Enter')
    await dialog('Your backup codes').waitFor()
  }

  test('shows its backup codes once, asks once before they are closed uncopied, and leaves none in the page', async () => {
    await open('/settings')
    await turnOn()
    const codes = dialog('Your backup codes')
    expect(await codes.getByRole('listitem').allTextContents()).toEqual(BACKUP_CODES)
    await page.keyboard.press('Escape')
    await codes.getByText('The codes are not copied yet.').waitFor()
    await codes.getByRole('button', { name: 'Close anyway' }).click()
    await codes.waitFor({ state: 'detached' })
    expect(await page.content()).not.toContain(BACKUP_CODES[0])
    await expect.poll(focused).toBe('Two-factor')
    await page.getByText('3 left.').waitFor()
  })

  test('without a clipboard the codes are selected, the page says so, and a copy by the keyboard counts', async () => {
    await open('/settings')
    await page.evaluate(`Object.defineProperty(navigator, 'clipboard', { value: { writeText: () => Promise.reject(new Error('no')) } })`)
    await turnOn()
    const codes = dialog('Your backup codes')
    await codes.getByRole('button', { name: 'Copy' }).click()
    await codes.getByText('The browser refused the clipboard.').waitFor()
    expect(await page.evaluate('getSelection().toString()')).toContain(BACKUP_CODES.at(-1))
    await page.keyboard.press('Control+c')
    await codes.getByRole('button', { name: 'Done' }).click()
    await codes.waitFor({ state: 'detached' })
  })
})

describe('the script of the pages before sign-in', () => {
  test('shows and hides the password, and sends it hidden', async () => {
    const show = '<button type="button" data-show-password="password" hidden>Show<span> password</span></button>'
    server.pages['/door'] = server.door(
      `<form action="/x" method="post"><label>Password <input id="password" type="password"></label>${show}<button>Go</button></form>`,
    )
    await open('/door')
    await button('Show password').click()
    const type = (): Promise<string | null> => page.locator('#password').getAttribute('type')
    expect([await type(), await button('Hide password').count()]).toEqual(['text', 1])
    await page.evaluate(`document.forms[0].addEventListener('submit', (event) => event.preventDefault())`)
    await button('Go').click()
    expect(await type()).toBe('password')
  })

  test('counts down, and then the button can be pressed', async () => {
    server.pages['/door'] = server.door('<button type="submit" disabled data-countdown-seconds="42">Send again in 0:42</button>')
    const opened = await browser.open()
    page = opened.page
    context = opened.context
    await page.clock.install()
    await page.goto(`${server.origin}/door`)
    await page.clock.fastForward(10_000)
    await expect.poll(() => page.getByRole('button').textContent()).toMatch(/Send again in 0:3[12]/)
    expect(await page.getByRole('button').isDisabled()).toBe(true)
    await page.clock.fastForward(33_000)
    await expect.poll(() => page.getByRole('button').textContent()).toBe('Send again')
    expect(await page.getByRole('button').isEnabled()).toBe(true)
  })

  test('shows a button that copies the request id', async () => {
    server.pages['/door'] = server.door('<input id="id" value="req_9" aria-label="Request id"><button data-copy="id" hidden>Copy</button>')
    await open('/door')
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await button('Copy').click()
    await button('Copied').waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('req_9')
  })
})

/** [name, path, what the server answers] */
const STATES: ReadonlyArray<readonly [string, string, () => void]> = [
  ['Overview', '/', () => undefined],
  [
    'Overview of a Suspended account',
    '/',
    () => (server.me = { ...server.me, account: { state: 'Suspended', name: 'u', plan: 't', isReady: true } }),
  ],
  ['Overview of a Closed account', '/', () => (server.me = { ...server.me, account: { state: 'Closed' } })],
  ['Overview before its account', '/', () => (server.me = { ...server.me, account: { state: 'Unknown' } })],
  ['Overview that could not be loaded', '/', () => (server.refusals = { 'GET /api/me': 'internal' })],
  ['Settings', '/settings', () => undefined],
  ['Settings, read only', '/settings', () => (server.me = { ...server.me, readOnlySince: '2026-11-24T12:03:00Z' })],
  ['Settings whose lists could not be loaded', '/settings', () => (server.refusals = { 'GET /api/sessions': 'internal' })],
  ['a path that leads nowhere', '/nowhere', () => undefined],
]

describe.each([
  { width: 1280, dark: false },
  { width: 1280, dark: true },
  { width: 360, dark: false },
  { width: 360, dark: true },
])('at a width of $width, dark: $dark', (options) => {
  test.each(STATES)('%s has no violation of WCAG 2.2 AA, no sideways scroll, no error', async (_name, path, arrange) => {
    arrange()
    await open(path, options)
    await page.waitForLoadState('networkidle')
    await page
      .locator('main')
      .getByRole(server.refusals['GET /api/me'] ? 'alert' : 'heading')
      .first()
      .waitFor()
    await noViolations(page)
    await noSidewaysScroll(page)
    expect(problems.filter((problem) => !problem.includes('status of 500'))).toEqual([]) // the browser reports the refusals of the test
  })

  test('the dialogs have no violation of WCAG 2.2 AA', async () => {
    server.wantsProof = true
    await open('/settings', options)
    await button('End all others').click()
    await dialog('Confirm it is you').waitFor()
    await noViolations(page)
    await page.keyboard.press('Escape')
    await button('Delete account').click()
    await dialog('Delete your account?').waitFor()
    await page.keyboard.press('Enter')
    await noViolations(page)
    await noSidewaysScroll(page)
  })
})
