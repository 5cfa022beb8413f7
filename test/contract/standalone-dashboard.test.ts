import { cpSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FormBrowser, PASSWORD, tokenOf } from '../support/dashboard-world.ts'
import { StandaloneProcess } from '../support/standalone-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const EXAMPLES = join(import.meta.dirname, '../../examples/standalone')
const EMAIL = 'maya@fernwood.example'

describe('the dashboard of make run', () => {
  let cwd = ''
  const running: StandaloneProcess[] = []
  beforeEach(() => {
    cwd = temporaryFolder()
    cpSync(EXAMPLES, join(cwd, 'manifests'), { recursive: true })
  })
  afterEach(async () => {
    for (const program of running.splice(0)) await program.stop('SIGKILL')
  })
  const start = async (env: Readonly<Record<string, string>> = {}): Promise<FormBrowser> => {
    const program = new StandaloneProcess(cwd, { DASHBOARD: '1', DASHBOARD_PORT: '0', ...env })
    running.push(program)
    const [, origin = ''] = await program.printed(/^Dashboard: (http:\/\/localhost:\d+)$/m)
    return new FormBrowser(origin)
  }
  /** Signs up and verifies. @returns base URL of the API */
  const verified = async (browser: FormBrowser): Promise<string> => {
    await browser.post('/sign-up', { email: EMAIL, password: PASSWORD })
    const mail = (): string => readdirSync(join(cwd, '.headgate/mail')).find((name) => name.endsWith('-verify.eml')) ?? ''
    await expect.poll(mail).not.toBe('')
    const text = readFileSync(join(cwd, '.headgate/mail', mail()), 'utf8')
      .replaceAll('=\n', '')
      .replaceAll('=3D', '=')
    await browser.post('/verify', { token: tokenOf(/http:\S*\/verify\?token=\S*/.exec(text)?.[0] ?? '') })
    await balance(browser).toBe('5.00')
    return (await browser.get('/api/me')).json().installation.apiURL
  }
  const balance = (browser: FormBrowser) =>
    expect.poll(async () => (await browser.get('/api/export')).json().account?.status?.balance?.amount)

  it('signs people up by a mail in a file, and gives them an Account that is ready, with a welcome Credit', async () => {
    const browser = await start()
    await browser.post('/sign-up', { email: EMAIL, password: PASSWORD })
    await expect.poll(async () => (await browser.get('/dev/mail')).text).toContain(EMAIL)
    const [id = ''] = /[^/"]*-verify(?=")/.exec((await browser.get('/dev/mail')).text) ?? []
    const [link = ''] = /http:[^"]*\/verify\?token=[^"]*/.exec((await browser.get(`/dev/mail/${id}`)).text) ?? []
    expect((await browser.post('/verify', { token: tokenOf(link) })).location).toBe('/')
    await expect
      .poll(async () => (await browser.get('/api/me')).json().account)
      .toMatchObject({
        state: 'Active',
        plan: 'default',
        isReady: true,
      })
    await balance(browser).toBe('5.00')
    const mails = () => readdirSync(join(cwd, '.headgate/mail')).filter((name) => !name.startsWith('.'))
    const names = [expect.stringMatching(/-verify\.eml$/), expect.stringMatching(/-credit-added\.eml$/)]
    await expect.poll(mails).toEqual(names)
  })

  it('keeps people, sessions and Accounts over a restart, and gives no second Credit', async () => {
    const browser = await start()
    await verified(browser)
    await running[0]?.stop()
    const again = await start()
    for (const [name, value] of browser.cookies) again.cookies.set(name, value)
    expect((await again.get('/api/me')).json().person.email).toBe(EMAIL)
    await balance(again).toBe('5.00')
  })

  it('lets a person make a key, call with it, replace its value, and revoke it', async () => {
    const browser = await start()
    const apiURL = await verified(browser)
    const call = async (value: string): Promise<number> => {
      const headers = { authorization: `Bearer ${value}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ model: 'llama', max_tokens: 8, messages: [{ role: 'user', content: 'Hello' }] })
      return (await fetch(`${apiURL}/v1/chat/completions`, { method: 'POST', headers, body })).status
    }
    const answers = (value: string) => expect.poll(async () => await call(value))
    const form = { name: 'docs-search', models: ['llama'], budget: { amount: '2', window: 'Month' }, requestsPerMinute: 60 }
    const { key, value } = (await browser.call('POST', '/api/keys', { ...form, attempt: 'the-only-attempt' })).json()
    await answers(value).toBe(200)
    const view = async () => (await browser.get(`/api/keys/${key.id}`)).json()
    await expect.poll(async () => (await view()).state).toBe('Active')
    const replaced = (await browser.call('POST', `/api/keys/${key.id}/replace`, { overlapSeconds: 0 })).json()
    await answers(replaced.value).toBe(200)
    await answers(value).toBe(401)
    await browser.call('POST', `/api/keys/${key.id}/revoke`, { name: form.name })
    await answers(replaced.value).toBe(401)
    await expect.poll(view).toMatchObject({ state: 'Revoked', programmed: { ready: 1, total: 1 } })
  })

  it('shows the movements of the balance, and the line that tops it up', async () => {
    const browser = await start()
    await verified(browser)
    const billing = async () => (await browser.get('/api/billing')).json()
    await expect.poll(async () => (await billing()).balance).toBe('5.00')
    const { account, movements, payments } = await billing()
    expect(movements).toMatchObject([{ type: 'Grant', reference: 'welcome', amount: '5.00', balance: '5.00' }])
    expect(payments).toEqual({
      ...{ provider: 'manual', amounts: [], command: `node cli/main.ts credit add ${account} 10.00 --id top-up-${account}-2 --local` },
    })
    expect((await browser.get('/api/usage')).json()).toMatchObject({ currency: 'USD', rows: [] })
  })

  it('takes payments at a stand-in, each once, while events are lost, repeated, late and forged', async () => {
    const browser = await start({ PAYMENTS: 'stand-in' })
    await verified(browser)
    for (const attempt of ['attempt-1', 'attempt-2', 'attempt-3', 'attempt-4']) {
      const { url } = (await browser.call('POST', '/api/billing/top-up', { amount: '10', attempt })).json()
      const paid = await fetch(url, { method: 'POST', body: new URLSearchParams({ act: 'pay' }), redirect: 'manual' })
      expect(paid.headers.get('location')).toContain('/billing?top-up=paid&session=cs_test_')
    }
    await balance(browser).toBe('45.00')
  })
})
