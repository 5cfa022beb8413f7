/**
 * The story of a person in a real browser: the dashboard over a real API server with an operator, mails over SMTP, and two providers, of which one is
 * strict. No step touches the server but through a page or a mail.
 */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import type { AddressInfo } from 'node:net'
import { accounts, apiKeys, credits, plans, servedModels } from '#api/resources.ts'
import { InformerFactory } from '#kube/informer-factory.ts'
import { systemClock } from '#platform/clock.ts'
import { createLog } from '#platform/log.ts'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createDashboard, type Dashboard } from '../../dashboard/server/dashboard.ts'
import { smtpTransport } from '../../dashboard/server/mail/transport.ts'
import { readWebFiles } from '../../dashboard/server/web-files.ts'
import { createStubGitHub } from '../../examples/stub-identity/github.ts'
import { missingBrowser, noSidewaysScroll, noViolations, TestBrowser } from '../support/browser.ts'
import { PASSWORD, SECRET } from '../support/dashboard-world.ts'
import { openLab } from '../support/lab.ts'
import { listening } from '../support/listening.ts'
import { MailServer } from '../support/mail-server.ts'
import { OidcServer } from '../support/oidc-server.ts'
import { applyDashboardRights, writeUsageToken } from '../support/dashboard-rights.ts'
import { realKubePort } from '../support/real-credit-books.ts'
import type { Stack } from '../support/stack.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'
import { totpCode } from '../support/totp.ts'
import { waitFor } from '../support/wait-for.ts'

const WEB = join(import.meta.dirname, '../../dist/web')
const EMAIL = 'maya@fernwood.example'
const NEW_EMAIL = 'maya@other.example'
const NEW_PASSWORD = 'five quiet herons wade'
const withoutBrowser = missingBrowser()
const lab = openLab()
const folder = temporaryFolderOfFile()
const closers: (() => unknown)[] = []
let stack: Stack
let origin = ''
let dashboard: Dashboard
let mails: MailServer
let issuer: OidcServer
let browser: TestBrowser
let page: Page
const problems: string[] = []

