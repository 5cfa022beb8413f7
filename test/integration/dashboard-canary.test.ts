/**
 * Every secret of a story, of people, of their keys and of the installation, is searched in all that the programs write: logs at level debug, the
 * database and a backup, Redis, metrics, objects of the cluster, mails, answers, and what a real browser keeps. The programs are processes of their own
 * over a real API server.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { WITH_BACKUP_CODE } from '../../dashboard/server/pages/two-factor.ts'
import { createStubGitHub } from '../../examples/stub-identity/github.ts'
import { missingBrowser } from '../support/browser.ts'
import { Canaries } from '../support/canaries.ts'
import { CanaryBrowser } from '../support/canary-browser.ts'
import { CanaryKeyLife } from '../support/canary-keys.ts'
import { anyAddress, chooseAtProvider, startAtProvider, turnOnTwoFactor } from '../support/dashboard-requests.ts'
import { DashboardSite, KEYS_NAMESPACE, SITE_SECRETS } from '../support/dashboard-site.ts'
import { tokenOf } from '../support/dashboard-world.ts'
import { read } from '../support/documents.ts'
import { openLab } from '../support/lab.ts'
import { listening } from '../support/listening.ts'
import { OidcServer } from '../support/oidc-server.ts'
import type { Stack } from '../support/stack.ts'
import { filesBelow, textOf } from '../support/searched-files.ts'
import { tapAnswers, type Tapped } from '../support/tapped-answers.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

/** What may be found in the database, and the words by which docs/dashboard.md says so. All else must not be found anywhere. */
const STATED = [
  { found: 'the first part of the cookie headgate.session_token', words: 'the first half of their cookie' },
  { found: 'the code of the app, its SHA-256', words: 'hashes of used codes' },
  { found: 'the first part of the cookie headgate.two_factor, its SHA-256', words: 'hashes of sign-ins that wait for a code' },
] as const

/** Names of the values of keys. */
const OF_KEYS = /value of a key$/
/** An ApiKey and the books of the operator recognize a value by its hash. */
const HASHES_OF_KEYS: readonly string[] = ['the next value of a key, its SHA-256', 'the value of a key, its SHA-256']
const EMAIL = 'canary@c.example'
const NEW_EMAIL = 'canary-new@c.example'
const HUB_EMAIL = 'canary-hub@c.example'
const ISSUER_EMAIL = 'canary-issuer@c.example'
const SECRETS = {
  'the password': 'canary first plover nests',
  'the wrong password': 'canary wrong plover nests',
  'the next password': 'canary second plover nests',
  DASHBOARD_SECRET: 'canary of the secret of the dashboard+/=',
  'the client secret of GitHub': 'canary of the client secret of GitHub',
  'the client secret of the issuer': 'canary-of-the-client-secret-of-the-issuer',
  'the password of the mail server': 'canary of the mail server +/="',
  ...SITE_SECRETS,
} as const
const lab = openLab()
const folder = temporaryFolderOfFile()
const canaries = new Canaries()
const kept = { canaries, heads: [] as string[], bodies: [] as string[] }
const closers: (() => unknown)[] = []
const withoutBrowser = missingBrowser()
const MODEL = 'canary-model'
let stack: Stack
let site: DashboardSite
let issuer: OidcServer
let life: CanaryKeyLife | undefined

beforeAll(async () => {
  const env = { LOG_LEVEL: 'debug' }
  const plane = await lab.ownControlPlane()
  const programs = { gateways: 1, namespaces: [KEYS_NAMESPACE], operatorEnv: { ...env, ACCOUNTS: 'true' }, gatewayEnv: env }
  stack = await lab.stack(programs, plane)
  const pricing = { inputPerMillion: '1', outputPerMillion: '1' }
  await stack.serveModel(MODEL, { pricing, contextTokens: 16_384 })
  await stack.apply('Plan', 'default')
  site = await DashboardSite.prepare(lab, stack, folder)
  for (const [what, value] of Object.entries(SECRETS)) canaries.note(what, value)
  await startPrograms()
  await liveThroughAll()
})
afterAll(async () => {
  await site.close()
  for (const close of closers) await close()
})

