/**
 * Dashboard and payments as programs beside a stack, with the rights of the chart and no others. The mail server and the payment provider are
 * stand-ins. The work of a kubelet is done here: the tokens of both ServiceAccounts.
 */
import { join } from 'node:path'
import { systemClock } from '#platform/clock.ts'
import { EventSender } from '../../examples/stub-stripe/event-sender.ts'
import { StubStripe } from '../../examples/stub-stripe/stub-stripe.ts'
import type { ControlPlane } from './control-plane.ts'
import { applyDashboardRights, writeUsageToken } from './dashboard-rights.ts'
import { SECRET } from './dashboard-world.ts'
import type { Lab } from './lab.ts'
import { listening } from './listening.ts'
import { MailServer } from './mail-server.ts'
import { Program } from './program.ts'
import type { Stack } from './stack.ts'

/** Of the render. */
const NAMESPACE = 'headgate'
/** Namespace of the keys that people make, as in the render: a stack beside a site has it in `namespaces`. */
export const KEYS_NAMESPACE = 'headgate-accounts'
const TOKEN = 'a token of the tests that is long enough'
const WEBHOOK_SECRET = 'whsec_of_the_tests_0123456789'
const STRIPE_KEY = 'sk_test_of_the_tests'
/** The provider sends each event in turn so often: a lost one is found at the way back or by the sweep. */
const TIMES_SENT = [3, 1, 0]

/** What the programs are told, and must tell nobody. */
export const SITE_SECRETS = {
  'the token between dashboard and payments': TOKEN,
  'the secret of the events of Stripe': WEBHOOK_SECRET,
  'the key of Stripe': STRIPE_KEY,
} as const

export class DashboardSite {
  readonly dashboard: Program
  readonly payments: Program
  readonly mails: MailServer
  readonly stripe: StubStripe
  readonly stack: Stack
  /** For the database and the tokens. */
  readonly folder: string

  private constructor(parts: Pick<DashboardSite, 'dashboard' | 'payments' | 'mails' | 'stripe' | 'stack' | 'folder'>) {
    this.dashboard = parts.dashboard
    this.payments = parts.payments
    this.mails = parts.mails
    this.stripe = parts.stripe
    this.stack = parts.stack
    this.folder = parts.folder
  }

  /** @param folder removed after the test, since a database holds addresses of people */
  static async start(lab: Lab, stack: Stack, folder: string): Promise<DashboardSite> {
    const site = await DashboardSite.prepare(lab, stack, folder)
    await site.start()
    return site
  }

  /** A site whose programs are not started yet: its origin is known, and both stand-ins run. */
  static async prepare(lab: Lab, stack: Stack, folder: string): Promise<DashboardSite> {
    await applyDashboardRights(stack.site.plane)
    const [mails, dashboard, payments] = await Promise.all([
      MailServer.start(),
      prepared(lab, stack, 'dashboard'),
      prepared(lab, stack, 'payments'),
    ])
    const stripe: StubStripe = new StubStripe({
      ...{ key: STRIPE_KEY, webhookSecret: WEBHOOK_SECRET },
      onEvents: (events) => events.forEach((event) => sender.send(event)),
    })
    const url = `http://127.0.0.1:${payments.port}/webhooks/stripe`
    const sender = new EventSender({ stripe, url, after: (ms, send) => systemClock.after(ms, send), times: TIMES_SENT })
    stripe.url = `http://127.0.0.1:${await listening(stripe.server)}`
    return new DashboardSite({ dashboard, payments, mails, stripe, stack, folder })
  }

  /** @param env more environment of the dashboard */
  async start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    const files = await writeTokens(this.stack.site.plane, this.folder)
    await this.payments.start({ ...paymentsEnv(this), KUBECONFIG: files.payments })
    await this.dashboard.start({ ...dashboardEnv(this), KUBECONFIG: files.dashboard, USAGE_TOKEN_FILE: files.usageToken, ...env })
  }

  get origin(): string {
    return `http://localhost:${this.dashboard.port}`
  }

  /** File of the database. */
  get database(): string {
    return join(this.folder, 'dashboard.db')
  }

  async close(): Promise<void> {
    await Promise.all([this.dashboard.stop(), this.payments.stop()])
    this.stripe.server.close().closeAllConnections()
    await this.mails.stop()
  }
}

async function prepared({ address, folder }: Lab, stack: Stack, program: 'dashboard' | 'payments'): Promise<Program> {
  return await Program.prepare({ program, pod: `${stack.site.name}-${program}`, ip: address.ip, folder, env: {} })
}

/** The ServiceAccounts, roles and policies of both, as the chart renders them. */
async function writeTokens(
  plane: ControlPlane,
  folder: string,
): Promise<Readonly<Record<'dashboard' | 'payments' | 'usageToken', string>>> {
  const files = {
    dashboard: join(folder, 'dashboard.kubeconfig'),
    payments: join(folder, 'payments.kubeconfig'),
    usageToken: join(folder, 'usage-token'),
  }
  await plane.kubeconfigFor(NAMESPACE, 'headgate-dashboard', files.dashboard)
  await plane.kubeconfigFor(NAMESPACE, 'headgate-payments', files.payments)
  await writeUsageToken(plane, files.usageToken)
  return files
}

function paymentsEnv({ origin, payments, stripe }: DashboardSite): Record<string, string> {
  return {
    LOG_LEVEL: 'debug',
    CHECKOUT_PORT: String(payments.usagePort),
    DASHBOARD_URL: origin,
    BILLING_CURRENCY: 'USD',
    STRIPE_SECRET_KEY: STRIPE_KEY,
    STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET,
    STRIPE_URL: stripe.url,
    PAYMENTS_TOKEN: TOKEN,
  }
}

function dashboardEnv({ origin, payments, mails, database, stack }: DashboardSite): Record<string, string> {
  return {
    LOG_LEVEL: 'debug',
    DASHBOARD_URL: origin,
    PUBLIC_URL: stack.gateway.url,
    TRUSTED_PROXIES: 'loopback',
    DASHBOARD_SECRET: SECRET,
    DATABASE_FILE: database,
    SMTP_HOST: '127.0.0.1',
    SMTP_PORT: String(mails.port),
    SMTP_SECURITY: 'none',
    MAIL_FROM: 'Headgate <no-reply@example.com>',
    ACCOUNT_BILLING: 'Prepaid',
    KEYS_NAMESPACE,
    USAGE_URL: stack.operator.usageUrl,
    BILLING_CURRENCY: 'USD',
    PAYMENTS: 'stripe',
    PAYMENTS_URL: `http://127.0.0.1:${payments.usagePort}`,
    PAYMENTS_TOKEN: TOKEN,
    TOP_UP_AMOUNTS: '10,25',
  }
}
