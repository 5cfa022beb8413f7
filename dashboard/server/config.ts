/** The settings of the dashboard: one entry each. */
import { z } from 'zod'
import { type Micros, MAX_MICROS, parseMicros } from '#contract/values/micros.ts'
import { DNS_LABEL } from '#contract/values/name-patterns.ts'
import { BY_CHART, flag, logLevel, oneOf, optionalText, port, readEnv, setting } from '#platform/settings.ts'
import { Misconfigured } from '#platform/lifecycle.ts'
import type { AuthSettings } from './identity/auth.ts'
import type { DatabasePlace } from './identity/database.ts'
import type { ProviderSettings } from './identity/providers.ts'
import type { SmtpSettings } from './mail/transport.ts'
import type { PaymentSettings } from './usage/payments.ts'

const label = z.string().regex(new RegExp(DNS_LABEL), 'is not a valid name of a Kubernetes object')
const webURL = z.url({ protocol: /^https?$/, error: 'is not an http(s) URL' }).transform((url) => url.replace(/\/+$/, ''))
const ownOrigin = webURL.refine((url) => new URL(url).origin === url, 'has a path, and the dashboard has a host name of its own')
const MIN_SECRET = 32
const lowBalance = z
  .string()
  .refine((text) => parseMicros(text) !== undefined, 'is not an amount of money')
  .transform((text) => parseMicros(text))
const money = z.string().refine((text) => (parseMicros(text) ?? 0) > 0, 'is not an amount of money')

const oidcProvider = z.strictObject({
  id: z.string().regex(/^[a-z][a-z0-9-]{0,31}$/, 'must be a short lower-case word'),
  name: z.string().min(1).max(32),
  issuer: webURL,
  clientId: z.string().min(1),
  clientSecret: z.string().min(1),
})

