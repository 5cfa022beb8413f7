/**
 * The story of a person in a cluster, from `helm install` over a paid and a revoked key to a deleted account: Chromium, the hosts and paths of the
 * chart's Ingresses over TLS, real mails, three providers, and a model server. Each test needs those before it. No Ingress controller runs here; ingress-front.ts says what stands for one.
 */
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { missingBrowser, type OpenedPage, type TestBrowser } from '../support/browser.ts'
import { KeyPages, type MadeKey } from '../support/key-pages.ts'
import { PrivateCa } from '../support/private-ca.ts'
import { totpCode } from '../support/totp.ts'
import { eventually } from '../support/wait-for.ts'
import { type Cluster, timed } from './cluster.ts'
import { startClusterBrowser } from './cluster-browser.ts'
import { startIngressFront } from './ingress-front.ts'
import { Mailbox } from './mailbox.ts'
import { PastedClient } from './pasted-client.ts'
import { Person, type ProviderName } from './person.ts'
import { useCluster } from './use-cluster.ts'

const MANIFESTS = join(import.meta.dirname, 'manifests')
const VALUES = ['values.yaml', 'dashboard-values.yaml'].flatMap((file) => ['--values', join(MANIFESTS, file)])
const INSTALL = ['install', 'headgate', 'charts/headgate', '-n', 'headgate', ...VALUES, '--wait', '--timeout', '120s']
const NON_ROOT = 65_532
const HOST = 'dashboard.example.net'
const ORIGIN = `https://${HOST}`
const API_HOST = 'models.example.net'
const KEY = 'invoice-reader'
const SECOND_KEY = 'nightly-eval'
const MODELS = ['llama', 'llama-code', 'llama-else'] as const
/** Calls of 20 tokens or more until a balance of 1 is used up. */
const MAX_CALLS = 40
/** How often SDKs ask again. */
const RETRIES = 2
/** Longest wait for the figures of a page that has been opened, ms. */
const LOADED_MS = 15_000
/** Heading of the overview, before and after the first call of the account. */
const OVERVIEW = /^(.+ to your first answer|Overview)$/
/** Pods of the gateway, as the chart has them. */
const GATEWAYS = 2
const CLIENT_SECRET = 'the secret of three clients'
const PLAN =
  'apiVersion: headgate.dev/v1alpha1\nkind: Plan\nmetadata: { name: default }\nspec: { models: [llama, llama-code, llama-else] }\n'
const PROVIDERS: readonly ProviderName[] = ['GitHub', 'Google', 'Acme']
const MAYA = { email: 'maya@fernwood.example', subject: 'maya' }
const NEW_EMAIL = 'maya@other.example'
const PASSWORD = 'four quiet herons wade'
const NEW_PASSWORD = 'five quiet herons wade'

interface Account {
  readonly metadata: { readonly name: string; readonly uid: string }
  readonly spec: Readonly<Record<string, unknown>>
}

const folder = mkdtempSync(join(tmpdir(), 'headgate-dashboard-'))
/** The volume. No volume of this cluster outlives a pod by itself. */
const volume = mkdtempSync(join(tmpdir(), 'headgate-volume-'))
const withoutBrowser = missingBrowser()
let certificate = ''
/** Address of nginx in the place of an Ingress controller. */
let front = ''
let browser: TestBrowser | undefined
let opened: OpenedPage | undefined
let maya: Person

afterAll(() => {
  for (const made of [folder, volume]) rmSync(made, { recursive: true, force: true })
})
const { cluster } = useCluster(prepare)
afterAll(() => browser?.close()) // the last hook runs first: the browser ends before its node
const mailbox = new Mailbox(cluster)
beforeEach(({ skip }) => skip(withoutBrowser !== undefined, withoutBrowser))

async function prepare(target: Cluster): Promise<void> {
  chownSync(volume, NON_ROOT, NON_ROOT) // a folder of the node does not get the group of the pod
  const labels = '{ pod-security.kubernetes.io/enforce: restricted }'
  await target.apply(
    ['headgate', 'front', 'demo']
      .map((name) => `apiVersion: v1\nkind: Namespace\nmetadata: { name: ${name}, labels: ${labels} }\n`)
      .join('---\n'),
  )
  const manifest = (name: string): string => readFileSync(join(MANIFESTS, name), 'utf8')
  await target.apply(manifest('dashboard.yaml').replaceAll('VOLUME', volume))
  await target.apply(
    manifest('identity-providers.yaml').replace(': DASHBOARD ', `: ${ORIGIN} `).replace(': SECRET ', `: ${CLIENT_SECRET} `),
  )
  await target.apply(manifest('model-server.yaml'))
  await createSecrets(target)
  await target.kubectl('-n', 'demo', 'rollout', 'status', 'deployment/llama', '--timeout=60s')
  await target.kubectl('-n', 'front', 'wait', '--for=condition=Ready', 'pod/mail', 'pod/identity-providers', '--timeout=60s')
}

