/** The pages of keys in a real browser: a key is made, copied once, changed and ended. */
import type { BrowserContext, CDPSession, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { missingBrowser, TestBrowser, type BrowserOptions } from '../support/browser.ts'
import { microsOf } from '../../dashboard/web/micros.ts'
import { FakeDashboard } from '../support/fake-dashboard.ts'
import { budget, KEY_VALUE, KEYS_OF_ALL_STATES, keyView } from '../support/fake-keys.ts'
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

async function open(path: string, options: BrowserOptions = {}): Promise<void> {
  const opened = await browser.open(options)
  page = opened.page
  context = opened.context
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.goto(`${server.origin}${path}`)
}
const button = (name: string) => page.getByRole('button', { name, exact: true })
const dialog = (name: string) => page.getByRole('dialog', { name })
const shownOnce = (): Locator => dialog('Copy your key now')
const focused = (): Promise<string | undefined> => page.evaluate('document.activeElement.textContent || document.activeElement.name')
const clipboard = (): Promise<string> => page.evaluate('navigator.clipboard.readText()')
/** Bodies of the requests that made a key. */
const created = (): readonly unknown[] =>
  server.changes
    .filter((change) => change.startsWith('POST /api/keys {'))
    .map((change) => JSON.parse(change.slice('POST /api/keys '.length)))

async function makeKey(name = 'invoice-reader'): Promise<void> {
  await button('New key').click()
  await dialog('New key').getByLabel('Name').fill(name)
  await button('Create key').click()
  await shownOnce().waitFor()
}

/** Where the value could stay: the page, its storage, its address, its history. */
async function traces(): Promise<string> {
  const kept = await page.evaluate(
    'JSON.stringify([{ ...sessionStorage }, { ...localStorage }, history.state, document.cookie, location.href])',
  )
  const typed = await page.evaluate('JSON.stringify([...document.querySelectorAll("input, textarea")].map((field) => field.value))')
  return `${await page.content()} ${String(kept)} ${String(typed)}`
}

test('the keyboard alone makes the first key, copies its value, and comes back to the list', async () => {
  await open('/keys')
  await button('New key').press('Enter')
  await expect.poll(focused).toBe('name')
  await page.keyboard.type('invoice-reader')
  await page.keyboard.press('Enter')
  await shownOnce().waitFor()
  await expect.poll(focused).toBe('Copy')
  await page.keyboard.press('Enter')
  await button('Copied').waitFor()
  expect(await shownOnce().getByRole('status').allTextContents()).toContain('Copied')
  expect(await clipboard()).toBe(KEY_VALUE)
  await button('Done').press('Enter')
  await shownOnce().waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'invoice-reader' }).waitFor()
  await expect.poll(focused).toBe('API Keys')
  expect(created()).toEqual([{ name: 'invoice-reader', models: ['*'], attempt: expect.stringMatching(/^[\w-]{16,64}$/) }])
})

