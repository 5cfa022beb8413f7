/**
 * The dashboard of `make run`: people in a file below the state folder, mails as files, two stand-in providers, and the Accounts of the object
 * store. compose.ts loads this file only if the dashboard is on, after keys work.
 */
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { join } from 'node:path'
import type { Credit } from '#api/credit.ts'
import { accounts, apiKeys, credits, plans, servedModels } from '#api/resources.ts'
import { MAX_MICROS, parseMicros } from '#contract/values/micros.ts'
import { apiVersionOf } from '#kube/port.ts'
import { namespaces } from '#kube/resources.ts'
import { listen } from '#platform/lifecycle.ts'
import type { Log } from '#platform/log.ts'
import { messageOf } from '#platform/message-of.ts'
import { systemClock } from '#platform/clock.ts'
import { CREATED_BY_DASHBOARD, CREATED_BY_LABEL } from '#api/metadata.ts'
import { createDashboard } from '../dashboard/server/dashboard.ts'
import type { ProviderSettings } from '../dashboard/server/identity/providers.ts'
import { folderTransport } from '../dashboard/server/mail/transport.ts'
import type { PaymentSettings } from '../dashboard/server/usage/payments.ts'
import { readWebFiles } from '../dashboard/server/web-files.ts'
import type { StubClient } from '../examples/stub-identity/authorize.ts'
import { createStubGitHub } from '../examples/stub-identity/github.ts'
import { createStubOidc } from '../examples/stub-identity/oidc.ts'
import { creditLine } from './banner.ts'
import { mailboxRoutes } from './mailbox.ts'
import { namespaceObject } from './manifest-kinds.ts'
import type { ObjectStore } from './object-store.ts'

export interface LocalDashboardDeps {
  readonly store: ObjectStore
  readonly stateFolder: string
  readonly host: string
  /** 0: any free one. */
  readonly port: number
  /** Base URL of the API, without /v1. */
  readonly apiURL: string
  /** Base URL of the usage of accounts. */
  readonly usageURL: string
  /** Namespace of the keys that people make. */
  readonly keysNamespace: string
  /** Currency of the installation. */
  readonly currency: string
  /** A balance below it is low, micro-units. */
  readonly lowBalance: number | undefined
  readonly payments: 'manual' | 'stand-in'
  readonly log: Log
}

export interface LocalDashboard {
  /** `http://localhost:8090` */
  readonly url: string
  stop(): Promise<void>
}

/** How much people who sign up may spend on trying the program out. */
const WELCOME_AMOUNT = '5.00'
/** Plan of the people who sign up. */
export const DEFAULT_PLAN = 'default'
const TOP_UP_AMOUNTS = ['10', '25', '50', '100']
/** Least and largest amount of one payment. */
const TOP_UP_BOUNDS = ['5', '1000']
const CREDIT_DIGITS = 40
const SECRET_BYTES = 48
const LOOPBACK = '127.0.0.1'

/** @throws Misconfigured if the port is taken or the pages are not built */
export async function startLocalDashboard(deps: LocalDashboardDeps): Promise<LocalDashboard> {
  await using parts = new AsyncDisposableStack()
  const web = readWebFiles(webFolder())
  let handle: RequestListener = () => undefined // the origin of the dashboard has the port, which is known after listening
  const server = parts.adopt(
    createServer((request, response) => handle(request, response)),
    close,
  )
  // cookies ignore ports, so the dashboard has another host name than the gateway and the providers
  const url = `http://localhost:${await listen(server, 'DASHBOARD_PORT', { port: deps.port, host: deps.host })}`
  const providers = await startProviders(url, parts)
  const mailFolder = join(deps.stateFolder, 'mail')
  const dashboard = await createDashboard({
    kube: deps.store,
    caches: {
      accounts: deps.store.informer(accounts),
      apiKeys: deps.store.informer(apiKeys),
      plans: deps.store.informer(plans),
      models: deps.store.informer(servedModels),
      credits: deps.store.informer(credits),
    },
    auth: { origin: url, secret: secretOf(deps.stateFolder), providers, hasPasswords: true },
    database: { file: join(deps.stateFolder, 'dashboard.db') },
    newAccounts: { defaultPlan: DEFAULT_PLAN, billing: 'Prepaid', keysNamespace: deps.keysNamespace },
    money: { url: deps.usageURL, currency: deps.currency, lowBalance: deps.lowBalance, payments: await paymentsOf(deps, url, parts) },
    apiURL: deps.apiURL,
    web,
    transport: folderTransport(mailFolder, { from: 'Headgate <no-reply@localhost>', site: { name: 'Headgate', url } }),
    trustedProxies: [],
    clock: systemClock,
    log: deps.log,
    extraRoutes: (site) => mailboxRoutes(mailFolder, site),
  })
  handle = dashboard.app
  parts.adopt(dashboard, (one) => one.stop())
  await createNamespace(deps)
  dashboard.start()
  welcome(deps)
  const running = parts.move()
  return { url, stop: () => running.disposeAsync() }
}

