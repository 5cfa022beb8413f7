/** The real parts under the tests of the dashboard: Chromium, Postgres, mail over TCP, and a sign-in at a strict issuer in the browser. */
import { createServer, type Server } from 'node:http'
import { createTransport } from 'nodemailer'
import { Client } from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createStubGitHub } from '../../examples/stub-identity/github.ts'
import { missingBrowser, noSidewaysScroll, noViolations, TestBrowser } from '../support/browser.ts'
import { listening } from '../support/listening.ts'
import { MailServer } from '../support/mail-server.ts'
import { OidcServer } from '../support/oidc-server.ts'
import { missingPostgres, PostgresPart } from '../support/postgres.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const withoutBrowser = missingBrowser()
const withoutPostgres = missingPostgres()

const GOOD =
  '<h1>Good morning</h1><p>Hello</p><script>document.querySelector("p").textContent = matchMedia("(prefers-color-scheme: dark)").matches</script>'
const PAGES: Readonly<Record<string, string>> = {
  '/good': GOOD,
  '/bad': '<h1>Bad</h1><img src="data:,"><button></button>',
  '/wide': '<h1>Wide</h1><div style="width: 2000px">wide</div>',
  '/throws': '<h1>Throws</h1><script>console.error("one"); fetch("http://127.0.0.1:1/"); throw new Error("two")</script>',
}

