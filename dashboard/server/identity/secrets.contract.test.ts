/** What a stolen backup of the database, a log or an answer gives away: addresses, and nothing that opens an account. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createStubGitHub } from '../../../examples/stub-identity/github.ts'
import { cookieHeader, manySources, send, signInThrough, turnOnTwoFactor } from '../../../test/support/dashboard-requests.ts'
import { DashboardWorld, type FormBrowser, MailLog, PASSWORD, tokenOf } from '../../../test/support/dashboard-world.ts'
import { listening } from '../../../test/support/listening.ts'
import { temporaryFolderOfFile } from '../../../test/support/temporary-folder.ts'
import type { Letter } from '../mail/transport.ts'

const WRONG = 'canary of a wrong password'
const NEXT = 'canary of the next password'
const EMAIL = 'canary@s.example'
const client = { id: 'headgate', secret: 'canary of the client secret' }

/** Keeps letters, and fails while `isAway`, so that they wait in the database. */
class AwayMail extends MailLog {
  isAway = false
  readonly waiting: Letter[] = []

  override async send(letter: Letter): Promise<void> {
    if (!this.isAway) return await super.send(letter)
    this.waiting.push(letter)
    throw new Error('the mail server is away')
  }
}

const folder = temporaryFolderOfFile()
const mail = new AwayMail()
let world: DashboardWorld
let stopStub: () => void
/** What must never be found, by what it is. */
const secrets = new Map<string, string>()
let owner: FormBrowser
const answers: string[] = []

beforeAll(async () => {
  world = await DashboardWorld.open({
    hasRealHashes: true,
    folder,
    transport: mail,
    providers: async (origin) => {
      const stub = createStubGitHub({ client: { ...client, redirectURIs: [`${origin}/api/auth/callback/github`] } })
      const url = `http://127.0.0.1:${await listening(stub)}`
      stopStub = () => stub.close()
      return [{ kind: 'github', id: 'github', name: 'GitHub', clientId: client.id, clientSecret: client.secret, url, apiURL: url }]
    },
  })
  mail.origin = world.origin
  await liveThroughAll()
}, 60_000)
afterAll(async () => {
  stopStub()
  await world[Symbol.asyncDispose]()
})

/** A life with every kind of secret; at its end the mail server is away, and links wait in the database. */
async function liveThroughAll(): Promise<void> {
  const note = (what: string, value: string | undefined): void => void secrets.set(what, value ?? '')
  owner = world.browser(manySources)
  answers.push((await owner.post('/sign-up', { email: EMAIL, password: PASSWORD })).text)
  note('the cookie of the sign-up', owner.cookies.get('headgate.sign_up'))
  const { link } = await mail.wait(EMAIL, 'verify')
  note('the link to verify', tokenOf(link))
  answers.push((await owner.post('/verify', { token: tokenOf(link) })).text)
  const app = await turnOnTwoFactor(owner)
  note('the secret of the app', app.secret)
  for (const code of app.backupCodes) note(`the backup code ${code}`, code)
  const other = world.browser(manySources)
  answers.push((await other.post('/sign-in', { email: EMAIL, password: WRONG })).text)
  answers.push((await other.post('/sign-in', { email: EMAIL, password: PASSWORD })).text)
  note('the cookie of the challenge', decodeURIComponent(other.cookies.get('headgate.two_factor') ?? '').split('.')[0])
  answers.push((await other.post('/two-factor', { code: app.freshCode })).text)
  note('the cookie of the second session', other.cookies.get('headgate.session_token'))
  answers.push((await owner.call('POST', '/api/password', { current: PASSWORD, next: NEXT })).text)
  await signInThrough(world.browser(), 'github', { email: 'canary-hub@s.example' })
  for (const path of ['/api/me', '/api/sessions', '/api/providers', '/api/export', '/']) answers.push((await owner.get(path)).text)
  note('the cookie of the session', owner.cookies.get('headgate.session_token'))
  note('the signature of the cookie of the session', decodeURIComponent(owner.cookies.get('headgate.session_token') ?? '').split('.')[1])
  mail.isAway = true
  await world.browser().post('/reset', { email: EMAIL })
  await world.browser().post('/sign-up', { email: 'canary-new@s.example', password: PASSWORD })
  await owner.call('POST', '/api/email', { email: 'canary-next@s.example' })
  while (mail.waiting.length < 3) await new Promise((resolve) => setImmediate(resolve))
  for (const { name, parameters } of mail.waiting)
    if ('path' in parameters)
      note(`the waiting link of ${name}`, new URL(parameters.path, world.origin).searchParams.get('token') ?? undefined)
  for (const [what, value] of [
    ['the password', PASSWORD],
    ['the next password', NEXT],
    ['the wrong password', WRONG],
    ['the client secret', client.secret],
  ] as const)
    note(what, value)
}

