/** The Secret of a backend, from `litellm_params.api_key`. Pure: no value of a credential leaves this file. */
import type { Address } from './backend-url.ts'
import type { Warn } from './limits.ts'
import { dnsName } from './names.ts'
import type { Provider } from './providers.ts'

/** A Secret that the user makes. */
export interface CredentialNeed {
  readonly secret: string
  /** The variable of LiteLLM with the value; undefined: the file has the value. */
  readonly variable: string | undefined
  /** Entry of the annotation `headgate.dev/upstream-hosts`; undefined for a Service. */
  readonly host: string | undefined
}

/** Values that people write because LiteLLM wants one, where the server needs none. */
const NONE: ReadonlySet<string> = new Set([
  'none',
  'empty',
  'dummy',
  'fake',
  'fake-key',
  'anything',
  'no-key',
  'not-needed',
  'sk-none',
  'sk-1234',
])
const VARIABLE = 'os.environ/'

interface Backend {
  readonly provider: Provider
  readonly address: Address
  /** Of the Secret, where no variable names it. */
  readonly name: string
}

/** @returns undefined for a server that needs none */
export function credentialOf(
  { api_key: value, api_base: base }: { readonly api_key?: string | undefined; readonly api_base?: string | undefined },
  { provider, address, name }: Backend,
  warn: Warn,
): CredentialNeed | undefined {
  const host = hostOf(address)
  const variable = value === undefined ? defaultVariable(provider, base) : variableIn(value)
  if (variable !== undefined) return { secret: dnsName(variable) ?? name, variable, host }
  if (value === undefined || NONE.has(value.toLowerCase())) return undefined
  warn('THE FILE HOLDS THE CREDENTIAL of a server: put it into the Secret, and delete the file when the import is done')
  return { secret: `litellm-${name}`, variable: undefined, host }
}

function variableIn(value: string): string | undefined {
  const name = value.startsWith(VARIABLE) ? value.slice(VARIABLE.length) : ''
  return /^[A-Za-z_]\w{0,127}$/.test(name) ? name : undefined
}

/** LiteLLM takes the variable of the provider. It is no credential for a server of your own that speaks the provider's format. */
function defaultVariable({ variable, url }: Provider, base: string | undefined): string | undefined {
  return base === undefined || url === undefined || `${base}/`.startsWith(`${url}/`) ? variable : undefined
}

function hostOf(address: Address): string | undefined {
  if (!('url' in address)) return undefined
  const { protocol, host, origin } = new URL(address.url)
  return protocol === 'https:' || /\.svc(\.cluster\.local)?(:\d+)?$/.test(host) ? host : origin
}