async function paymentsOf(
  { payments, store, currency, log }: LocalDashboardDeps,
  dashboardURL: string,
  parts: AsyncDisposableStack,
): Promise<PaymentSettings> {
  if (payments === 'manual') return { provider: 'manual', command: creditLine }
  const { startLocalPayments } = await import('./payments.ts')
  const { url, token } = parts.adopt(await startLocalPayments({ store, dashboardURL, currency, log }), (one) => one.stop())
  const [least = MAX_MICROS, most = MAX_MICROS] = TOP_UP_BOUNDS.map((text) => parseMicros(text))
  return { provider: 'stripe', url, token, amounts: TOP_UP_AMOUNTS, least, most }
}

/** Keys of people need a namespace, which Accounts admit by its name. */
async function createNamespace({ store, keysNamespace: name }: LocalDashboardDeps): Promise<void> {
  if (store.informer(namespaces).get({ namespace: '', name }) === undefined) await store.create(namespaces, namespaceObject(name))
}

/** Gives each Account that the dashboard creates a first Credit. The name is that of the Account's uid, so that it is given once. */
function welcome({ store, log }: LocalDashboardDeps): void {
  store.informer(accounts).subscribe((_before, account) => {
    if (account === undefined || account.metadata.labels?.[CREATED_BY_LABEL] !== CREATED_BY_DASHBOARD) return
    const { name, uid = '' } = account.metadata
    const id = createHash('sha256').update(uid).digest('hex').slice(0, CREDIT_DIGITS)
    const credit: Credit = {
      apiVersion: apiVersionOf(credits),
      kind: credits.kind,
      metadata: { name: `welcome-${id}` },
      spec: { accountRef: { name, uid }, amount: WELCOME_AMOUNT, type: 'Grant', reference: 'welcome' },
    }
    if (store.informer(credits).get({ namespace: '', name: credit.metadata.name })) return
    store.create(credits, credit).catch((error: unknown) => log.warn(`the welcome Credit of ${name} was not created: ${messageOf(error)}`))
  })
}

/** Starts the stand-ins for GitHub and Google on free ports of loopback. */
async function startProviders(dashboardURL: string, parts: AsyncDisposableStack): Promise<readonly ProviderSettings[]> {
  const [clientId, clientSecret] = ['headgate-make-run', randomBytes(SECRET_BYTES).toString('base64url')]
  const clientOf = (provider: string): StubClient => ({
    id: clientId,
    secret: clientSecret,
    redirectURIs: [`${dashboardURL}/api/auth/callback/${provider}`],
  })
  const start = async (server: Server): Promise<string> => {
    parts.adopt(server, close)
    return `http://${LOOPBACK}:${await listen(server, 'PORT', { port: 0, host: LOOPBACK })}`
  }
  const gitHubURL = await start(createStubGitHub({ client: clientOf('github') }))
  const issuer = await start(createStubOidc({ client: clientOf('google') }))
  return [
    { kind: 'github', id: 'github', name: 'GitHub', clientId, clientSecret, url: gitHubURL, apiURL: gitHubURL },
    { kind: 'oidc', id: 'google', name: 'Google', clientId, clientSecret, issuer },
  ]
}

/** The pages are built beside the bundle of this program, and below dist/ of the sources. */
function webFolder(): string {
  const beside = join(import.meta.dirname, 'web')
  return existsSync(beside) ? beside : join(import.meta.dirname, '../dist/web')
}

/** The secret of this installation: made once, and kept with the other state. */
function secretOf(stateFolder: string): string {
  const path = join(stateFolder, 'dashboard-secret')
  if (!existsSync(path)) {
    mkdirSync(stateFolder, { recursive: true, mode: 0o700 })
    writeFileSync(path, randomBytes(SECRET_BYTES).toString('base64url'), { mode: 0o600, flag: 'wx' })
  }
  return readFileSync(path, 'utf8').trim()
}

function close(server: Server): void {
  server.close()
  server.closeAllConnections()
}
