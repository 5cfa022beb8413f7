/** The dashboard as a process from its bundle: over a real API server with an operator, and without one part or another. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FormBrowser, PASSWORD, SECRET, tokenOf } from '../support/dashboard-world.ts'
import { writeFormerFile } from '../support/former-dashboard/former-dashboard.ts'
import { freePort } from '../support/free-port.ts'
import { conditionOf, objectPath, type TestObject } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { MailServer } from '../support/mail-server.ts'
import { missingPostgres, PostgresPart } from '../support/postgres.ts'
import { Program } from '../support/program.ts'
import type { Stack } from '../support/stack.ts'
import { temporaryFolder, temporaryFolderOfFile } from '../support/temporary-folder.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const GROUP = 'headgate.dev/v1alpha1'
const lab = openLab()
const folder = temporaryFolderOfFile()
let stack: Stack
let mails: MailServer
let pods = 0

beforeAll(async () => {
  stack = await lab.stack({ gateways: 1, operatorEnv: { ACCOUNTS: 'true' } }, await lab.ownControlPlane())
  await stack.apply('Plan', 'default')
  mails = await MailServer.start()
})
afterAll(() => mails.stop())

/** A program that is not started yet. */
async function prepared(env: Readonly<Record<string, string>> = {}): Promise<Program> {
  pods += 1
  const pod = `dashboard-process-${pods}`
  return await Program.prepare({
    program: 'dashboard',
    pod,
    ip: lab.address.ip,
    folder: lab.folder,
    env: {
      KUBECONFIG: stack.site.plane.adminKubeconfig,
      PUBLIC_URL: 'http://gateway.example',
      USAGE_URL: stack.operator.usageUrl,
      DASHBOARD_SECRET: SECRET,
      DATABASE_FILE: join(folder, `${pod}.db`),
      SMTP_HOST: '127.0.0.1',
      SMTP_PORT: String(mails.port),
      SMTP_SECURITY: 'none',
      MAIL_FROM: 'Headgate <no-reply@example.com>',
      ...env,
    },
  })
}

const originOf = ({ port }: Program): string => `http://localhost:${port}`
const started = async (program: Program): Promise<Program> => {
  await program.start({ DASHBOARD_URL: originOf(program) })
  return program
}
const probe = async (program: Program, path: string): Promise<number> => (await fetch(`${program.metricsUrl}${path}`)).status

async function signedUp(program: Program, email: string): Promise<FormBrowser> {
  const browser = new FormBrowser(originOf(program))
  expect((await browser.post('/sign-up', { email, password: PASSWORD })).location).toBe('/check-your-mail')
  const { links } = await mails.nextMail(email)
  expect((await browser.post('/verify', { token: tokenOf(links[0] ?? '') })).location).toBe('/')
  return browser
}

describe('with all parts', () => {
  it('a person signs up and verifies; the Account is in the cluster and Ready; the page says so, and serves the app', async () => {
    const program = await started(await prepared())
    const browser = await signedUp(program, 'maya@fernwood.example')
    const { name } = (await browser.get('/api/me')).json().account
    const path = objectPath(GROUP, 'Account', '', name)
    const account = await waitFor('the Account to be Ready', async (): Promise<TestObject | undefined> => {
      const object = await stack.kube.get(path)
      return conditionOf(object, 'Ready')?.status === 'True' ? object : undefined
    })
    expect(account.spec).toMatchObject({ owner: { email: 'maya@fernwood.example' }, planRef: { name: 'default' }, state: 'Active' })
    await eventually(async () => expect((await browser.get('/api/me')).json().account).toMatchObject({ state: 'Active', isReady: true }))
    expect((await browser.get('/')).text).toContain('<div id="root">')
    const asset = /\/assets\/[^"]+\.js/.exec((await browser.get('/')).text)?.[0] ?? ''
    expect((await browser.get(asset)).headers.get('cache-control')).toContain('immutable')
    expect(await program.stop()).toEqual({ code: 0, signal: null })
    for (const line of program.process.log().trim().split('\n')) expect(JSON.parse(line)).toMatchObject({ program: 'dashboard' })
  })

  it('SIGTERM takes no new connection, answers the request that is under way, and ends with 0', async () => {
    const program = await started(await prepared())
    await signedUp(program, 'ana@fernwood.example')
    const body = new URLSearchParams({ email: 'ana@fernwood.example', password: PASSWORD }).toString()
    const headers = { origin: originOf(program), 'content-type': 'application/x-www-form-urlencoded', 'content-length': body.length }
    const slow = request(`${originOf(program)}/sign-in`, { method: 'POST', headers: { ...headers, expect: '100-continue' } })
    const answered = once(slow, 'response') as Promise<[IncomingMessage]>
    slow.flushHeaders()
    await once(slow, 'continue') // the program has the head of the request
    slow.write(body.slice(0, 10))
    const ended = program.stop()
    await waitFor('the port to be closed', () =>
      fetch(originOf(program)).then(
        () => false,
        () => true,
      ),
    )
    expect(program.process.running).toBe(true)
    slow.end(body.slice(10))
    const [answer] = await answered
    expect([answer.statusCode, answer.headers.location]).toEqual([303, '/'])
    answer.resume()
    expect(await ended).toEqual({ code: 0, signal: null })
  })
})

describe('without the API server', () => {
  it('starts, lives, signs people up, and says what is missing', async () => {
    const kubeconfig = join(temporaryFolder(), 'kubeconfig')
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'away',
      clusters: [{ name: 'away', cluster: { server: `http://127.0.0.1:${await freePort()}` } }],
      users: [{ name: 'away', user: {} }],
      contexts: [{ name: 'away', context: { cluster: 'away', user: 'away' } }],
    }
    writeFileSync(kubeconfig, JSON.stringify(config))
    const program = await started(await prepared({ KUBECONFIG: kubeconfig }))
    const browser = await signedUp(program, 'sam@fernwood.example')
    const me = (await browser.get('/api/me')).json()
    expect(me.account).toEqual({ state: 'Unknown' })
    expect(Date.parse(me.readOnlySince)).toBeLessThanOrEqual(Date.now())
    const later = (await browser.get('/api/me')).json()
    expect(later.readOnlySince).toBe(me.readOnlySince) // the beginning of the outage
    expect([await probe(program, '/livez'), await probe(program, '/readyz')]).toEqual([200, 200])
    expect(await program.stop()).toEqual({ code: 0, signal: null })
  })
})

