/** The Service or the URL of a backend, from `litellm_params.api_base`. Pure. */
import { checkBackendUrl } from '#contract/values/backend-address.ts'
import type { Warn } from './limits.ts'
import type { Provider } from './providers.ts'
import { Refusal } from './read-keys.ts'

/** One of the two. */
export type Address = { readonly service: { readonly name: string; readonly port: number } } | { readonly url: string }

/** A Service by its name in the same namespace, or by its full name. */
const SERVICE = /^http:\/\/([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)(?:\.([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)\.svc(?:\.cluster\.local)?)?(?::(\d+))?$/
const LOCAL = /^https?:\/\/(localhost|127\.)/
const ADDRESS = 'write the address of the server in its place, or create the ServedModel by hand'

/** @throws Refusal */
export function addressOf(base: string | undefined, provider: Provider, namespace: string, warn: Warn): Address {
  if (base?.startsWith('os.environ/') === true)
    throw new Refusal(`api_base is the variable ${base.slice('os.environ/'.length, 80)}, whose value is not in the file`, ADDRESS)
  if (base === undefined && provider.url === undefined) throw new Refusal('the entry has no api_base', ADDRESS)
  const url = withoutVersion(base ?? provider.url ?? '', base !== undefined && provider.hasVersion, warn) + (provider.path ?? '')
  return serviceOf(url, namespace, warn) ?? { url: checked(url, warn) }
}

/** The gateway appends `/v1`. */
function withoutVersion(base: string, hasVersion: boolean, warn: Warn): string {
  const text = base.replace(/\/+$/, '').replace(/\/v1\/messages$/, '/v1')
  if (hasVersion && !text.endsWith('/v1'))
    warn('api_base does not end in /v1, and the gateway calls paths such as /v1/chat/completions below it')
  return text.replace(/\/v1$/, '').replace(/\/+$/, '')
}

function serviceOf(url: string, namespace: string, warn: Warn): Address | undefined {
  const [, name, place, port = '80'] = SERVICE.exec(url) ?? []
  if (name === undefined || name === 'localhost' || (place !== undefined && place !== namespace)) return undefined
  if (place === undefined) warn(`the host ${name} was taken for the Service ${name} of namespace ${namespace}`)
  return { service: { name, port: Number(port) } }
}

function checked(url: string, warn: Warn): string {
  const inCluster = checkBackendUrl(url, { allowLoopback: false, allowCluster: true })
  if (!inCluster.ok && !LOCAL.test(url)) throw new Refusal(`api_base: ${inCluster.reason}`, ADDRESS)
  if (!inCluster.ok) warn('api_base is an address of this machine: gateways in a cluster do not call it')
  else if (!checkBackendUrl(url, { allowLoopback: false }).ok)
    warn('api_base is an address inside the cluster: the chart value scope.clusterAddresses must list the namespace')
  return url
}