describe('the form of a new key', () => {
  test('sends what was ticked and typed, and says which ceiling will hold', async () => {
    await open('/keys?new')
    const form = dialog('New key')
    await form.getByLabel('Name').fill('invoice-reader')
    await form.getByLabel('Only these').check()
    await form.getByLabel('llama-3.3-70b').check()
    await form.getByLabel('llama-3.1-8b').check()
    await form.getByLabel('Maximum budget').fill('25.00')
    await form.getByLabel('Budget window').selectOption('a week')
    await form.getByLabel('Requests per minute').fill('30')
    await form.getByLabel('Tokens per minute').fill('200,000')
    await form.getByText('Above the ceiling: 100,000 will hold.').waitFor()
    await form.getByLabel('Expires').selectOption('On a date')
    await form.getByLabel('Last day').fill('2099-02-22')
    await button('Create key').click()
    await shownOnce().waitFor()
    expect(created()).toMatchObject([
      {
        name: 'invoice-reader',
        models: ['llama-3.3-70b', 'llama-3.1-8b'],
        budget: { amount: '25.00', window: 'Week' },
        requestsPerMinute: 30,
        tokensPerMinute: 200_000,
        expiresAt: '2099-02-22T23:59:59Z',
      },
    ])
    expect(page.url()).toBe(`${server.origin}/keys`)
  })

  test('lists all errors, takes the focus there, leads to each field, and sends nothing', async () => {
    await open('/keys?new')
    const form = dialog('New key')
    await form.getByLabel('Only these').check()
    await form.getByLabel('Maximum budget').fill('25,0')
    await form.getByLabel('Requests per minute').fill('12.5')
    await button('Create key').click()
    const summary = form.getByRole('alert')
    await expect.poll(focused).toContain('Four things to change')
    await summary.getByRole('button', { name: 'Maximum budget is not an amount' }).click()
    expect(await focused()).toBe('budget')
    const field = form.getByLabel('Maximum budget')
    const help = (await field.getAttribute('aria-describedby'))?.split(' ').at(-1) ?? ''
    expect(await page.locator(`[id="${help}"]`).textContent()).toBe('Write an amount like 25.00.')
    expect(server.changes).toEqual([])
  })

  test('makes one key for two clicks', async () => {
    await open('/keys?new')
    await dialog('New key').getByLabel('Name').fill('invoice-reader')
    await button('Create key').dblclick()
    await shownOnce().waitFor()
    expect(created()).toHaveLength(1)
  })

  test('sent again after a lost answer makes no second key, says so, and offers to replace the value', async () => {
    server.lost.add('POST /api/keys')
    await open('/keys?new')
    await dialog('New key').getByLabel('Name').fill('invoice-reader')
    await button('Create key').click()
    await page.getByText('The dashboard did not answer.').waitFor()
    await button('Create key').click()
    await page.getByText('Already created. Its value cannot be shown again.').waitFor()
    expect(server.keys.list).toHaveLength(1)
    await page.getByRole('link', { name: 'Replace' }).click()
    await dialog('Replace invoice-reader').getByRole('button', { name: 'Replace' }).click()
    await shownOnce().waitFor()
    expect(await shownOnce().getByLabel('API key').inputValue()).toBe(KEY_VALUE)
  })

  test('keeps what was typed when the session has ended, and leaves nothing behind after the key is made', async () => {
    await open('/keys?new')
    await dialog('New key').getByLabel('Name').fill('invoice-reader')
    server.hasSession = false
    await button('Create key').click()
    await page.waitForURL('**/sign-in?reason=session-ended&next=%2Fkeys')
    server.hasSession = true
    await page.goto(`${server.origin}/keys`)
    await button('New key').click()
    expect(await dialog('New key').getByLabel('Name').inputValue()).toBe('invoice-reader')
    await button('Create key').click()
    await shownOnce().waitFor()
    expect(await page.evaluate('JSON.stringify({ ...sessionStorage })')).toBe('{}')
  })

  test('gives the focus back to its button', async () => {
    server.keys.list = KEYS_OF_ALL_STATES
    await open('/keys')
    await button('New key').press('Enter')
    await dialog('New key').waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(focused).toBe('New key')
  })
})

