/** Composes the dashboard of its parts, for the program and for `make run`. Makes no decisions. */
import type { Account } from '#api/account.ts'
import type { ApiKey } from '#api/apikey.ts'
import type { Credit } from '#api/credit.ts'
import type { Plan } from '#api/plan.ts'
import type { ServedModel } from '#api/served-model.ts'
import type { Informer, KubePort } from '#kube/port.ts'
import { type Clock, sleep } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { messageOf } from '#platform/message-of.ts'
import { OutageLog } from '#platform/outage-log.ts'
import type { RequestListener } from 'node:http'
import { Accounts, type NewAccountSettings } from './accounts/accounts.ts'
import { createDashboardApp } from './app.ts'
import { inTurns } from './http/turns.ts'
import type { AuthSettings } from './identity/auth.ts'
import type { DatabasePlace } from './identity/database.ts'
import { type Identity, openIdentity } from './identity/identity.ts'
import { sweepPeople } from './identity/sweep.ts'
import { Keys } from './keys/keys.ts'
import { Outbox } from './mail/outbox.ts'
import type { MailTransport } from './mail/transport.ts'
import { createDashboardMetrics, type DashboardMetrics } from './metrics.ts'
import { Notifier } from './notifications/notifier.ts'
import type { Site } from './pages/layout.ts'
import type { Route } from './routes/route.ts'
import { OperatorUsage, type OperatorUsageDeps } from './usage/operator-usage.ts'
import { PaymentsClient } from './usage/payments-client.ts'
import type { PaymentSettings } from './usage/payments.ts'
import type { Money } from './usage/routes.ts'
import type { WebFiles } from './web-files.ts'

/** Where the figures about usage and money come from, and how money is taken. */
export interface MoneySettings extends Omit<OperatorUsageDeps, 'outage'> {
  /** Of the installation, `EUR`. */
  readonly currency: string
  /** A balance below it is low, micro-units; undefined: none is. */
  readonly lowBalance: number | undefined
  readonly payments: PaymentSettings
}

export interface DashboardDeps {
  readonly kube: KubePort
  readonly caches: {
    readonly accounts: Informer<Account>
    readonly apiKeys: Informer<ApiKey>
    readonly plans: Informer<Plan>
    readonly models: Informer<ServedModel>
    readonly credits: Informer<Credit>
  }
  /** Since when the API server does not answer; absent where the store is in this process. */
  readonly outage?: { readonly sinceMs: number | undefined }
  readonly auth: AuthSettings
  readonly database: DatabasePlace
  readonly newAccounts: NewAccountSettings
  readonly money: MoneySettings
  /** Base URL of the API, without /v1. */
  readonly apiURL: string
  readonly web: WebFiles
  readonly transport: MailTransport
  readonly trustedProxies: readonly string[]
  readonly clock: Clock
  readonly log: Log
  /** Where the program has counted before. */
  readonly metrics?: DashboardMetrics
  readonly extraRoutes?: (site: Site) => readonly Route[]
}

export interface Dashboard {
  readonly app: RequestListener
  readonly identity: Identity
  readonly metrics: DashboardMetrics
  /** Repairs once what a crash or an outage left half-done. */
  sweep(): Promise<void>
  /** Looks once at what has happened to accounts, and stores the mails about it. */
  notify(): Promise<void>
  /** Starts the work in the background: mails, and repair. */
  start(): void
  stop(): Promise<void>
}

/** Pause between two sweeps, ms. */
const SWEEP_MS = 60_000

export async function createDashboard(deps: DashboardDeps): Promise<Dashboard> {
  const { auth, clock, log, transport, web } = deps
  const { metrics = createDashboardMetrics() } = deps
  const identity = await openIdentity({ settings: auth, database: deps.database, clock, log }, (rows, sealing) => {
    return new Outbox({ rows, sealing, transport, clock, log, onSent: metrics.mail })
  })
  watchDashboard(metrics, identity, deps)
  const accounts = new Accounts({
    kube: deps.kube,
    informer: deps.caches.accounts,
    members: identity.members,
    settings: deps.newAccounts,
    log,
  })
  const { keysNamespace: namespace } = deps.newAccounts
  const keys = new Keys({ ...deps.caches, kube: deps.kube, namespace, currency: deps.money.currency, clock })
  const site = siteOf(deps)
  const notifier = notifierOf(deps, identity)
  const routeDeps = {
    identity,
    accounts,
    keys,
    outage: deps.outage,
    site,
    money: moneyOf(deps, keys),
    apiURL: deps.apiURL,
    clock,
    log,
    metrics,
  }
  const extraRoutes = deps.extraRoutes?.(site) ?? []
  const app = createDashboardApp({ ...routeDeps, web, trustedProxies: deps.trustedProxies, extraRoutes })
  const stopping = new AbortController()
  let sweeping: Promise<void> = Promise.resolve()
  const sweep = (): Promise<void> => sweepPeople(identity, accounts, log, stopping.signal)
  const sweepForEver = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await sweep().catch((error: unknown) => log.warn({ error: messageOf(error) }, 'the sweep failed'))
      await sleep(clock, SWEEP_MS, stopping.signal)
    }
  }
  return {
    app: inTurns(app, () => clock.monotonic()),
    identity,
    metrics,
    sweep,
    notify: () => notifier.pass(),
    start: () => {
      identity.mail.start()
      notifier.start()
      sweeping = sweepForEver()
    },
    stop: async () => {
      stopping.abort()
      await Promise.all([identity.mail.stop(), notifier.stop(), sweeping])
      transport.close()
      await identity.close()
    },
  }
}

function watchDashboard(metrics: DashboardMetrics, identity: Identity, { outage }: DashboardDeps): void {
  metrics.watch({
    waitingMails: () => identity.outboxRows.waiting(),
    oldestMailSeconds: () => identity.outboxRows.oldestSeconds(),
    pendingAccounts: () => identity.members.pending(),
    waitingHashes: () => identity.hashes.waiting,
    ping: () => identity.ping(),
    isClusterAway: () => outage?.sinceMs !== undefined,
  })
}

/** Facts that every page before sign-in shows. */
function siteOf({ auth: { origin, providers, hasPasswords }, web: { styles, scripts } }: DashboardDeps): Site {
  return { publicHost: new URL(origin).host, providers: providers.map(({ id, name }) => ({ id, name })), hasPasswords, styles, scripts }
}

function notifierOf(
  { caches, newAccounts, money: { currency, lowBalance }, clock, log }: DashboardDeps,
  { told, mail }: Identity,
): Notifier {
  const low = lowBalance === undefined ? undefined : BigInt(lowBalance)
  return new Notifier({ caches, told, mail, namespace: newAccounts.keysNamespace, currency, lowBalance: low, clock, log })
}

function moneyOf({ money: { currency, payments, ...operator }, newAccounts, clock, log }: DashboardDeps, keys: Keys): Money {
  const outageOf = (what: string): OutageLog => new OutageLog(what, log, clock)
  return {
    operator: new OperatorUsage({ ...operator, outage: outageOf('usage') }),
    currency,
    payments,
    paymentsClient:
      payments.provider === 'stripe'
        ? new PaymentsClient({ url: payments.url, token: payments.token, outage: outageOf('payments') })
        : undefined,
    namespace: newAccounts.keysNamespace,
    keyName: (id) => keys.displayName(id),
  }
}