/** The settings by name, in the order of the documents. */
export const DASHBOARD_SETTINGS = z.object({
  port: port({ default: 8090, about: 'Port of the dashboard.', chart: BY_CHART }),
  metricsPort: port({ default: 9090, about: 'Port of `/livez`, `/readyz` and `/metrics`.', chart: BY_CHART }),
  dashboardURL: setting(ownOrigin, {
    about: 'Origin of the dashboard as browsers reach it, without a path. Links in mails and redirects of providers are built of it.',
    remedy: 'set it to https://<host of the dashboard>',
    chart: 'dashboard.url',
  }),
  publicURL: setting(webURL, {
    about: 'Base URL of the gateways as clients reach them, without /v1. The pages show it.',
    remedy: 'set it to http(s)://<host> without /v1',
    chart: 'gateway.publicURL',
  }),
  dashboardSecret: setting(z.string().min(MIN_SECRET, `is shorter than ${MIN_SECRET} characters`), {
    about: 'Signs cookies and links, and encrypts waiting mails and the secrets of authenticator apps. A new value ends all sessions.',
    remedy: 'set it to at least 32 random characters, such as the output of `openssl rand -base64 48`',
    secret: true,
    chart: 'dashboard.existingSecret',
  }),
  databaseFile: optionalText({
    about: 'File of the SQLite database: people and their sign-in. One replica only.',
    remedy: 'set it to the path of a file on a volume, or set DATABASE_URL',
    chart: BY_CHART,
  }),
  databaseURL: setting(z.url({ protocol: /^postgres(ql)?$/, error: 'is not a postgres:// URL' }).optional(), {
    about: 'Postgres instead of the file: `postgres://user:password@host:5432/database`. Needed for more than one replica.',
    remedy: 'set it to postgres://<user>:<password>@<host>:5432/<database>, or unset it',
    secret: true,
    chart: 'dashboard.existingSecret',
  }),
  trustedProxies: setting(
    z
      .string()
      .transform(listOf)
      .pipe(z.array(z.string().regex(/^[0-9a-fA-F.:]+(\/\d{1,3})?$|^loopback$/, 'is not a list of networks')))
      .default([]),
    {
      about:
        'Networks of the proxies in front, separated by commas: `10.0.0.0/8`. Only they may say who the client is, which the limits per client need.',
      remedy: 'set it to the networks of your ingress controller, separated by commas',
      chart: 'dashboard.trustedProxies',
    },
  ),
  localPasswords: flag({
    default: true,
    about: 'Whether people may sign up and sign in with an address and a password. false: through providers only.',
    chart: 'dashboard.localPasswords',
  }),
  githubClientID: optionalText({
    about: 'Client ID of the OAuth app at GitHub.',
    remedy: 'set it to the Client ID of the app',
    chart: 'dashboard.github.clientID',
  }),
  githubClientSecret: optionalText({
    about: 'Its secret.',
    remedy: 'set it to the secret of the app',
    secret: true,
    chart: 'dashboard.existingSecret',
  }),
  githubURL: setting(webURL.default('https://github.com'), {
    about: 'Base URL of GitHub or of a GitHub Enterprise server.',
    remedy: 'set it to https://<host>',
    chart: 'dashboard.github.url',
  }),
  githubApiURL: setting(webURL.default('https://api.github.com'), {
    about: 'Its API.',
    remedy: 'set it to https://<host>/api/v3',
    chart: 'dashboard.github.apiURL',
  }),
  googleClientID: optionalText({
    about: 'Client ID of the OAuth client at Google.',
    remedy: 'set it to the Client ID',
    chart: 'dashboard.google.clientID',
  }),
  googleClientSecret: optionalText({
    about: 'Its secret.',
    remedy: 'set it to the secret of the client',
    secret: true,
    chart: 'dashboard.existingSecret',
  }),
  googleIssuer: setting(webURL.default('https://accounts.google.com'), {
    about: "Google's issuer.",
    remedy: 'unset it',
    chart: 'dashboard.google.issuer',
  }),
  oidcProviders: setting(z.string().default('[]').transform(parsedJSON).pipe(z.array(oidcProvider).max(8)), {
    about: 'Further OpenID Connect issuers, as JSON: `[{"id","name","issuer","clientId","clientSecret"}]`.',
    remedy: 'set it to a JSON array as in docs/dashboard.md',
    secret: true,
    chart: 'dashboard.existingSecret',
  }),
  smtpHost: optionalText({
    about: 'SMTP server for mails.',
    remedy: 'set it to the host name of an SMTP server',
    chart: 'dashboard.smtp.host',
  }),
  smtpPort: port({ default: 587, about: 'Its port.', chart: 'dashboard.smtp.port' }),
  smtpSecurity: oneOf(['starttls', 'tls', 'none'], {
    default: 'starttls',
    about: 'Encryption: `starttls` (required before anything else), `tls` from the first byte, `none` only inside a trusted network.',
    chart: 'dashboard.smtp.security',
  }),
  smtpUsername: optionalText({ about: 'User at the SMTP server.', remedy: 'set it to a user', chart: 'dashboard.existingSecret' }),
  smtpPassword: optionalText({ about: 'Its password.', remedy: 'set it to the password', secret: true, chart: 'dashboard.existingSecret' }),
  mailFrom: setting(
    z
      .string()
      .regex(/^[^\r\n]{0,64}[^\s@<>\r\n]+@[^\s@<>\r\n]+>?$/, 'is not a sender address')
      .optional(),
    {
      about: 'Sender of all mails: `Headgate <no-reply@example.com>`.',
      remedy: 'set it to Name <address>',
      chart: 'dashboard.smtp.from',
    },
  ),
  defaultPlan: setting(label.default('default'), {
    about: 'Plan of the Accounts that are created for people who sign up.',
    remedy: 'set it to the name of a Plan',
    chart: 'dashboard.defaultPlan',
  }),
  accountBilling: oneOf(['Prepaid', 'Unmetered'], {
    default: 'Unmetered',
    about: 'Billing of these Accounts. Prepaid: their keys answer 402 until a Credit is booked.',
    chart: 'dashboard.billing',
  }),
  keysNamespace: setting(label.default('headgate-accounts'), {
    about: 'Namespace of the keys that people make in the dashboard.',
    remedy: 'set it to the name of a namespace',
    chart: 'dashboard.keysNamespace',
  }),
  usageURL: setting(webURL, {
    about: "Base URL of the operator's usage interface.",
    remedy: 'set it to http://<Service of the usage>:9091',
    chart: BY_CHART,
  }),
  usageTokenFile: optionalText({
    about: 'File with a token of the ServiceAccount for the audience `headgate-usage`; it is read again at each question.',
    remedy: 'set it to the path of a projected token',
    chart: BY_CHART,
  }),
  billingCurrency: setting(
    z
      .string()
      .regex(/^[A-Z]{3}$/, 'is not a currency code')
      .default('USD'),
    {
      about: 'Currency of the installation, as the operator has it.',
      remedy: 'set it to three capital letters, such as EUR',
      chart: 'billing.currency',
    },
  ),
  billingLowBalance: setting(lowBalance.optional(), {
    about: 'A prepaid account with less than this amount has a low balance, which a mail reports; empty: none has. As the operator has it.',
    remedy: 'set it to a decimal number such as 5.00',
    chart: 'billing.lowBalance',
  }),
  payments: oneOf(['none', 'manual', 'stripe'], {
    default: 'none',
    about:
      'How people pay. `none` and `manual`: the page says whom to ask, and an administrator creates Credits. `stripe`: at Stripe, through the payments program.',
    chart: 'dashboard.payments.provider',
  }),
  paymentsURL: setting(webURL.optional(), {
    about: 'Base URL of the payments program, at its port for the dashboard. Needed with `stripe`.',
    remedy: 'set it to http://<Service of payments>:8092',
    chart: BY_CHART,
  }),
  paymentsToken: setting(z.string().min(MIN_SECRET, `is shorter than ${MIN_SECRET} characters`).optional(), {
    about: 'Shared with the payments program. Needed with `stripe`.',
    remedy: 'set it to at least 32 random characters, such as the output of `openssl rand -hex 24`',
    secret: true,
    chart: 'dashboard.payments.existingSecret',
  }),
  topUpAmounts: setting(z.string().default('10,25,50,100').transform(listOf).pipe(z.array(money).min(1).max(8)), {
    about: 'Amounts that the page offers, separated by commas, in the currency of the installation.',
    remedy: 'set it to amounts such as 10,25,50',
    chart: 'dashboard.payments.amounts',
  }),
  topUpLeast: setting(money.default('5'), {
    about: 'Least amount of one payment.',
    remedy: 'set it to an amount such as 5.00',
    chart: 'dashboard.payments.least',
  }),
  topUpMost: setting(money.default('1000'), {
    about: 'Largest amount of one payment.',
    remedy: 'set it to an amount such as 1000.00',
    chart: 'dashboard.payments.most',
  }),
  logLevel: logLevel(),
})

