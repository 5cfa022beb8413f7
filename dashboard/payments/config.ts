/** The settings of the payments program: one entry each. */
import { z } from 'zod'
import { LOG_LEVELS } from '#platform/log.ts'
import { BY_CHART, oneOf, port, readEnv, setting } from '#platform/settings.ts'

const webURL = z.url({ protocol: /^https?$/, error: 'is not an http(s) URL' }).transform((url) => url.replace(/\/+$/, ''))
const MIN_TOKEN = 32
const SECRET = 'dashboard.payments.existingSecret'

/** The settings by name, in the order of the documents. */
export const PAYMENTS_SETTINGS = z.object({
  port: port({ default: 8091, about: 'Port of `/webhooks/stripe`, where the provider sends events.', chart: BY_CHART }),
  checkoutPort: port({ default: 8092, about: 'Port for the dashboard; nobody else needs it.', chart: BY_CHART }),
  metricsPort: port({ default: 9090, about: 'Port of `/livez`, `/readyz` and `/metrics`.', chart: BY_CHART }),
  dashboardURL: setting(webURL, {
    about: 'Origin of the dashboard, to which people come back from the provider.',
    remedy: 'set it to https://<host of the dashboard>',
    chart: 'dashboard.url',
  }),
  installation: setting(
    z
      .string()
      .regex(/^[0-9A-Za-z._:/-]{1,100}$/, 'has other characters than letters, digits and . _ : / -')
      .optional(),
    {
      about: 'Mark of all payments of this installation at the provider; default: the host of the dashboard. Other marks are ignored.',
      remedy: 'set it to a short name, and keep it',
      chart: 'dashboard.payments.installation',
    },
  ),
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
  stripeSecretKey: setting(z.string().regex(/^(sk|rk)_(live|test)_\w{4,256}$/, 'is not a secret key of Stripe'), {
    about: 'Secret or restricted key of Stripe. A `live` key takes real money, a `test` key none.',
    remedy: 'set it to the key that begins with sk_ or rk_',
    secret: true,
    chart: SECRET,
  }),
  stripeWebhookSecret: setting(z.string().regex(/^whsec_[\w+/=]{16,256}$/, 'is not a signing secret of a webhook'), {
    about: 'Signing secret of the webhook at Stripe. Without it anybody could send events, so the program does not start.',
    remedy: 'set it to the secret that begins with whsec_',
    secret: true,
    chart: SECRET,
  }),
  paymentsToken: setting(z.string().min(MIN_TOKEN, `is shorter than ${MIN_TOKEN} characters`), {
    about: 'Shared with the dashboard, which asks for pages of the provider with it.',
    remedy: 'set it to at least 32 random characters, such as the output of `openssl rand -hex 24`',
    secret: true,
    chart: SECRET,
  }),
  stripeURL: setting(webURL.optional(), {
    about: "Another server than Stripe's, for tests.",
    remedy: 'unset it',
    chart: 'dashboard.payments.url',
  }),
  logLevel: oneOf(LOG_LEVELS, {
    default: 'info',
    about: 'Minimum log level.',
    chart: 'dashboard.settings.logLevel',
  }),
})

export interface PaymentsConfig extends Omit<z.output<typeof PAYMENTS_SETTINGS>, 'installation'> {
  readonly installation: string
  readonly isLive: boolean
}

/** @throws Misconfigured with one line per wrong setting */
export function loadConfig(env: NodeJS.ProcessEnv): PaymentsConfig {
  const read = readEnv(PAYMENTS_SETTINGS, env)
  const { installation = new URL(read.dashboardURL).host, stripeSecretKey } = read
  return { ...read, installation, isLive: /^.._live_/.test(stripeSecretKey) }
}