describe('the browser', () => {
  let browser: TestBrowser
  let server: Server
  let base: string
  beforeEach(({ skip }) => skip(withoutBrowser !== undefined, withoutBrowser))
  beforeAll(async () => {
    server = createServer((request, response) => {
      response.setHeader('content-type', 'text/html')
      const body = PAGES[request.url ?? ''] ?? `<h1>Back</h1><p>${new URL(request.url ?? '', 'http://localhost').pathname}</p>`
      response.end(
        `<!doctype html><html lang="en"><head><title>Page</title><link rel="icon" href="data:,"></head><body><main>${body}</main></body></html>`,
      )
    })
    base = `http://localhost:${await listening(server)}`
    if (withoutBrowser === undefined) browser = await TestBrowser.start()
  })
  afterAll(async () => {
    if (withoutBrowser === undefined) await browser.close()
    server.close()
  })

  test('shows a page with the width, the theme and the scripts that a test asks for', async () => {
    const { page, context, problems, origins } = await browser.open({ width: 360, dark: true })
    await page.goto(`${base}/good`)
    expect(await page.getByRole('paragraph').textContent()).toBe('true')
    expect(await page.evaluate('innerWidth')).toBe(360)
    await noViolations(page)
    await noSidewaysScroll(page)
    expect([problems, [...origins]]).toEqual([[], [base]])
    await context.close()
  })

  test('runs no script where a test wants none, and does not let axe end the browser there', async () => {
    const { page, context } = await browser.open({ javaScript: false })
    await page.goto(`${base}/good`)
    expect(await page.getByRole('paragraph').textContent()).toBe('Hello')
    await expect(noViolations(page)).rejects.toThrow('axe needs JavaScript')
    await context.close()
  })

  test('finds violations, sideways scroll and errors of a page', async () => {
    const { page, context, problems, origins } = await browser.open({ width: 360 })
    await page.goto(`${base}/bad`)
    await expect(noViolations(page)).rejects.toThrow(/button-name .* at button; image-alt .* at img/)
    await page.goto(`${base}/wide`)
    await expect(noSidewaysScroll(page)).rejects.toThrow()
    const failed = page.waitForEvent('requestfailed')
    await page.goto(`${base}/throws`)
    await failed
    expect(problems).toEqual(
      expect.arrayContaining(['console: one', 'thrown: two', expect.stringContaining('failed: http://127.0.0.1:1/')]),
    )
    expect(origins).toContain('http://127.0.0.1:1')
    await context.close()
  })

  test.each([{ javaScript: true }, { javaScript: false }])(
    'signs in at the strict issuer by its pages, with JavaScript: $javaScript',
    async ({ javaScript }) => {
      const redirectURI = `${base}/callback`
      const client = { id: 'headgate', secret: 'secret', redirectURIs: [redirectURI] }
      const issuer = await OidcServer.start({ client, people: { 'person-1': { email: 'ada@example.com', emailVerified: true } } })
      const { page, context } = await browser.open({ javaScript })
      const asked = { client_id: client.id, redirect_uri: redirectURI, response_type: 'code', scope: 'openid email', state: 's' }
      const challenge = { code_challenge: 'x'.repeat(43), code_challenge_method: 'S256' }
      await page.goto(`${issuer.issuer}/auth?${new URLSearchParams({ ...asked, ...challenge }).toString()}`)
      await page.getByLabel('Account').fill('person-1')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('button', { name: 'Allow' }).click()
      await page.getByRole('heading', { name: 'Back' }).waitFor()
      const back = new URL(page.url())
      expect([back.pathname, back.searchParams.get('state'), back.searchParams.has('code')]).toEqual(['/callback', 's', true])
      expect((await context.cookies(base)).length).toBe(0) // those of the issuer stay with its host
      await context.close()
      await issuer.stop()
    },
  )

  test('signs in at a stand-in provider without JavaScript, on a page without violations', async () => {
    const redirectURI = `${base}/callback`
    const provider = createStubGitHub({ client: { id: 'headgate', secret: 'secret', redirectURIs: [redirectURI] } })
    const asked = { client_id: 'headgate', redirect_uri: redirectURI, scope: 'user:email', state: 's' }
    const query = new URLSearchParams({ ...asked, code_challenge: 'x'.repeat(43), code_challenge_method: 'S256' })
    const address = `http://127.0.0.1:${await listening(provider)}/login/oauth/authorize?${query.toString()}`
    for (const dark of [false, true]) {
      const { page, context, problems } = await browser.open({ width: 360, dark })
      await page.goto(address)
      await noViolations(page)
      await noSidewaysScroll(page)
      expect(problems).toEqual([])
      await context.close()
    }
    const { page, context } = await browser.open({ javaScript: false })
    await page.goto(address)
    await page.getByLabel('Email').fill('me@example.com')
    await page.getByLabel('Verified').uncheck()
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { name: 'Back' }).waitFor()
    expect(new URL(page.url()).searchParams.has('code')).toBe(true)
    await context.close()
    provider.closeAllConnections()
    provider.close()
  })
})

test('Postgres keeps its data over a stop with open connections, and has one database for each name', async ({ skip }) => {
  skip(withoutPostgres !== undefined, withoutPostgres)
  const postgres = await PostgresPart.start(temporaryFolder())
  const url = await postgres.createDatabase('dashboard')
  await postgres.query("create table person (name text); insert into person values ('Ada')", url)
  const client = new Client({ connectionString: url })
  client.on('error', () => undefined) // the server ends the connection
  const ended = new Promise<void>((resolve) => client.once('end', resolve))
  await client.connect()
  await postgres.stop()
  await ended
  await postgres.start()
  expect(await postgres.query('select name from person', url)).toEqual([{ name: 'Ada' }])
  await expect(postgres.query('select name from person')).rejects.toThrow('does not exist')
  await postgres.stop()
})

test('a mail arrives over TCP', async () => {
  const server = await MailServer.start()
  const next = server.nextMail('ada@example.com', 'Verify')
  const transport = createTransport({ host: '127.0.0.1', port: server.port, ignoreTLS: true })
  await transport.sendMail({
    from: 'a@example.com',
    to: 'ada@example.com',
    subject: 'Verify your address',
    text: 'http://localhost:8090/verify',
  })
  expect((await next).links).toEqual(['http://localhost:8090/verify'])
  await server.stop()
})