type Read = z.output<typeof DASHBOARD_SETTINGS>

export interface DashboardConfig extends Omit<Read, 'payments'> {
  readonly payments: PaymentSettings
  readonly auth: AuthSettings
  readonly database: DatabasePlace
  readonly smtp: SmtpSettings
  readonly from: string
}

/** @throws Misconfigured with one line per wrong setting */
export function loadConfig(env: NodeJS.ProcessEnv): DashboardConfig {
  const read = readEnv(DASHBOARD_SETTINGS, env)
  const { smtpHost, mailFrom, databaseFile, databaseURL } = read
  const place = databaseURL === undefined ? { file: databaseFile ?? '' } : { url: databaseURL }
  const problems = problemsOf(read)
  if (smtpHost === undefined || mailFrom === undefined || problems.length > 0) throw new Misconfigured(problems)
  const { smtpPort, smtpSecurity, smtpUsername, smtpPassword } = read
  return {
    ...read,
    auth: { origin: read.dashboardURL, secret: read.dashboardSecret, providers: providersOf(read), hasPasswords: read.localPasswords },
    database: place,
    smtp: { host: smtpHost, port: smtpPort, security: smtpSecurity, username: smtpUsername, password: smtpPassword },
    from: mailFrom,
    payments: paymentsOf(read),
  }
}