async function createSecrets(target: Cluster): Promise<void> {
  const acme = { id: 'acme', name: 'Acme', issuer: 'http://acme.front.svc', clientId: 'headgate', clientSecret: CLIENT_SECRET }
  const { key, cert } = await (await PrivateCa.make(join(folder, 'ca'))).certify(`DNS:${HOST},DNS:${API_HOST}`)
  certificate = cert.toString('utf8')
  const secrets = {
    'headgate-dashboard': {
      DASHBOARD_SECRET: '0123456789abcdef0123456789abcdef',
      GITHUB_CLIENT_SECRET: CLIENT_SECRET,
      GOOGLE_CLIENT_SECRET: CLIENT_SECRET,
      OIDC_PROVIDERS: JSON.stringify([acme]),
    },
    'dashboard-tls': { 'tls.crt': certificate, 'tls.key': key.toString('utf8') },
  }
  const items = Object.entries(secrets).map(([name, stringData]) => {
    const type = name === 'dashboard-tls' ? 'kubernetes.io/tls' : 'Opaque'
    return { apiVersion: 'v1', kind: 'Secret', type, metadata: { name, namespace: 'headgate' }, stringData }
  })
  await target.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
}

/** What no log may hold. */
const secrets: string[] = [PASSWORD, NEW_PASSWORD, CLIENT_SECRET]
/** Of all pods of the dashboard. A deleted pod has no logs. */
let logs = ''
/** Of all pods of gateway and operator. */
let otherLogs = ''
async function readLogs(): Promise<void> {
  logs += await cluster.kubectl('-n', 'headgate', 'logs', 'deployment/headgate-dashboard')
  for (const component of ['gateway', 'operator'])
    otherLogs += await cluster.kubectl('-n', 'headgate', 'logs', '-l', `app.kubernetes.io/component=${component}`, '--tail=-1')
}

/** A browser without cookies, as on another machine. */
async function newBrowser(): Promise<void> {
  await keepCookies()
  await opened?.context.close()
  if (browser === undefined) throw new Error('the browser has not been started')
  opened = await browser.open()
  await opened.context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: ORIGIN })
  maya = new Person(opened.page, ORIGIN)
}

async function keepCookies(): Promise<void> {
  secrets.push(...((await opened?.context.cookies(ORIGIN)) ?? []).map(({ value }) => value))
}

/** The link of the next mail. */
async function mailedLink(to: string, subject: RegExp): Promise<string> {
  const [link = ''] = (await mailbox.next(to, subject)).links
  secrets.push(new URL(link).searchParams.get('token') ?? link)
  return link
}

async function accountsOfPeople(): Promise<readonly Account[]> {
  const list = await cluster.kubectl('get', 'accounts', '-l', 'headgate.dev/created-by=dashboard', '-o', 'json')
  return (JSON.parse(list) as { items: Account[] }).items
}

async function accountSpec(): Promise<Account['spec']> {
  const [account, ...others] = await accountsOfPeople()
  expect(others).toEqual([])
  return account?.spec ?? {}
}

/** Creates a Credit as an administrator does, and waits until it counts. */
async function addCredit(name: string, amount: string): Promise<void> {
  const [account] = await accountsOfPeople()
  const accountRef = { name: account?.metadata.name, uid: account?.metadata.uid }
  const spec = { accountRef, amount, type: 'TopUp', reference: `Payment ${name}` }
  await cluster.apply(JSON.stringify({ apiVersion: 'headgate.dev/v1alpha1', kind: 'Credit', metadata: { name }, spec }))
  await cluster.kubectl('wait', '--for=condition=Booked', `credit/${name}`, '--timeout=60s')
}

function keyPages(): KeyPages {
  if (opened === undefined) throw new Error('no page is open')
  return new KeyPages(opened.page, ORIGIN)
}

type Route = '/chat/completions' | '/messages'