describe('without the database', () => {
  const missing = missingPostgres()

  it('is not ready while Postgres is away, lives on, and heals', async ({ skip }) => {
    skip(missing !== undefined, missing)
    const postgres = await PostgresPart.start(temporaryFolder())
    const program = await started(await prepared({ DATABASE_URL: await postgres.createDatabase('dashboard') }))
    const browser = await signedUp(program, 'kim@fernwood.example')
    await postgres.stop()
    expect([await probe(program, '/livez'), await probe(program, '/readyz')]).toEqual([200, 503])
    expect((await browser.get('/api/me')).status).toBe(503)
    await postgres.start()
    await eventually(async () => expect([await probe(program, '/readyz'), (await browser.get('/api/me')).status]).toEqual([200, 200]))
    expect(await program.stop()).toEqual({ code: 0, signal: null })
    await postgres.stop()
  })

  it.each([
    [
      'nothing listens',
      async () => `postgres://user:hunter2@127.0.0.1:${await freePort()}/db`,
      /DATABASE_URL: the database does not answer/,
    ],
    ['the server never answers', silentServer, /DATABASE_URL: the database does not answer \(/],
  ])('does not start where %s, and says so in one line without the password', async (_, url, message) => {
    const program = await prepared({ DATABASE_URL: await url() })
    await program.launch({ DASHBOARD_URL: originOf(program) })
    expect((await program.process.ended).code).toBe(1)
    const lines = program.process.log().trim().split('\n')
    expect(lines).toEqual([expect.stringMatching(message)])
    expect(lines[0]).not.toContain('hunter2')
  })

  it('does not start with a file that is not a database, and says the remedy in one line', async () => {
    const file = join(temporaryFolder(), 'dashboard.db')
    writeFileSync(file, 'no database'.repeat(1_000))
    const program = await prepared({ DATABASE_FILE: file })
    await program.launch({ DASHBOARD_URL: originOf(program) })
    expect((await program.process.ended).code).toBe(1)
    expect(program.process.log().trim().split('\n')).toEqual([
      expect.stringMatching(
        /^headgate-dashboard: DATABASE_FILE: .* cannot be used \(file is not a database\); restore the file from a backup/,
      ),
    ])
  })

  it('does not start with a database of a later version, says both versions in one line, and leaves the file as it is', async () => {
    const file = join(temporaryFolder(), 'dashboard.db')
    writeFormerFile(file, 'UPDATE "headgateVersion" SET version = 99')
    const before = readFileSync(file)
    const program = await prepared({ DATABASE_FILE: file })
    await program.launch({ DASHBOARD_URL: originOf(program) })
    expect((await program.process.ended).code).toBe(1)
    expect(program.process.log().trim().split('\n')).toEqual([
      expect.stringMatching(
        /^headgate-dashboard: DATABASE_FILE: the database has version 99, and this dashboard knows versions up to \d+; install/,
      ),
    ])
    expect(readFileSync(file).equals(before)).toBe(true)
  })
})

const silent = createServer()
afterAll(() => silent.close())
async function silentServer(): Promise<string> {
  const port = await freePort()
  await once(silent.listen(port, '127.0.0.1'), 'listening')
  return `postgres://user:hunter2@127.0.0.1:${port}/db`
}