/** The port of the dashboard is known before its start, and both providers are told where it is. */
async function startPrograms(): Promise<void> {
  const { origin } = site
  const redirectURIs = (id: string): string[] => [`${origin}/api/auth/callback/${id}`]
  const github = createStubGitHub({
    client: { id: 'headgate', secret: SECRETS['the client secret of GitHub'], redirectURIs: redirectURIs('github') },
  })
  tapAnswers(github, noteExchange)
  const gitHubURL = `http://127.0.0.1:${await listening(github)}`
  const client = { id: 'headgate', secret: SECRETS['the client secret of the issuer'], redirectURIs: redirectURIs('acme') }
  issuer = await OidcServer.start({
    client,
    people: { canary: { email: ISSUER_EMAIL, emailVerified: true } },
    onAnswered: noteExchange,
  })
  closers.push(
    () => github.close(),
    () => issuer.stop(),
  )
  await site.start({
    DASHBOARD_SECRET: SECRETS.DASHBOARD_SECRET,
    SMTP_USERNAME: 'headgate',
    SMTP_PASSWORD: SECRETS['the password of the mail server'],
    GITHUB_CLIENT_ID: 'headgate',
    GITHUB_CLIENT_SECRET: SECRETS['the client secret of GitHub'],
    GITHUB_URL: gitHubURL,
    GITHUB_API_URL: gitHubURL,
    OIDC_PROVIDERS: JSON.stringify([
      { id: 'acme', name: 'Acme', issuer: issuer.issuer, clientId: 'headgate', clientSecret: client.secret },
    ]),
  })
}

/** What a provider and the dashboard told each other when a code became tokens. */
function noteExchange({ path, authorization, asked, answered }: Tapped): void {
  if (!/\/(token|access_token)$/.test(path)) return
  const form = new URLSearchParams(asked)
  canaries.note('the verifier of PKCE', form.get('code_verifier'))
  canaries.note('the code of a provider', form.get('code'))
  if (authorization !== '') canaries.note('the client secret of the issuer, as it is sent', authorization.replace('Basic ', ''))
  const tokens = Object.entries(JSON.parse(answered) as Record<string, unknown>).filter(([name]) => name.endsWith('_token'))
  for (const [name, token] of tokens) canaries.note(`the ${name} of a provider`, String(token))
}

const browser = (): CanaryBrowser => new CanaryBrowser(site.origin, { 'x-forwarded-for': anyAddress() }, kept)

async function linkOf(to: string, what: string, subject: RegExp): Promise<string> {
  const token = tokenOf((await site.mails.nextMail(to, subject)).links[0] ?? '')
  canaries.note(what, token)
  if (token.includes('.')) canaries.note(`the signature of ${what}`, token.split('.').at(-1))
  return token
}

/** Signs in with the password and a code. @returns the signed-in browser */
async function signedIn(email: string, password: string, fields: Readonly<Record<string, string>>): Promise<CanaryBrowser> {
  const one = browser()
  expect((await one.post('/sign-in', { email, password })).location).toBe('/two-factor')
  expect((await one.post('/two-factor', fields)).status).toBe(303)
  return one
}

async function liveThroughAll(): Promise<void> {
  const owner = browser()
  await owner.post('/sign-up', { email: EMAIL, password: SECRETS['the password'] })
  const token = await linkOf(EMAIL, 'the link to verify', /Verify/)
  await owner.get(`/verify?token=${token}`)
  expect((await owner.post('/verify', { token })).location).toBe('/')
  const app = await turnOnTwoFactor(owner)
  canaries.note('the secret of the app', app.secret)
  for (const code of app.backupCodes) canaries.note('a backup code', code)
  for (const code of [app.usedCode, app.freshCode]) canaries.note('the code of the app', code)
  await browser().post('/sign-in', { email: EMAIL, password: SECRETS['the wrong password'] })
  await signedIn(EMAIL, SECRETS['the password'], { code: app.freshCode })
  await throughProviders()
  if (withoutBrowser === undefined) life = await CanaryKeyLife.lived({ lab, site, owner, model: MODEL, canaries })
  expect((await owner.call('POST', '/api/email', { email: NEW_EMAIL })).status).toBe(202)
  const change = await linkOf(NEW_EMAIL, 'the link to change the address', /Verify/)
  expect((await owner.post('/verify', { token: change })).location).toBe('/settings')
  await browser().post('/reset', { email: NEW_EMAIL })
  const reset = await linkOf(NEW_EMAIL, 'the link to a new password', /new password/)
  await browser().get(`/reset/new?token=${reset}`)
  await browser().post('/reset/new', { token: reset, password: SECRETS['the next password'] })
  const [backupCode = ''] = app.backupCodes
  await signedIn(NEW_EMAIL, SECRETS['the next password'], { code: backupCode, with: WITH_BACKUP_CODE })
  await browser().post('/sign-in', { email: NEW_EMAIL, password: SECRETS['the next password'] }) // no code follows
  await browser().post('/reset', { email: ISSUER_EMAIL }) // this link is not used
  await linkOf(ISSUER_EMAIL, 'the link that waits', /new password/)
}

