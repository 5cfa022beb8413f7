/** The texts that `make run` prints for its user. Pure. */
import { apiKeys } from '#api/resources.ts'
import type { ApiKey } from '#api/apikey.ts'
import { keyPolicy } from '#api/key-policy.ts'
import { formatAmount } from '#contract/values/micros.ts'
import { effective } from '#policy/effective.ts'
import { loadConfig, type StandaloneConfig } from './config.ts'

export interface StartFacts {
  readonly baseURL: string
  readonly manifests: string
  /** Names that clients can request now. */
  readonly models: readonly string[]
  /** ServedModels that cannot be called: `demo/llama (ServiceNotFound)`. */
  readonly unusable: readonly string[]
  /** Number of ApiKeys, and of usable ones. */
  readonly keys: { readonly total: number; readonly usable: number }
}

/** Maximum number of names in one line. */
const NAMED = 10

export function startBanner({ baseURL, manifests, models, unusable, keys }: StartFacts): string {
  const known = models.length === 0 ? 'no model can be called yet' : `models: ${listed(models)}`
  const lines = [
    `Headgate is running at ${baseURL}/v1 (${known}).`,
    ...(unusable.length === 0 ? [] : [`Not usable: ServedModel ${listed(unusable)}.`]),
    ...(models.length + unusable.length === 0 ? [`There is no ServedModel. Add one to ${manifests}.`] : []),
    ...keyLines(keys, manifests),
    `Edit the manifests in ${manifests}; changes take effect within a second.`,
    '`make status` lists all keys and models. Ctrl-C stops Headgate.',
  ]
  return `\n${lines.join('\n')}\n\n`
}

function keyLines({ total, usable }: StartFacts['keys'], manifests: string): readonly string[] {
  if (total === 0) return [`There is no ApiKey. Add one to ${manifests}.`]
  if (usable > 0) return []
  return [`No key can be used yet; the lines above say why. A command to paste appears here as soon as a key works.`]
}

/** A working key, and the data for a call with it. */
export interface ReadyKey {
  readonly baseURL: string
  readonly key: ApiKey
  /** Path relative to the folder in which `make run` was started. */
  readonly secretFile: string
  /** A model name that the key can request now. */
  readonly model: string
}

/**
 * A command to paste. It reads the key from its file, so the value is neither printed nor kept in a shell history. Only the owner of a key
 * with source.type Hash knows its value, and sets the variable.
 */
export function curlLine(ready: ReadyKey): string {
  const { namespace = '', name } = ready.key.metadata
  return `${apiKeys.kind} ${namespace}/${name} is ready:\n\n  curl ${argumentsOf(ready).join(' \\\n    ')}\n\n`
}

/** Maximum number of requests in a loop: a user waits for its end. */
const MAX_IN_LOOP = 200

/** The limits of a key, and a loop that reaches its requests per minute; '' for a key without limits. */
export function limitsLine(ready: ReadyKey): string {
  const { limits, budgets } = effective(keyPolicy(ready.key.spec))
  const { requestsPerMinute, tokensPerMinute, maxConcurrentRequests } = limits
  const parts = [
    ...(requestsPerMinute === undefined ? [] : [`${requestsPerMinute} requests a minute`]),
    ...(tokensPerMinute === undefined ? [] : [`${tokensPerMinute} tokens a minute`]),
    ...(maxConcurrentRequests === undefined ? [] : [`${maxConcurrentRequests} requests at a time`]),
    ...budgets.map(
      ({ name, amount, unit, window }) =>
        `budget ${name}: ${formatAmount(amount, unit)} ${unit === 'Tokens' ? 'tokens' : 'units of money'} (${window})`,
    ),
  ]
  if (parts.length === 0) return ''
  const line = `  Its limits: ${parts.join(', ')}.`
  if (requestsPerMinute === undefined || requestsPerMinute > MAX_IN_LOOP) return `${line}\n\n`
  const call = `curl -s -o /dev/null -w '%{http_code} ' ${argumentsOf(ready).join(' ')}`
  return `${line} This loop reaches them; the last answer is 429:\n\n  for i in $(seq ${requestsPerMinute + 1}); do ${call}; done; echo\n\n`
}

/** One line for keys without a command of their own. */
export function moreKeysLine(count: number): string {
  return `${count} more ${count === 1 ? 'key is' : 'keys are'} ready; \`make status\` lists them.\n\n`
}

export interface DashboardFacts {
  readonly url: string
  /** Plan that people who sign up need, and that is not there. */
  readonly missingPlan: string | undefined
  readonly payments: StandaloneConfig['payments']
}

/** Where people sign up, where their mails are, and how they pay. */
export function dashboardLines({ url, missingPlan, payments }: DashboardFacts): string {
  const lines = [
    `Dashboard: ${url}`,
    `  Sign up there; the mails to you are at ${url}/dev/mail.`,
    ...(payments === 'manual'
      ? [
          `  To top up an account: ${creditLine('ACCOUNT', 'ID')}`,
          '  The page Billing has this line with the name of the account. An id counts once.',
        ]
      : ['  Top up on the page Billing: it leads to a page that stands for Stripe, where nobody pays.']),
    ...(missingPlan === undefined
      ? []
      : [
          `  There is no Plan ${missingPlan}: keys of people who sign up are not issued. Add the Plan, as examples/standalone/plan.yaml does.`,
        ]),
  ]
  return `${lines.join('\n')}\n\n`
}

/** The command that adds money to an account. */
export function creditLine(account: string, id: string): string {
  return `node cli/main.ts credit add ${account} 10.00 --id ${id} --local`
}

/** The line after Ctrl-C. */
export const STOPPING = '\nStopping; running answers have 3 s to end. Ctrl-C again ends at once.\n'

export function stoppedLine(config: StandaloneConfig, stateFolder: string): string {
  return `Headgate has stopped. The keys keep their values in ${stateFolder}/secrets. Start again with: ${startCommand(config)}\n`
}

/** `make run` with the settings that differ from the default. */
function startCommand(config: StandaloneConfig): string {
  const usual = loadConfig({})
  const names = {
    PORT: 'port',
    HOST: 'host',
    MANIFESTS: 'manifests',
    REDIS_URL: 'redisURL',
    MODEL_URL: 'modelURL',
    DASHBOARD_PORT: 'dashboardPort',
    PAYMENTS: 'payments',
  } as const
  const changed = Object.entries(names).filter(([, name]) => config[name] !== usual[name])
  const shown = changed.map(([variable, name]) => `${variable}=${name === 'redisURL' ? '...' : quoted(String(config[name]))} `) // may hold a password
  return `${shown.join('')}make run`
}

/** A word of a POSIX shell. */
function quoted(text: string): string {
  return /^[\w./:@-]*[\w/][\w./:@-]*$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

function listed(names: readonly string[]): string {
  const rest = names.length - NAMED
  return rest > 0 ? `${names.slice(0, NAMED).join(', ')} and ${rest} more` : names.join(', ')
}

function argumentsOf({ baseURL, key, secretFile, model }: ReadyKey): string[] {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Good morning!' }] })
  return [
    `${baseURL}/v1/chat/completions`,
    `-H "Authorization: Bearer ${key.spec.source?.type === 'Hash' ? '$YOUR_KEY' : `$(cat ${secretFile})`}"`,
    "-H 'Content-Type: application/json'",
    `-d '${body}'`,
  ]
}