beforeEach(({ skip }) => skip(withoutBrowser !== undefined, withoutBrowser))
beforeAll(async () => {
  if (withoutBrowser !== undefined) return
  stack = await lab.stack({ gateways: 1, operatorEnv: { ACCOUNTS: 'true' } }, await lab.ownControlPlane())
  await stack.apply('Plan', 'default')
  let handle: RequestListener = () => undefined
  const server = createServer((request, response) => handle(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  origin = `http://localhost:${(server.address() as AddressInfo).port}`
  closers.push(
    () => server.closeAllConnections(),
    () => server.close(),
  )
  mails = await MailServer.start()
  const client = (provider: string) => ({ id: 'headgate', secret: 'a secret', redirectURIs: [`${origin}/api/auth/callback/${provider}`] })
  issuer = await OidcServer.start({ client: client('google'), people: { maya: { email: EMAIL, name: 'Maya', emailVerified: true } } })
  const github = createStubGitHub({ client: client('github') })
  const gitHubURL = `http://127.0.0.1:${await listening(github)}`
  const watches = new InformerFactory(
    { source: realKubePort(stack.site.plane.adminKubeconfig), clock: systemClock, logger: silent(), random: Math.random },
    [],
  )
  const credentials = { clientId: 'headgate', clientSecret: 'a secret' }
  dashboard = await createDashboard({
    kube: realKubePort(stack.site.plane.adminKubeconfig),
    caches: {
      accounts: watches.createInformer(accounts),
      apiKeys: watches.createInformer(apiKeys),
      plans: watches.createInformer(plans),
      models: watches.createInformer(servedModels),
      credits: watches.createInformer(credits),
    },
    auth: {
      origin,
      secret: SECRET,
      hasPasswords: true,
      providers: [
        { kind: 'github', id: 'github', name: 'GitHub', ...credentials, url: gitHubURL, apiURL: gitHubURL },
        { kind: 'oidc', id: 'google', name: 'Google', ...credentials, issuer: issuer.issuer },
      ],
    },
    database: { file: join(folder, 'dashboard.db') },
    newAccounts: { defaultPlan: 'default', billing: 'Unmetered', keysNamespace: stack.namespace },
    money: {
      url: stack.operator.usageUrl,
      tokenFile: await usageTokenFile(),
      currency: 'USD',
      lowBalance: undefined,
      payments: { provider: 'none' },
    },
    apiURL: 'https://api.example.com',
    web: readWebFiles(WEB),
    transport: smtpTransport(
      { host: '127.0.0.1', port: mails.port, security: 'none', username: undefined, password: undefined },
      { from: 'Headgate <no-reply@example.com>', site: { name: 'Headgate', url: origin } },
    ),
    trustedProxies: ['loopback'],
    clock: systemClock,
    log: silent(),
  })
  handle = dashboard.app
  watches.start()
  dashboard.start()
  browser = await TestBrowser.start()
  closers.push(
    () => browser.close(),
    () => dashboard.stop(),
    () => watches.stop(),
    () => mails.stop(),
    () => issuer.stop(),
    () => github.close(),
  )
  await newBrowser()
})
afterAll(async () => {
  for (const close of closers) await close()
})

function silent(): ReturnType<typeof createLog>['log'] {
  return createLog('dashboard', 'error', { write: (line) => void problems.push(line) }).log
}

/** A file with the token of the chart's dashboard for the usage interface of the operator. */
async function usageTokenFile(): Promise<string> {
  const { plane } = stack.site
  await applyDashboardRights(plane)
  const file = join(folder, 'usage-token')
  await writeUsageToken(plane, file)
  return file
}

let browsers = 0
/** A browser of another person's machine, as far as limits per address can tell. */
async function newBrowser(): Promise<void> {
  const opened = await browser.open({ width: 1280 })
  browsers += 1
  await opened.context.setExtraHTTPHeaders({ 'x-forwarded-for': `198.51.100.${browsers}` })
  page = opened.page
}

const button = (name: string) => page.getByRole('button', { name, exact: true })
const heading = (name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor()
const field = (name: string) => page.getByLabel(name, { exact: true })
async function checked(): Promise<void> {
  await noViolations(page)
  await noSidewaysScroll(page)
}
async function linkOf(to: string, subject: RegExp): Promise<string> {
  return (await mails.nextMail(to, subject)).links[0] ?? ''
}
async function signOut(): Promise<void> {
  await button('Sign out').click()
  await heading('Sign in')
}
async function signIn(email: string, password: string): Promise<void> {
  await page.goto(`${origin}/sign-in`)
  await field('Email').fill(email)
  await field('Password').fill(password)
  await button('Sign in').click()
}

it('sign up, the mail, and the proof of the address end signed in, with an Account that is Ready', async () => {
  await page.goto(origin)
  await heading('Sign in')
  await page.getByRole('link', { name: 'Sign up' }).click()
  await checked()
  await field('Email').fill(EMAIL)
  await field('Password').fill(PASSWORD)
  await button('Sign up').click()
  await heading('Check your mail')
  await checked()
  await page.goto(await linkOf(EMAIL, /Verify/))
  await heading('Verify your email')
  await checked()
  await button('Verify email').click()
  await page.getByRole('navigation').waitFor()
  await stack.untilCondition('Account', await accountName(), 'Ready')
  await heading(/steps to your first answer|Overview/)
  await checked()
})

it('sign out, and in again by the password', async () => {
  await signOut()
  await signIn(EMAIL, 'not the password')
  await page.getByText('Email or password is wrong').waitFor()
  await checked()
  await signIn(EMAIL, PASSWORD)
  await page.getByRole('navigation').waitFor()
})

it('links both providers in Settings, and signs in by each', async () => {
  for (const name of ['GitHub', 'Google']) {
    await page.goto(`${origin}/settings`)
    await button(`Link ${name}`).click()
    await throughProvider(name)
    await button(`Unlink ${name}`).waitFor()
    await mails.nextMail(EMAIL, new RegExp(name))
  }
  await checked()
  for (const name of ['GitHub', 'Google']) {
    await newBrowser()
    await page.goto(`${origin}/sign-in`)
    await button(`Continue with ${name}`).click()
    await throughProvider(name)
    await page.getByRole('navigation').waitFor()
  }
})

async function throughProvider(name: string): Promise<void> {
  await page.waitForURL((url) => url.origin !== origin)
  if (name === 'GitHub') {
    await field('Email').fill(EMAIL)
    await button('Sign in').click()
    return
  }
  await field('Account').fill('maya')
  await button('Sign in').click()
  await button('Allow').click()
}

let secret = ''
let backupCodes: readonly string[] = []
const used = new Set<string>()
/** A code that the server takes, and that has not been used: the server takes those of the periods before and after, too. */
async function freshCode(): Promise<string> {
  return await waitFor('a code that was not used', () => {
    const code = [-30_000, 0, 30_000].map((offset) => totpCode(secret, Date.now() + offset)).find((one) => !used.has(one))
    if (code !== undefined) used.add(code)
    return code
  })
}

it('turns two-factor on, and then asks for the code after the password and after a provider, each code once', async () => {
  await page.goto(`${origin}/settings`)
  await button('Turn on two-factor').click()
  const password = page.getByRole('dialog').getByLabel('Password', { exact: true })
  await password.or(field('Secret')).waitFor()
  if (await password.isVisible()) {
    await password.fill(PASSWORD)
    await page.getByRole('dialog').getByRole('button', { name: 'Continue' }).click()
  }
  secret = (await field('Secret').locator('code').innerText()).replaceAll(' ', '')
  await checked()
  const first = await freshCode()
  await field('Code').fill(first)
  await page.getByRole('dialog').getByRole('button', { name: 'Turn on' }).click()
  const codes = page.getByRole('dialog', { name: 'Your backup codes' }).getByRole('listitem')
  await codes.first().waitFor()
  backupCodes = await codes.allInnerTexts()
  expect(backupCodes).toEqual(Array.from({ length: 10 }, () => expect.stringMatching(/^[A-Za-z0-9]{5}-[A-Za-z0-9]{5}$/)))
  await mails.nextMail(EMAIL, /two-factor/i)
  await newBrowser()
  await signIn(EMAIL, PASSWORD)
  await heading('Enter your code')
  await checked()
  await field('Code').fill(first)
  await button('Sign in').click()
  await page.getByText(/This code (has been used|is wrong or too old)/).waitFor() // it turned two-factor on; too old on a very slow machine
  await field('Code').fill(await freshCode())
  await button('Sign in').click()
  await page.getByRole('navigation').waitFor()
  await newBrowser()
  await page.goto(`${origin}/sign-in`)
  await button('Continue with GitHub').click()
  await throughProvider('GitHub')
  await heading('Enter your code')
})

it('changes the email by the link in the own browser, sets a new password by a link, and deletes the account', async () => {
  await field('Code').fill(await freshCode())
  await button('Sign in').click()
  await page.getByRole('navigation').waitFor()
  await page.goto(`${origin}/settings`)
  await field('Email').fill(NEW_EMAIL)
  await button('Change email').click()
  await page.goto(await linkOf(NEW_EMAIL, /Verify/))
  await heading('Verify your new email')
  await checked()
  await button('Verify email').click()
  await mails.nextMail(EMAIL, /changed/i)
  await heading('Settings')
  await expect.poll(() => field('Email').inputValue()).toBe(NEW_EMAIL)
  const name = await accountName()
  await expect.poll(async () => (await specOf(name))['owner']).toMatchObject({ email: NEW_EMAIL })

  await newBrowser()
  await page.goto(`${origin}/reset`)
  await field('Email').fill(NEW_EMAIL)
  await button('Send reset link').click()
  await page.goto(await linkOf(NEW_EMAIL, /new password/))
  await field('New password').fill(NEW_PASSWORD)
  await button('Set password').click()
  await page.getByText('Password set').waitFor()
  await signIn(NEW_EMAIL, NEW_PASSWORD)
  await heading('Enter your code')
  await page.getByRole('link', { name: 'Use a backup code' }).click()
  await field('Backup code').fill(backupCodes[0] ?? '')
  await button('Sign in').click()
  await page.getByRole('navigation').waitFor()

  await page.goto(`${origin}/settings`)
  await button('Delete account').click()
  await field('Type your email to confirm').fill(NEW_EMAIL)
  await page.getByRole('dialog').getByRole('button', { name: 'Delete account' }).click()
  await page.getByText('Account deleted').waitFor()
  await expect.poll(async () => (await specOf(name))['state']).toBe('Suspended')
  expect(problems).toEqual([])
})

async function accountName(): Promise<string> {
  const [account] = await stack.kube.list('/apis/headgate.dev/v1alpha1/accounts')
  return account?.metadata.name ?? ''
}

async function specOf(name: string): Promise<Readonly<Record<string, unknown>>> {
  return (
    ((await stack.kube.get(`/apis/headgate.dev/v1alpha1/accounts/${name}`)) as { spec?: Record<string, unknown> } | undefined)?.spec ?? {}
  )
}