describe('the value', () => {
  test('is gone from the page, its storage and its address after the dialog, and a reload does not bring it back', async () => {
    await open('/keys')
    await makeKey()
    await shownOnce().getByRole('button', { name: 'Copy', exact: true }).click()
    await button('Done').click()
    await shownOnce().waitFor({ state: 'detached' })
    expect(await traces()).not.toContain(KEY_VALUE)
    await page.reload()
    await page.getByRole('link', { name: 'invoice-reader' }).click()
    await page.getByRole('heading', { name: 'invoice-reader' }).waitFor()
    expect(await traces()).not.toContain(KEY_VALUE)
  })

  test('never stands in a live region', async () => {
    await open('/keys')
    const record =
      'for (const region of document.querySelectorAll("[role=status], [role=alert], [aria-live]")) window.spoken.push(region.textContent)'
    await page.evaluate(
      `window.spoken = []; new MutationObserver(() => { ${record} }).observe(document, { childList: true, subtree: true, characterData: true })`,
    )
    await makeKey()
    await page.keyboard.press('Escape')
    await page.getByText('The key has not been copied.').waitFor()
    await button('Go back and copy').click()
    await button('Copied').waitFor()
    const spoken = await page.evaluate('window.spoken.join(" ")')
    expect(spoken).toContain('The key has not been copied.')
    expect(spoken).not.toContain(KEY_VALUE)
  })

  test('is asked for once before it is closed uncopied', async () => {
    await open('/keys')
    await makeKey()
    await page.keyboard.press('Escape')
    await shownOnce().getByRole('alert').getByText('The key has not been copied.').waitFor()
    await button('Close anyway').click()
    await shownOnce().waitFor({ state: 'detached' })
    expect(await traces()).not.toContain(KEY_VALUE)
  })

  test.each([
    ['refused', `Object.defineProperty(navigator, 'clipboard', { value: { writeText: () => Promise.reject(new Error('no')) } })`],
    ['missing', `Object.defineProperty(navigator, 'clipboard', { value: undefined })`],
    ['missing, as on a page without TLS', `Object.defineProperty(window, 'isSecureContext', { value: false })`],
  ])('with a clipboard that is %s is selected, never called copied, and a copy by the keyboard counts', async (_how, remove) => {
    await open('/keys')
    await page.evaluate(remove)
    await makeKey()
    await shownOnce().getByRole('button', { name: 'Copy', exact: true }).click()
    await page.getByText('This browser did not let us copy. The key is selected').waitFor()
    expect(await button('Copied').count()).toBe(0)
    const selected = 'document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionEnd)'
    expect(await page.evaluate(selected)).toBe(KEY_VALUE)
    await page.keyboard.press('Control+c')
    await button('Copied').waitFor()
    await button('Done').click()
    await shownOnce().waitFor({ state: 'detached' })
  })

  test('comes with texts that are ready to paste, by arrow keys', async () => {
    await open('/keys')
    await makeKey()
    const tab = (name: string): Locator => shownOnce().getByRole('tab', { name, exact: true })
    const panel = shownOnce().getByRole('tabpanel')
    expect(await panel.textContent()).toContain(`SERVICE_API_KEY=${KEY_VALUE}\nSERVICE_BASE_URL=https://models.x.example/v1`)
    await tab('.env').focus()
    await page.keyboard.press('ArrowRight')
    expect(await tab('curl').getAttribute('aria-selected')).toBe('true')
    expect(await panel.textContent()).toContain('curl https://models.x.example/v1/chat/completions')
    for (const name of ['Python', 'Node', 'Anthropic']) {
      await page.keyboard.press('ArrowRight')
      await expect.poll(focused).toBe(name)
      expect(await panel.textContent()).toContain('gpt-oss-120b')
    }
    await tab('.env').click()
    await button('Copy .env').click()
    await button('Copied').waitFor()
    expect(await clipboard()).toContain(KEY_VALUE)
  })

  test('says when every gateway admits the key', async () => {
    server.keys.isHeld = true
    await open('/keys')
    await makeKey()
    await shownOnce().getByText('Active on 0/3 gateways').first().waitFor()
    server.keys.acknowledge()
    await shownOnce().getByText('You can call now.').waitFor()
  })
})

describe('the list', () => {
  beforeEach(() => {
    server.keys.list = KEYS_OF_ALL_STATES
  })
  const rows = (): Locator => page.getByRole('row').filter({ has: page.getByRole('rowheader') })

  test('is searched by name and by the visible part, and a whole key finds its key without leaving a trace', async () => {
    await open('/keys')
    const search = page.getByLabel('Search keys')
    await search.fill('SEARCH')
    await page.getByText('1 of 8 keys').waitFor()
    expect(await rows().getByRole('link').allTextContents()).toEqual(['docs-search'])
    await search.fill('nothing like that')
    await page.getByRole('heading', { name: 'No key matches “nothing like that”' }).waitFor()
    await button('Clear search').click()
    await expect.poll(() => rows().count()).toBe(8)
    await search.fill(`sk-hg1b7${'x'.repeat(40)}Qm4T`)
    await expect.poll(() => rows().count()).toBe(8) // all of the fake have this visible part
    expect(await page.evaluate('JSON.stringify([{ ...sessionStorage }, { ...localStorage }, history.state, location.href])')).not.toContain(
      'xxxx',
    )
  })

  test('hides revoked keys until they are asked for', async () => {
    await open('/keys')
    await page.getByText('8 keys', { exact: true }).waitFor()
    expect(await page.getByRole('link', { name: 'leaked' }).count()).toBe(0)
    await page.getByLabel('Show revoked (1)').check()
    await page.getByRole('link', { name: 'leaked' }).waitFor()
  })

  test('says the limit in force with who sets it', async () => {
    await open('/keys')
    await expect.poll(() => rows().first().textContent()).toContain('100k TPM plan')
  })

  test('that could not be loaded says why and loads at a click', async () => {
    server.refusals = { 'GET /api/keys': 'unavailable' }
    await open('/keys')
    const alert = page.getByRole('alert')
    await alert.waitFor()
    expect(await alert.textContent()).toMatch(/^The keys could not be loaded.*Your keys go on working.*Request id req_7/)
    server.refusals = {}
    await alert.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('link', { name: 'docs-search' }).waitFor()
  })

  test('of 200 keys costs the page less than half a second of work, so that the list stands within a second', async () => {
    server.keys.list = Array.from({ length: 200 }, (_, index) => keyView({ id: `k-${index}`, name: `bot-${index}` }))
    await open('/')
    await page.getByRole('heading', { level: 1 }).waitFor()
    const devtools = await context.newCDPSession(page)
    await devtools.send('Performance.enable', { timeDomain: 'threadTicks' }) // other work of the machine does not count
    const before = await workOf(devtools)
    await page.getByRole('link', { name: 'API Keys' }).click()
    await page.locator('tbody tr').nth(199).waitFor() // to look for the link by its name would be more work than the page's own
    const work = (await workOf(devtools)) - before
    await page.getByRole('link', { name: 'bot-199' }).waitFor()
    expect(work).toBeGreaterThan(0)
    expect(work).toBeLessThan(0.5)
  })

  /** What the main thread of the page has worked, s. */
  async function workOf(devtools: CDPSession): Promise<number> {
    const { metrics } = await devtools.send('Performance.getMetrics')
    return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN
  }

  test('is read only while the cluster is away', async () => {
    server.me = { ...server.me, readOnlySince: '2026-11-24T12:03:00Z' }
    await open('/keys')
    await page.getByText('The cluster does not answer the dashboard.').waitFor()
    const newKey = button('New key')
    expect(await newKey.isDisabled()).toBe(true)
    expect(await page.locator(`#${await newKey.getAttribute('aria-describedby')}`).textContent()).toContain('Read only for now')
  })
})