/**
 * Calls a model through the Ingress of the gateway, from a page of that host. A 429 is asked again at the time that the answer names, as SDKs do: near the
 * end of a balance, the hold of a call that has just ended may still be in the way.
 * @returns the status, and the tokens of a chat completion
 */
async function call(
  { value, env }: MadeKey,
  { model = 'llama', route = '/chat/completions' }: { readonly model?: string; readonly route?: Route } = {},
): Promise<{ readonly status: number; readonly tokens: number }> {
  const page = await opened?.context.newPage()
  if (page === undefined) throw new Error('no browser is open')
  await page.goto(`https://${API_HOST}/`)
  const body = { model, max_tokens: 8, messages: [{ role: 'user', content: 'Say something.' }] }
  const answer = await page.evaluate(
    async ([url, credential, text, tries]) => {
      const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
      let response = await fetch(url, { method: 'POST', headers, body: text })
      for (let retry = 0; retry < tries && response.status === 429; retry += 1) {
        const wait = Number(response.headers.get('retry-after-ms'))
        await new Promise((resolve) => setTimeout(resolve, wait))
        response = await fetch(url, { method: 'POST', headers, body: text })
      }
      const { usage } = (await response.json()) as { usage?: { total_tokens?: number } }
      return { status: response.status, tokens: usage?.total_tokens ?? 0 }
    },
    [`${env['SERVICE_BASE_URL'] ?? ''}${route}`, value, JSON.stringify(body), RETRIES] as const,
  )
  await page.close()
  return answer
}

async function answerOf(url: string): Promise<number | undefined> {
  return (await opened?.page.goto(url))?.status()
}