function paymentsOf({
  payments: provider,
  paymentsURL: url = '',
  paymentsToken: token = '',
  topUpAmounts,
  ...read
}: Read): PaymentSettings {
  if (provider !== 'stripe') return { provider }
  const micros = (text: string): Micros => parseMicros(text) ?? MAX_MICROS // the form was checked
  const amounts = topUpAmounts.toSorted((a, b) => micros(a) - micros(b))
  return { provider, url, token, amounts, least: micros(read.topUpLeast), most: micros(read.topUpMost) }
}

/** What the settings lack together. */
function problemsOf(read: Read): readonly string[] {
  const { smtpHost, mailFrom, databaseFile, databaseURL } = read
  return [
    ...(databaseURL === undefined && databaseFile === undefined
      ? ['DATABASE_FILE: is not set; set it to a file on a volume, or set DATABASE_URL']
      : []),
    ...(smtpHost === undefined
      ? ['SMTP_HOST: is not set, and nobody could verify an address; set it to the host name of an SMTP server']
      : []),
    ...(mailFrom === undefined ? ['MAIL_FROM: is not set; set it to Name <address>'] : []),
    ...(read.payments === 'stripe' && (read.paymentsURL === undefined || read.paymentsToken === undefined)
      ? ['PAYMENTS: stripe needs PAYMENTS_URL and PAYMENTS_TOKEN of the payments program; set both']
      : []),
    ...halfProvider('GITHUB', read.githubClientID, read.githubClientSecret),
    ...halfProvider('GOOGLE', read.googleClientID, read.googleClientSecret),
    ...(read.localPasswords || providersOf(read).length > 0
      ? []
      : ['LOCAL_PASSWORDS: is false, and no provider is set; nobody could sign in. Set a provider']),
  ]
}

function providersOf(read: Read): readonly ProviderSettings[] {
  const { githubClientID, githubClientSecret, githubURL, githubApiURL, googleClientID, googleClientSecret, googleIssuer } = read
  return [
    ...(githubClientID !== undefined && githubClientSecret !== undefined
      ? [
          {
            kind: 'github',
            id: 'github',
            name: 'GitHub',
            clientId: githubClientID,
            clientSecret: githubClientSecret,
            url: githubURL,
            apiURL: githubApiURL,
          } as const,
        ]
      : []),
    ...(googleClientID !== undefined && googleClientSecret !== undefined
      ? [
          {
            kind: 'oidc',
            id: 'google',
            name: 'Google',
            clientId: googleClientID,
            clientSecret: googleClientSecret,
            issuer: googleIssuer,
          } as const,
        ]
      : []),
    ...read.oidcProviders.map((provider) => ({ kind: 'oidc' as const, ...provider })),
  ]
}

function halfProvider(name: string, id: string | undefined, secret: string | undefined): readonly string[] {
  if ((id === undefined) === (secret === undefined)) return []
  return id === undefined
    ? [`${name}_CLIENT_ID: is not set beside ${name}_CLIENT_SECRET; set both or none`]
    : [`${name}_CLIENT_SECRET: is not set beside ${name}_CLIENT_ID; set both or none`]
}

function listOf(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

function parsedJSON(text: string, context: z.RefinementCtx): unknown {
  try {
    return JSON.parse(text)
  } catch {
    context.addIssue({ code: 'custom', message: 'is not JSON' })
    return z.NEVER
  }
}