/** A person by each provider, and one who does not come back. */
async function throughProviders(): Promise<void> {
  for (const id of ['github', 'acme'] as const) {
    const { one, url } = await startedAt(id)
    const back = id === 'github' ? await chooseAtProvider(url, { email: HUB_EMAIL }) : (await issuer.signIn(url.href, 'canary')).href
    expect((await one.get(back)).location).toBe('/')
    for (const path of ['/api/me', '/api/sessions', '/api/providers', '/api/export']) await one.get(path)
  }
  await startedAt('acme')
}

async function startedAt(id: string): Promise<{ readonly one: CanaryBrowser; readonly url: URL }> {
  const one = browser()
  const url = await startAtProvider(one, id)
  canaries.note('the state of a sign-in through a provider', url.searchParams.get('state'))
  if (id === 'acme') canaries.note('the nonce of a sign-in through a provider', url.searchParams.get('nonce'))
  return { one, url }
}

/** The bytes of all files of the database, as a copy of the volume has them. */
function filesOfDatabase(): string {
  const names = readdirSync(folder).filter((name) => name.startsWith('dashboard.db'))
  expect(names).toContain('dashboard.db-wal')
  return names.map((name) => readFileSync(join(folder, name)).toString('latin1')).join('\n')
}

/** A backup as docs/dashboard.md takes it. */
async function backedUp(): Promise<string> {
  const copy = join(folder, 'copy')
  const source = new DatabaseSync(site.database, { readOnly: true })
  await backup(source, copy)
  source.close()
  return readFileSync(copy).toString('latin1')
}

/** All objects of all kinds, with the fields that each writer owns. */
async function cluster(): Promise<string> {
  const { plane } = stack.site
  const kinds = (await plane.kubectl('api-resources', '--verbs=list', '--output=name')).trim().split('\n')
  return await plane.kubectl('get', kinds.join(','), '--all-namespaces', '--show-managed-fields', '--output=json')
}

async function everyMetric(): Promise<string> {
  const programs = [site.dashboard, site.payments, stack.gateway, stack.operator]
  return (await Promise.all(programs.map((one) => one.metrics()))).join('\n')
}

function logs(): string {
  const folders = [join(lab.folder, 'logs'), join(stack.site.plane.address.folder, 'audit')]
  return folders.flatMap((one) => readdirSync(one).map((name) => readFileSync(join(one, name), 'utf8'))).join('\n')
}

describe('the secrets of a story', () => {
  test('are known to this test', () => {
    expect(canaries.size).toBeGreaterThan(50)
    expect(canaries.names.filter((name) => !OF_KEYS.test(name)).toSorted()).toMatchInlineSnapshot(`
      [
        "DASHBOARD_SECRET",
        "a backup code",
        "the access_token of a provider",
        "the client secret of GitHub",
        "the client secret of the issuer",
        "the client secret of the issuer, as it is sent",
        "the code of a provider",
        "the code of the app",
        "the cookie headgate.oauth_state",
        "the cookie headgate.session_token",
        "the cookie headgate.sign_up",
        "the cookie headgate.two_factor",
        "the first part of the cookie headgate.session_token",
        "the first part of the cookie headgate.two_factor",
        "the id_token of a provider",
        "the key of Stripe",
        "the link that waits",
        "the link to a new password",
        "the link to change the address",
        "the link to verify",
        "the next password",
        "the nonce of a sign-in through a provider",
        "the password",
        "the password of the mail server",
        "the secret of the app",
        "the secret of the events of Stripe",
        "the signature of the cookie headgate.session_token",
        "the signature of the cookie headgate.two_factor",
        "the signature of the link to change the address",
        "the signature of the link to verify",
        "the state of a sign-in through a provider",
        "the token between dashboard and payments",
        "the verifier of PKCE",
        "the wrong password",
      ]
    `)
  })

  test('are in no log, of whatever program, also at level debug', async () => {
    await eventually(() => expect(site.dashboard.process.log()).toContain('"audit":"person.sign-in"'))
    expect(site.dashboard.process.log()).toContain('"level":"debug"')
    expect(canaries.foundIn(logs())).toEqual([])
    expect(logs()).not.toContain('@c.example') // no address either
  })

  test('are in no metric, and in no address, header or answer to scripts', async () => {
    expect(canaries.foundIn(await everyMetric())).toEqual([])
    expect(kept.heads.length).toBeGreaterThan(25)
    expect(canaries.foundIn(kept.heads.join('\n'))).toEqual([])
    expect(canaries.foundIn(kept.bodies.join('\n'))).toEqual([])
  })

  test('are in no object of the cluster', async () => {
    const text = await waitFor('the Accounts of three people', async () => {
      const all = await cluster()
      return [NEW_EMAIL, HUB_EMAIL, ISSUER_EMAIL].every((email) => all.includes(`"email": "${email}"`)) ? all : undefined
    })
    expect(text).toContain('"managedFields"')
    expect(canaries.foundIn(text).filter((found) => !HASHES_OF_KEYS.includes(found))).toEqual([])
  })

  test('are neither in the files of the database nor in a backup, but for what the document states', async () => {
    const stated = STATED.map(({ found }) => found).toSorted()
    expect(canaries.foundIn(filesOfDatabase())).toEqual(stated)
    expect(canaries.foundIn(await backedUp())).toEqual(stated)
    for (const { words } of STATED) expect(read('docs/dashboard.md')).toContain(words)
  })
})

