import { cpSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FormBrowser, PASSWORD, tokenOf } from '../support/dashboard-world.ts'
import { StandaloneProcess } from '../support/standalone-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const EXAMPLES = join(import.meta.dirname, '../../examples/standalone')
const EMAIL = 'maya@fernwood.example'

describe('the dashboard of make run', { timeout: 60_000 }, () => {
  let cwd = ''
  const running: StandaloneProcess[] = []
  beforeEach(() => {
    cwd = temporaryFolder()
    cpSync(EXAMPLES, join(cwd, 'manifests'), { recursive: true })
  })
  afterEach(async () => {
    for (const program of running.splice(0)) await program.stop('SIGKILL')
  })
  const start = async (): Promise<FormBrowser> => {
    const program = new StandaloneProcess(cwd, { DASHBOARD: '1', DASHBOARD_PORT: '0' })
    running.push(program)
    const [, origin = ''] = await program.printed(/^Dashboard: (http:\/\/localhost:\d+)$/m)
    return new FormBrowser(origin)
  }
  const balance = (browser: FormBrowser) =>
    expect.poll(async () => (await browser.get('/api/export')).json().account?.status?.balance?.amount, { timeout: 20_000, interval: 50 })

  it('signs people up by a mail in a file, and gives them an Account that is ready, with a welcome Credit', async () => {
    const browser = await start()
    await browser.post('/sign-up', { email: EMAIL, password: PASSWORD })
    await expect.poll(async () => (await browser.get('/dev/mail')).text, { timeout: 20_000, interval: 50 }).toContain(EMAIL)
    const [id = ''] = /[^/"]*-verify(?=")/.exec((await browser.get('/dev/mail')).text) ?? []
    const [link = ''] = /http:[^"]*\/verify\?token=[^"]*/.exec((await browser.get(`/dev/mail/${id}`)).text) ?? []
    expect((await browser.post('/verify', { token: tokenOf(link) })).location).toBe('/')
    await expect
      .poll(async () => (await browser.get('/api/me')).json().account, { timeout: 20_000, interval: 50 })
      .toMatchObject({
        state: 'Active',
        plan: 'default',
        isReady: true,
      })
    await balance(browser).toBe('5.00')
    expect(readdirSync(join(cwd, '.headgate/mail'))).toEqual([expect.stringMatching(/-verify\.eml$/)])
  })

  it('keeps people, sessions and Accounts over a restart, and gives no second Credit', async () => {
    const browser = await start()
    await browser.post('/sign-up', { email: EMAIL, password: PASSWORD })
    const mail = (): string => readdirSync(join(cwd, '.headgate/mail')).find((name) => name.endsWith('-verify.eml')) ?? ''
    await expect.poll(mail, { timeout: 20_000, interval: 50 }).not.toBe('')
    const text = readFileSync(join(cwd, '.headgate/mail', mail()), 'utf8')
      .replaceAll('=\n', '')
      .replaceAll('=3D', '=')
    await browser.post('/verify', { token: tokenOf(/http:\S*\/verify\?token=\S*/.exec(text)?.[0] ?? '') })
    await balance(browser).toBe('5.00')
    await running[0]?.stop()
    const again = await start()
    for (const [name, value] of browser.cookies) again.cookies.set(name, value)
    expect((await again.get('/api/me')).json().person.email).toBe(EMAIL)
    await balance(again).toBe('5.00')
  })
})
