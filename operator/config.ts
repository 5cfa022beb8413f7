/** The settings of the operator: one entry each. */
import { z } from 'zod'
import { BY_CHART, flag, logLevel, optionalFlag, optionalText, port, readEnv, seconds, setting, wholeNumber } from '#platform/settings.ts'
import { REDIS_SETTINGS, redisSettings } from '#platform/settings.ts'
import { Misconfigured } from '#platform/lifecycle.ts'
import type { RedisSettings } from '#platform/redis-connection.ts'
import { label, namesOf } from '#contract/values/namespace-list.ts'
import { parseMicros } from '#contract/values/micros.ts'
import type { RetirementRule } from './kinds/apikey/retirement.ts'
import type { LeaseTimes } from '#kube/leader.ts'

const LEASE_REMEDY = 'keep duration > renew > 1.2 × retry'

/** The settings by name, in the order of the documents. The variable of `keyringShards` is `KEYRING_SHARDS`. */
export const OPERATOR_SETTINGS = z.object({
  namespace: setting(label, {
    about: 'The namespace of the operator: Lease, keyring and gateways live there.',
    remedy: 'set it by the downward API (metadata.namespace)',
    chart: BY_CHART,
  }),
  podName: setting(z.string().min(1).max(253), {
    about: 'Name of this pod, for the Lease and Events.',
    remedy: 'set it by the downward API (metadata.name)',
    chart: BY_CHART,
  }),
  ...REDIS_SETTINGS,
  keyringShards: wholeNumber(1, 1024, {
    default: 64,
    about: 'Number of Secrets of the keyring; the same as the gateways mount.',
    chart: 'keyring.shards',
  }),
  publicURL: setting(z.url({ protocol: /^https?$/, error: 'is not an http(s) URL' }).transform(baseURL), {
    about: 'Base URL of the gateways as clients reach them, without /v1; user Secrets are made of it.',
    remedy: 'set it to http(s)://<host> without /v1',
    chart: 'gateway.publicURL',
  }),
  gatewayService: setting(label.default('headgate-gateway'), {
    about: 'Service of the gateways in NAMESPACE; its endpoints are the pods that must acknowledge.',
    remedy: 'set it to the name of that Service',
    chart: BY_CHART,
  }),
  watchNamespaces: setting(namesOf(), {
    about: 'Namespaces to watch, separated by commas; empty: all.',
    remedy: 'list names of namespaces',
    chart: 'scope.watchNamespaces',
  }),
  formerNamespaces: setting(namesOf(), {
    about: 'Namespaces to give up, which were watched before, separated by commas: their ApiKeys are released and their keys revoked.',
    remedy: 'list names of namespaces',
    chart: 'scope.formerNamespaces',
  }),
  namespaceLabels: optionalFlag({
    about: 'Whether labels of namespaces are read, for allowedNamespaces with a selector; empty: if all namespaces are watched.',
    chart: 'scope.namespaceLabels',
  }),
  maxApiKeysPerNamespace: wholeNumber(1, 1_000_000, {
    default: 2_000,
    about: 'Maximum number of ApiKeys in one namespace, including those deleted within the last 24 hours.',
  }),
  maxModelBytesPerNamespace: wholeNumber(8_192, 1_073_741_824, {
    default: 2_097_152,
    about: 'Maximum bytes of model names in spec.models of all ApiKeys in one namespace; the keyring holds 16 MiB.',
  }),
  maxServedModelsPerNamespace: wholeNumber(1, 1_000_000, { default: 200, about: 'Maximum number of ServedModels in one namespace.' }),
  publishingNamespaces: setting(namesOf('*'), {
    about: 'Namespaces whose ServedModels other namespaces may use, separated by commas; * = any; empty: NAMESPACE.',
    remedy: 'list names of namespaces, or *',
    chart: 'scope.publishers',
  }),
  clusterAddressNamespaces: setting(namesOf('*'), {
    about: 'Namespaces whose ServedModels may have a url inside the cluster, separated by commas; * = any; empty: none.',
    remedy: 'list names of namespaces, or *',
    chart: 'scope.clusterAddresses',
  }),
  accounts: optionalFlag({
    about:
      'Whether Plans, Accounts and Credits are watched, for which the operator needs a ClusterRole; empty: if all namespaces are watched.',
    chart: 'accounts.enabled',
  }),
  accountRequiredNamespaces: setting(namesOf('*'), {
    about: 'Namespaces whose new ApiKeys need an account, separated by commas; * = all; empty: none.',
    remedy: 'list names of namespaces, or *',
    chart: 'accounts.requiredIn',
  }),
  keysNamespace: optionalText({
    about: 'Namespace of the keys that people make in the dashboard; empty: there is none.',
    remedy: 'set it to the name of a namespace',
    chart: 'dashboard.keysNamespace',
  }),
  removeRevokedAfterDays: wholeNumber(1, 3_650, {
    default: 90,
    about: 'Days after which the ApiKey of a revoked key is deleted, if a person made it in the dashboard. Its usage stays.',
    chart: 'accounts.removeRevokedAfterDays',
  }),
  billingCurrency: setting(
    z
      .string()
      .regex(/^[A-Z]{3}$/, 'is not a currency code')
      .default('USD'),
    {
      about:
        'The one currency of all prices, budgets and Credits, three capital letters. Kept since the first start; nothing is converted.',
      remedy: 'set it to three capital letters, such as EUR',
      chart: 'billing.currency',
    },
  ),
  billingLowBalance: setting(amountOfMoney().optional(), {
    about: 'A prepaid account with less than this amount has a low balance, which an Event reports; empty: none has.',
    remedy: 'set it to a decimal number such as 5.00',
    chart: 'billing.lowBalance',
  }),
  unprovenHashNamespaces: setting(namesOf('*'), {
    about: 'Namespaces whose ApiKeys may have source.hash without a proof, separated by commas; * = all; empty: none.',
    remedy: 'list names of namespaces, or *',
    chart: 'scope.unprovenHashes',
  }),
  redisTakeOver: flag({
    default: false,
    about: 'true: replace the projection of another installation in this Redis. Set it once, after a disaster.',
    chart: 'redis.takeOver',
  }),
  revocationWaitSeconds: seconds({ default: 30, about: 'Longest wait for the gateways before a deleted ApiKey is removed.' }),
  metricsPort: port({ default: 9090, about: 'Port of /livez, /readyz and /metrics.', chart: BY_CHART }),
  usagePort: port({ default: 9091, about: 'Port of the usage of accounts.', chart: BY_CHART }),
  logLevel: logLevel(),
  leaseDurationSeconds: seconds({
    default: 15,
    about: 'A standby takes over when the Lease stood still for this long.',
    remedy: LEASE_REMEDY,
    chart: 'operator.lease.durationSeconds',
  }),
  leaseRenewSeconds: seconds({
    default: 10,
    about: 'The leader gives up when it could not renew for this long.',
    remedy: LEASE_REMEDY,
    chart: 'operator.lease.renewSeconds',
  }),
  leaseRetrySeconds: seconds({
    default: 2,
    about: 'Time between two tries of the election.',
    remedy: LEASE_REMEDY,
    chart: 'operator.lease.retrySeconds',
  }),
})