describe('a key that was made and replaced in a real browser', () => {
  const lived = (): CanaryKeyLife => {
    if (life === undefined) throw new Error('no key was made')
    return life
  }
  beforeEach(({ skip }) => skip(withoutBrowser !== undefined, withoutBrowser))

  test('worked, was refused a model that is not there, and ended with its value', () => {
    expect(lived().statuses).toEqual([200, 404, 200, 401, 401])
    expect(canaries.names.filter((name) => OF_KEYS.test(name)).toSorted()).toEqual(['the next value of a key', 'the value of a key'])
  })

  test('is found by this search in the answers that handed it out', () => {
    expect(lived().handedOut).toHaveLength(2)
    expect(lived().values.foundIn(lived().handedOut.join('\n'))).toEqual(['the next value of a key', 'the value of a key'])
  })

  test('is in no other answer, and in nothing that the browser kept: page, fields, storage, history, address', () => {
    expect(lived().answers.length).toBeGreaterThan(10)
    expect(lived().answers.join('\n')).toContain('canary-key')
    expect(lived().values.foundIn(lived().answers.join('\n'))).toEqual([])
    expect(lived().kept).toHaveLength(4)
    for (const kept of lived().kept) expect([lived().values.foundIn(kept), kept.includes('headgate.session_token')]).toEqual([[], true])
  })

  test('is in no mail', () => {
    const mails = site.mails.mails.map(({ raw, text, html }) => [raw, text, html].join('\n')).join('\n')
    expect(mails).toContain('Verify')
    expect(lived().values.foundIn(mails)).toEqual([])
  })

  test('is in no file that any program of the run has written, nor in an answer of a gateway', () => {
    const files = filesBelow(lab.folder)
    expect(files.filter((file) => file.endsWith('.bodies')).length).toBeGreaterThan(0)
    const found = files.flatMap((file) => lived().values.foundIn(textOf(readFileSync(file))))
    expect(found.filter((one) => !HASHES_OF_KEYS.includes(one))).toEqual([])
  })

  test('is in Redis and in the objects of the cluster as its hash alone', async () => {
    const places = [await stack.redis.dump(), await cluster()]
    for (const text of places) {
      expect(text.length).toBeGreaterThan(1_000)
      expect(
        lived()
          .values.foundIn(text)
          .filter((found) => !HASHES_OF_KEYS.includes(found)),
      ).toEqual([])
    }
    expect(lived().values.foundIn(places.join('\n'))).toContain('the next value of a key, its SHA-256')
  })
})

test('after the deletion of a person, a backup has nothing of the person but counts, not even in free pages', async () => {
  const owner = browser()
  const email = 'erased@c.example'
  const traces = new Canaries()
  const counts = 'the address, its SHA-256' // under this hash, mails to the address are counted for two days
  traces.note('the address', email)
  await owner.post('/sign-up', { email, password: SECRETS['the password'] })
  await owner.post('/verify', { token: await linkOf(email, 'the link of the erased person', /Verify/) })
  await owner.call('PATCH', '/api/me', { name: 'Erased Plover' })
  traces.note('the name', 'Erased Plover')
  traces.note('the id', (await owner.get('/api/me')).json().person.id)
  traces.note('the session', decodeURIComponent(owner.cookies.get('headgate.session_token') ?? '').split('.')[0])
  expect(traces.foundIn(await backedUp())).toEqual(['the address', counts, 'the id', 'the name', 'the session'])
  expect((await owner.call('POST', '/api/account/delete', { email })).status).toBe(204)
  await site.mails.nextMail(email, /deleted/)
  expect(traces.foundIn(await backedUp())).toEqual([counts])
})

test('the search finds a secret in each form that it may take', () => {
  const search = new Canaries()
  const value = 'a "secret" / of+the test='
  search.note('it', value)
  search.note('six digits', '123456')
  for (const text of [
    value,
    JSON.stringify({ value }),
    encodeURIComponent(value),
    Buffer.from(`x${value}y`).toString('base64'),
    Buffer.from(`xy${value}z`).toString('base64url'),
    Buffer.from(value).toString('hex'),
    'code=123456&',
  ])
    expect([text, search.foundIn(text).length > 0]).toEqual([text, true])
  expect(search.foundIn('at 1123456 and 0.123456')).toEqual([])
})