describe('the page of a key', () => {
  beforeEach(() => {
    server.keys.list = [keyView({}), keyView({ id: 'k-2', name: 'docs-search' })]
  })

  test('suspends and resumes with proof from the gateways, without a reload', async () => {
    server.keys.isHeld = true
    await open('/keys/k-1')
    await button('Suspend').click()
    await page.getByText('Suspended on 0/3 gateways').first().waitFor()
    server.keys.acknowledge()
    await page.getByText('Suspended on 3/3 gateways').first().waitFor()
    await button('Resume').first().click()
    await page.getByText('Active on 0/3 gateways').first().waitFor()
    server.keys.acknowledge()
    await page.getByText('Active on 3/3 gateways').first().waitFor()
    expect(server.changes).toEqual(['POST /api/keys/k-1/suspend {}', 'POST /api/keys/k-1/resume {}'])
  })

  test('revokes only after the name is typed, and says "Revoked on 3/3 gateways" when it is so', async () => {
    server.keys.isHeld = true
    await open('/keys/k-1')
    await button('Revoke').click()
    const confirm = dialog('Revoke checkout-bot production?')
    await confirm.getByLabel('Type the name').fill('checkout-bot')
    await page.keyboard.press('Enter')
    await page.getByText('This is not checkout-bot production.').waitFor()
    expect(server.changes).toEqual([])
    await confirm.getByLabel('Type the name').fill('checkout-bot production')
    await page.keyboard.press('Enter')
    await page.getByText('Revoked on 0/3 gateways').first().waitFor()
    await expect.poll(focused).toBe('checkout-bot production')
    server.keys.acknowledge(2)
    await page.getByText('Revoked on 2/3 gateways').first().waitFor()
    expect(await page.getByText('Revoked on 3/3 gateways').count()).toBe(0)
    server.keys.acknowledge()
    await page.getByText('Revoked on 3/3 gateways').first().waitFor()
    expect(await page.locator('main').getByRole('button').count()).toBe(0)
    await page.getByRole('link', { name: 'API Keys' }).first().click()
    await page.getByText('1 key', { exact: true }).waitFor()
  })

  test.each([
    ['Not at all', 0],
    ['1 hour', 3600],
    ['24 hours', 86_400],
  ])('replaces the value with an overlap of "%s", and shows the new one once', async (words, overlapSeconds) => {
    await open('/keys/k-1')
    await button('Replace').click()
    await dialog('Replace checkout-bot production').getByLabel(words).check()
    await dialog('Replace checkout-bot production').getByRole('button', { name: 'Replace' }).click()
    await shownOnce().getByRole('button', { name: 'Copy', exact: true }).click()
    await button('Done').click()
    await shownOnce().waitFor({ state: 'detached' })
    expect(server.changes).toEqual([`POST /api/keys/k-1/replace {"overlapSeconds":${overlapSeconds}}`])
    await expect.poll(focused).toBe('Replace')
    expect(await traces()).not.toContain(KEY_VALUE)
  })

  test('ends a former value at once', async () => {
    server.keys.list = [keyView({ formerValueUntil: '2099-11-25T12:03:00Z' })]
    await open('/keys/k-1')
    await page.getByText('The old value works until 25 Nov 2099, 12:03 UTC').waitFor()
    await button('End old value now').click()
    await page.getByText('The old value works until').waitFor({ state: 'detached' })
    expect(server.changes).toEqual(['POST /api/keys/k-1/end-former {}'])
  })

  test('edits with the present values filled in, and leaves alone what was not changed', async () => {
    await open('/keys/k-1')
    await button('Edit limits').press('Enter')
    const form = dialog('Edit limits')
    const value = (label: string): Promise<string> => form.getByLabel(label).inputValue()
    expect([
      await value('Name'),
      await value('Maximum budget'),
      await value('Requests per minute'),
      await value('Tokens per minute'),
    ]).toEqual(['checkout-bot production', '25', '60', '200000'])
    await form.getByLabel('Name').fill('checkout-bot')
    await button('Save changes').click()
    await form.waitFor({ state: 'detached' })
    await page.getByRole('heading', { name: 'checkout-bot', exact: true }).waitFor()
    await expect.poll(focused).toBe('Edit limits')
    expect(server.changes).toEqual([
      `PATCH /api/keys/k-1 ${JSON.stringify({
        name: 'checkout-bot',
        models: ['llama-3.3-70b', 'llama-3.1-8b'],
        budget: { amount: '25', window: 'Month' },
        requestsPerMinute: 60,
        tokensPerMinute: 200_000,
      })}`,
    ])
  })

  test('offers to raise a budget that is used up, and says what calls answer', async () => {
    server.keys.list = [keyView({ state: 'BudgetUsedUp', budgets: [budget({ percent: 100 })] })]
    await open('/keys/k-1')
    await page.getByText('Calls answer 402: this key’s budget is used up').waitFor()
    await button('Raise budget').click()
    await dialog('Edit limits').waitFor()
  })

  test('without the plan says so, and its form opens once the plan is there', async () => {
    server.refusals = { 'GET /api/plan': 'internal' }
    await open('/keys/k-1')
    await page.getByText('The plan could not be loaded').waitFor()
    await button('Edit limits').click()
    server.refusals = {}
    await button('Try again').click()
    await dialog('Edit limits').waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
  })

  test('shows what this key has spent, with the same sum in its table', async () => {
    server.money.use()
    await open('/keys/k-1')
    await page.getByText('Last 30 days as a table').click()
    const sums = await page.locator('details tfoot td').allInnerTexts()
    const parts = sums.slice(0, -1).reduce((sum, text) => sum + microsOf(text), 0n)
    expect(parts).toBeGreaterThan(0n)
    const all = microsOf(sums.at(-1) ?? '')
    expect(parts - all).toBeLessThan(BigInt(sums.length) * 10_000n) // each cell is rounded to a cent
    expect(all - parts).toBeLessThan(BigInt(sums.length) * 10_000n)
    await page.getByRole('link', { name: 'See usage' }).click()
    expect(page.url()).toBe(`${server.origin}/usage?key=k-1`)
  })

  test('whose name is markup shows the markup, on every page and in every dialog', async () => {
    const name = '"><img src=x onerror="document.title=1">{{7*7}}'
    server.keys.list = [keyView({ id: 'k-1', name })]
    await open('/keys')
    await page.getByRole('link', { name, exact: true }).click()
    await page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
    for (const change of ['Edit limits', 'Replace', 'Revoke']) {
      await button(change).click()
      await page.getByRole('dialog', { name: change === 'Edit limits' ? change : name }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
    await page.goto(`${server.origin}/`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    expect([await page.locator('main img').count(), await page.title()]).toEqual([0, expect.not.stringMatching(/^1$/)])
  })

  test('of somebody else is the page of nothing', async () => {
    await open('/keys/k-foreign')
    await page.getByRole('heading', { name: 'There is nothing here' }).waitFor()
  })

  test('that changed meanwhile says so, and changes nothing', async () => {
    server.refusals = { 'POST /api/keys/k-1/suspend': 'conflict' }
    await open('/keys/k-1')
    await button('Suspend').click()
    await page.getByText('Refused: conflict.').waitFor()
    expect(await page.getByText('Active', { exact: true }).count()).toBe(1)
  })
})