/** The bytes of all files of the database, as a copy of the volume has them. */
function bytesOfDatabase(): string {
  const files = readdirSync(folder).filter((name) => name.startsWith('dashboard.db'))
  return files.map((name) => readFileSync(join(folder, name)).toString('latin1')).join('\n')
}

/** @returns which secrets are in `text`, also as a browser or JSON would write them */
function found(text: string): string[] {
  const forms = (value: string): string[] => [
    value,
    encodeURIComponent(value),
    decodeURIComponent(value),
    Buffer.from(value).toString('base64'),
  ]
  return [...secrets].flatMap(([what, value]) => (forms(value).some((form) => text.includes(form)) ? [what] : []))
}

describe('the secrets of a life in the dashboard', () => {
  test('are known to this test', () => {
    expect([...secrets].filter(([, value]) => value.length < 10)).toEqual([])
    expect([...secrets.keys()].filter((what) => what.startsWith('the waiting link')).toSorted()).toEqual([
      'the waiting link of new-address',
      'the waiting link of reset',
      'the waiting link of verify',
    ])
    expect(secrets.size).toBeGreaterThan(20)
  })

  test('are not in the files of the database, also not while their mails wait', () => {
    const bytes = bytesOfDatabase()
    expect(bytes).toContain(EMAIL) // people are found by their address
    expect(bytes).toContain('$argon2id$v=19$m=19456,t=2,p=1$')
    expect(found(bytes)).toEqual([])
    expect(bytes).not.toContain('canary-next@s.example') // only in a waiting mail, which is sealed
  })

  test('except the first part of the cookie of a session, which opens nothing without its signature', async () => {
    const [token = ''] = decodeURIComponent(owner.cookies.get('headgate.session_token') ?? '').split('.')
    expect(bytesOfDatabase()).toContain(token)
    expect((await send(world, 'GET', '/api/me', { headers: { cookie: `headgate.session_token=${token}` } })).status).toBe(401)
    expect((await send(world, 'GET', '/api/me', { headers: { cookie: cookieHeader(owner) } })).status).toBe(200)
  })

  test('are not in the log at level debug, and neither are addresses, sessions and queries', () => {
    const log = world.lines.join('')
    expect(log).toContain('"audit":"person.sign-in"')
    expect(found(log)).toEqual([])
    const [token = ''] = decodeURIComponent(owner.cookies.get('headgate.session_token') ?? '').split('.')
    for (const text of [token, 's.example', 'token=', '203.', '198.51.', 'code=']) expect([text, log.includes(text)]).toEqual([text, false])
  })

  test('are not in the answers', () => {
    expect(found(answers.join('\n'))).toEqual([])
    expect(answers.join('\n')).not.toMatch(/"(token|accessToken|idToken|secret|password|hash)":/)
  })

  test('are not in the Accounts of the cluster', async () => {
    const { accounts } = await import('#api/resources.ts')
    const text = JSON.stringify(await world.store.list(accounts, ''))
    expect(text).toContain(EMAIL)
    expect(found(text)).toEqual([])
  })
})

describe('the deletion of a person', () => {
  test('leaves no row with the address, the id or the name of the person', async () => {
    mail.isAway = false
    const browser = world.browser()
    await browser.post('/sign-up', { email: 'erased@s.example', password: PASSWORD })
    await browser.post('/verify', { token: tokenOf((await mail.wait('erased@s.example', 'verify')).link) })
    await turnOnTwoFactor(browser)
    await browser.call('PATCH', '/api/me', { name: 'Erased Person' })
    await world.browser().post('/reset', { email: 'erased@s.example' })
    await mail.wait('erased@s.example', 'reset')
    const { id } = (await browser.get('/api/me')).json().person
    expect((await browser.call('POST', '/api/account/delete', { email: 'erased@s.example' })).status).toBe(204)
    await mail.wait('erased@s.example', 'account-deleted')
    const { db } = world.dashboard.identity.database
    const rows: string[] = []
    for (const { name } of await db.introspection.getTables())
      rows.push(
        ...(
          await db
            .selectFrom(name as 'headgateMember')
            .selectAll()
            .execute()
        ).map((row) => `${name} ${JSON.stringify(row)}`),
      )
    expect(rows.filter((row) => [id, 'erased@s.example', 'Erased Person'].some((text) => row.includes(text)))).toEqual([])
  })
})