const DAY_MS = 86_400_000

/** The parsed settings, and what follows from them. Lists of namespaces: empty = all; `*` = any. */
export interface OperatorConfig extends z.output<typeof OPERATOR_SETTINGS> {
  readonly redis: RedisSettings
  /** Whether Namespaces are watched for their labels. */
  readonly readsNamespaces: boolean
  /** Whether Plans, Accounts and Credits are watched. */
  readonly hasAccounts: boolean
  readonly revocationWaitMs: number
  /** Which ApiKeys of revoked keys are deleted, and when; undefined: none. */
  readonly retirement: RetirementRule | undefined
  readonly leaseTimes: LeaseTimes
}

/** @throws Misconfigured with one line per error */
export function loadConfig(env: NodeJS.ProcessEnv): OperatorConfig {
  const read = readEnv(OPERATOR_SETTINGS, env)
  return {
    ...read,
    redis: redisSettings(read),
    readsNamespaces: read.namespaceLabels ?? read.watchNamespaces.length === 0,
    hasAccounts: read.accounts ?? read.watchNamespaces.length === 0,
    publishingNamespaces: read.publishingNamespaces.length === 0 ? [read.namespace] : read.publishingNamespaces,
    revocationWaitMs: read.revocationWaitSeconds * 1000,
    retirement: retirementOf(read),
    leaseTimes: leaseTimes(read),
  }
}

function retirementOf({ keysNamespace, removeRevokedAfterDays }: z.output<typeof OPERATOR_SETTINGS>): RetirementRule | undefined {
  return keysNamespace === undefined ? undefined : { namespace: keysNamespace, afterMs: removeRevokedAfterDays * DAY_MS }
}

function leaseTimes(read: z.output<typeof OPERATOR_SETTINGS>): LeaseTimes {
  const { leaseDurationSeconds, leaseRenewSeconds, leaseRetrySeconds } = read
  if (!(leaseDurationSeconds > leaseRenewSeconds && leaseRenewSeconds > leaseRetrySeconds * 1.2)) {
    throw new Misconfigured(
      'LEASE_DURATION_SECONDS > LEASE_RENEW_SECONDS > 1.2 × LEASE_RETRY_SECONDS must hold; raise the first or lower the last',
    )
  }
  return { durationMs: leaseDurationSeconds * 1000, renewMs: leaseRenewSeconds * 1000, retryMs: leaseRetrySeconds * 1000 }
}

/** Without a slash and without /v1 at the end. */
function baseURL(url: string): string {
  return url.replace(/\/+$/, '').replace(/\/v1$/, '')
}

/** An amount of money, in micro-units. */
function amountOfMoney() {
  return z
    .string()
    .refine((text) => parseMicros(text) !== undefined, 'is not an amount of money')
    .transform((text) => parseMicros(text))
}