describe('the dashboard on a real node', () => {
  let key: MadeKey | undefined
  let secondKey: MadeKey | undefined
  let client: PastedClient | undefined
  let totpSecret = ''
  let backupCodes: readonly string[] = []
  const usedCodes = new Set<string>()
  /** The server takes the code of now, of the period before and of the one after, each once: three sign-ins without waiting. */
  const freshCode = (): string => {
    const code = [-30_000, 0, 30_000].map((offset) => totpCode(totpSecret, Date.now() + offset)).find((one) => !usedCodes.has(one)) ?? ''
    usedCodes.add(code)
    return code
  }

  it('is installed by helm under the restricted profile, with its database on a volume', async () => {
    await timed('helm install', () => cluster.helm(...INSTALL))
    await cluster.apply(PLAN)
    await cluster.apply(readFileSync(join(MANIFESTS, 'dashboard-model.yaml'), 'utf8'))
    await cluster.kubectl('-n', 'demo', 'wait', '--for=condition=Ready', ...MODELS.map((name) => `servedmodel/${name}`), '--timeout=60s')
    await cluster.kubectl('-n', 'headgate', 'rollout', 'status', 'deployment/headgate-dashboard', '--timeout=60s')
    expect(await cluster.kubectl('-n', 'headgate', 'get', 'pvc', 'headgate-dashboard', '-o', 'jsonpath={.status.phase}')).toBe('Bound')
  })

  it('is reached by the host of its Ingress alone, over TLS', async () => {
    front = await startIngressFront(cluster)
    browser = await startClusterBrowser(cluster, { folder, hosts: { '*.example.net': front }, certificate })
    await newBrowser()
    expect(await answerOf(`http://${HOST}/sign-in`)).toBe(200)
    expect(opened?.page.url(), 'https').toBe(`${ORIGIN}/sign-in`)
    expect(await answerOf('https://other.example.net/sign-in')).toBe(404)
  })

  it('takes a person from sign-up through a mail to an Account that gateways know', async () => {
    await maya.open('/sign-up')
    await maya.fill({ Email: MAYA.email, Password: PASSWORD })
    await maya.button('Sign up').click()
    await maya.sees('Check your mail')
    expect(await accountsOfPeople(), 'nothing before the proof').toEqual([])
    await maya.open(await mailedLink(MAYA.email, /Verify/))
    await maya.button('Verify email').click()
    await maya.isIn()
    const [account] = await accountsOfPeople()
    await cluster.kubectl('wait', '--for=condition=Programmed', `account/${account?.metadata.name ?? ''}`, '--timeout=60s')
    await maya.sees(OVERVIEW)
    expect(await accountSpec()).toMatchObject({ owner: { email: MAYA.email, emailVerification: 'Verified' }, planRef: { name: 'default' } })
  })

  it('signs a person out, and in again by the password and through each provider', async () => {
    await keepCookies()
    await maya.button('Sign out').click()
    await maya.sees('Sign in')
    await maya.signIn(MAYA.email, 'not the password')
    await maya.reads('Email or password is wrong')
    await maya.signIn(MAYA.email, PASSWORD)
    await maya.isIn()
    for (const provider of PROVIDERS) {
      await maya.link(provider, MAYA)
      await mailbox.next(MAYA.email, new RegExp(provider))
    }
    for (const provider of PROVIDERS) {
      await newBrowser()
      await maya.signInThrough(provider, MAYA)
      await maya.isIn()
    }
  })

  it('keeps people and sessions when its pod is replaced', async () => {
    await readLogs()
    await cluster.kubectl('-n', 'headgate', 'rollout', 'restart', 'deployment/headgate-dashboard')
    await cluster.kubectl('-n', 'headgate', 'rollout', 'status', 'deployment/headgate-dashboard', '--timeout=60s')
    await expect.poll(() => answerOf(`${ORIGIN}/api/me`), { interval: 500 }).toBe(200)
  })

  it('shows the credit that an administrator has created, with its reason', async () => {
    await addCredit('po-4711', '1')
    await maya.open('/billing')
    await maya.reads('+1.00')
    await maya.reads('Sum of all movements = balance')
    await maya.reads('Payment po-4711')
  })

  it('makes a key whose value works through the Ingress of the gateway, and shows what the model server reported', async () => {
    const limits = { requestsPerMinute: '60', tokensPerMinute: '90,000', budget: { amount: '5', window: 'a month' } }
    key = await keyPages().make({ name: KEY, models: ['llama', 'llama-code'], ...limits })
    secrets.push(key.value)
    expect(key.env['SERVICE_BASE_URL']).toBe(`https://${API_HOST}/v1`)
    const { status, tokens } = await call(key)
    expect([status, tokens > 0]).toEqual([200, true])
    const row = opened?.page.getByRole('table', { name: 'Tokens, by model' }).getByRole('row').filter({ hasText: 'llama' })
    await eventually(async () => {
      await maya.open(`/usage?days=7&key=${key?.id ?? ''}`)
      await row?.waitFor({ timeout: LOADED_MS }) // the next look loads the page again
      const [input = 0, , output = 0] = ((await row?.getByRole('cell').allInnerTexts()) ?? []).map(Number)
      expect(input + output).toBe(tokens)
    })
  })

  it('answers both SDKs, plain and streamed, with the variables that the page gave', async () => {
    if (key === undefined) throw new Error('no key was made')
    client = await PastedClient.start(cluster, key, {
      address: front,
      host: API_HOST,
      ca: readFileSync(join(folder, 'ca', 'ca.crt'), 'utf8'),
    })
    for (const { call: kind, status, characters } of await client.ask('llama'))
      expect([kind, status, characters > 0]).toEqual([kind, 200, true])
  })

  it('answers 403 for a model outside the key, 402 at the end of the balance, and 200 after a top-up', async () => {
    if (key === undefined) throw new Error('no key was made')
    const second = await keyPages().make({ name: SECOND_KEY })
    secondKey = second
    secrets.push(second.value)
    expect((await call(key, { model: 'llama-else' })).status).toBe(403)
    for (const route of ['/chat/completions', '/messages'] as const)
      expect((await call(second, { model: 'llama-code', route })).status).toBe(200)
    let status = 200
    for (let calls = 0; status === 200 && calls < MAX_CALLS; calls += 1) status = (await call(key)).status
    expect([status, (await call(second)).status]).toEqual([402, 402])
    await addCredit('po-4712', '10')
    await expect.poll(async () => (await call(second)).status).toBe(200)
    expect((await call(key)).status).toBe(200)
  })

  it('revokes the key on every gateway, and then no call with it is answered, while the second key goes on', async () => {
    if (key === undefined || secondKey === undefined) throw new Error('no key was made')
    await keyPages().revoke(KEY, GATEWAYS)
    for (let at = 0; at < 2 * GATEWAYS; at += 1) {
      expect((await call(key)).status).toBe(401)
      expect((await call(secondKey)).status).toBe(200)
    }
    expect((await client?.ask('llama'))?.map(({ status }) => status)).toEqual([401, 401, 401, 401])
  })

  it('turns two-factor on, and then asks for a code after the password and after a provider', async () => {
    await maya.open('/settings')
    await maya.button('Turn on two-factor').click()
    totpSecret = (await maya.field('Secret').locator('code').innerText()).replaceAll(' ', '')
    await maya.fill({ Code: freshCode() })
    await maya.dialog.getByRole('button', { name: 'Turn on' }).click()
    await maya.reads('Two-factor is on.')
    backupCodes = await maya.dialog.getByRole('listitem').allInnerTexts()
    expect(backupCodes).toHaveLength(10)
    secrets.push(totpSecret, ...backupCodes)
    await mailbox.next(MAYA.email, /two-factor/i)
    const signIns = [() => maya.signIn(MAYA.email, PASSWORD), () => maya.signInThrough('GitHub', MAYA)]
    for (const signIn of signIns) {
      await newBrowser()
      await signIn()
      await maya.sees('Enter your code')
      expect(await answerOf(`${ORIGIN}/api/me`), 'not signed in before the code').toBe(401)
      await maya.open('/two-factor')
      await maya.typeCode('Code', freshCode())
      await maya.isIn()
    }
  })

  it('changes the email by a mailed link, in the person and in the Account', async () => {
    await maya.open('/settings')
    await maya.fill({ Email: NEW_EMAIL })
    await maya.button('Change email').click()
    await maya.open(await mailedLink(NEW_EMAIL, /Verify/))
    await maya.sees('Verify your new email')
    await maya.button('Verify email').click()
    await maya.sees('Settings')
    await mailbox.next(MAYA.email, /changed/i)
    await expect.poll(() => maya.field('Email').inputValue()).toBe(NEW_EMAIL)
    await expect.poll(accountSpec).toMatchObject({ owner: { email: NEW_EMAIL } })
  })

  it('sets a new password by a mailed link, which ends all sessions', async () => {
    await keepCookies()
    const session = (await opened?.context.cookies(ORIGIN)) ?? []
    await newBrowser()
    await maya.open('/reset')
    await maya.fill({ Email: NEW_EMAIL })
    await maya.button('Send reset link').click()
    await maya.open(await mailedLink(NEW_EMAIL, /new password/))
    await maya.fill({ 'New password': NEW_PASSWORD })
    await maya.button('Set password').click()
    await maya.reads('Password set')
    await opened?.context.addCookies(session)
    expect(await answerOf(`${ORIGIN}/api/me`), 'the session before').toBe(401)
  })

  it('leaves the volume and the namespace of the keys at an uninstall, and goes on with both after an install', async () => {
    await readLogs()
    await cluster.helm('uninstall', 'headgate', '-n', 'headgate', '--wait', '--timeout', '120s')
    await cluster.kubectl('get', 'namespace', 'headgate-accounts')
    await timed('helm install, again', () => cluster.helm(...INSTALL))
    await newBrowser()
    await expect.poll(() => answerOf(`${ORIGIN}/sign-in`), { interval: 500 }).toBe(200)
    await maya.signIn(NEW_EMAIL, NEW_PASSWORD)
    await maya.open('/two-factor?with=backup-code')
    await maya.typeCode('Backup code', backupCodes[0] ?? '')
    await maya.isIn()
    await maya.sees(OVERVIEW)
    expect(await accountSpec()).toMatchObject({ owner: { email: NEW_EMAIL }, state: 'Active' })
  })

  it('deletes the person at their word, and suspends the Account', async () => {
    await keepCookies()
    await maya.open('/settings')
    await maya.button('Delete account').click()
    await maya.field('Type your email to confirm').fill(NEW_EMAIL)
    await maya.dialog.getByRole('button', { name: 'Delete account' }).click()
    await maya.reads('Account deleted')
    await expect.poll(accountSpec).toMatchObject({ state: 'Suspended' })
    await maya.signIn(NEW_EMAIL, NEW_PASSWORD)
    await maya.reads('Email or password is wrong')
  })

  it('writes no warning and no secret into its logs', async () => {
    await readLogs()
    expect(logs).toContain('listening')
    expect(logs).not.toMatch(/"level":"(warn|error)"/)
    expect(secrets.length).toBeGreaterThan(20)
    expect(otherLogs).toContain('"route":"/v1/chat/completions"')
    for (const secret of secrets) expect(`${logs}${otherLogs}`.includes(secret), 'a secret is in the logs').toBe(false)
  })
})
