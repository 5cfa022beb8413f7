/**
 * Decides which addresses a backend may have. Pure. The operator checks manifests with it; gateways check records, and again the address
 * that they connect to. A model server may have any address except on the pod itself, on its link, or where clouds serve credentials. Inside the
 * cluster a namespace reaches its own Services; a url to other addresses there needs the consent of the administrator.
 */
import { BlockList, isIP } from 'node:net'

/** Options of the check. */
export interface AddressRules {
  /** Whether loopback is allowed. Only standalone sets it; no setting of a cluster does. */
  readonly allowLoopback: boolean
  /** Whether names of the cluster and private addresses are allowed; where loopback is, they are too. Default: no. */
  readonly allowCluster?: boolean
}

/** The rules of all namespaces. */
export interface AddressPolicy {
  readonly allowLoopback: boolean
  /** Namespaces whose backends may have a url inside the cluster; `*` = all. Default: none. */
  readonly clusterNamespaces?: readonly string[]
}

/** @param namespace of the ServedModel */
export function rulesIn(namespace: string, { allowLoopback, clusterNamespaces = [] }: AddressPolicy): AddressRules {
  return { allowLoopback, allowCluster: clusterNamespaces.includes('*') || clusterNamespaces.includes(namespace) }
}

/** Result of a check: the parsed URL, or the error and its remedy, which are safe to show. */
export type AddressCheck = { readonly ok: true; readonly url: URL } | { readonly ok: false; readonly reason: string }

const LOOPBACK = blockList([['127.0.0.0', 8]]) // ::1 is in the ranges of EMBEDDED
/** Addresses outside the link-local ranges that serve cloud credentials: Alibaba, Oracle, Azure, AWS, Google. */
const METADATA = blockList([
  ['100.100.100.200', 32],
  ['192.0.0.192', 32],
  ['168.63.129.16', 32],
  ['fd00:ec2::', 32], // instance metadata, pod identity and other services of AWS
  ['fd20:ce::254', 128],
])

const LINK_LOCAL = blockList([
  ['169.254.0.0', 16],
  ['fe80::', 10],
])

const NOT_A_HOST = blockList([
  ['0.0.0.0', 8],
  ['224.0.0.0', 3], // multicast, reserved, broadcast
  ['::', 128],
  ['ff00::', 8],
])

/** IPv6 forms that contain an IPv4 address. The IPv4 form must be written instead, so that no address is hidden. */
const EMBEDDED = blockList([
  ['::ffff:0:0', 96],
  ['::ffff:0:0:0', 96],
  ['::', 96],
  ['2001::', 32], // Teredo
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['2002::', 16],
])

/** Where clusters, and the networks around them, have their addresses. */
const PRIVATE = blockList([
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['100.64.0.0', 10],
  ['198.18.0.0', 15],
  ['fc00::', 7],
])
const INSIDE = 'it is an address inside the cluster'

type Ranges = ReadonlyArray<readonly [ranges: BlockList, reason: string]>

const INSIDE_RANGES: Ranges = [[PRIVATE, INSIDE]]
const REFUSED_IPV4: Ranges = [
  [NOT_A_HOST, 'it is not the address of a host'],
  [LINK_LOCAL, 'it is a link-local address'],
  [METADATA, 'it is a metadata address'],
]
/** Separate list, because BlockList would match every IPv4 address against `::ffff:0:0/96`. */
const REFUSED_IPV6: Ranges = [...REFUSED_IPV4, [EMBEDDED, 'it hides an IPv4 address in an IPv6 one']]

/** Names without a dot, and of Services. Other names of a cluster show themselves by their addresses. */
const CLUSTER_NAME = /^[^.]*$|\.svc$|\.cluster\.local$/
const METADATA_NAMES = new Set(['metadata.google.internal', 'metadata.goog'])
const DOTTED_QUAD = /^\d{1,3}(\.\d{1,3}){3}$/
const AROUND_AUTHORITY = /^https?:\/\/([^/]*).*$/i

/** Conditions on the text of a URL, each with its error. The first error is reported. */
const FORM: ReadonlyArray<readonly [holds: (text: string) => boolean, reason: string]> = [
  [(text) => /^[\x21-\x5b\x5d-\x7e]+$/.test(text), 'it has characters that a URL does not have'],
  [(text) => URL.canParse(text), 'it is not a URL; write for example http://10.0.0.5:8000'],
  [(text) => /^https?:/i.test(text), 'its scheme is neither http nor https'],
  [(text) => /^https?:\/\//i.test(text), 'it must begin with http:// or https://'],
  [(text) => !/^https?:\/\/[^/?#]*@/i.test(text), 'it has user info; put the token into a Secret and name it in authSecretRef'],
  [(text) => !/[?#]/.test(text), 'it has a query or a fragment; only a path may follow the host'],
]
const ENDPOINT = /^(?:\[[0-9a-f:.]+\]|[a-z0-9][a-z0-9.-]*):[1-9]\d{0,4}$/i

/**
 * Checks an IP address.
 * @param address without brackets, port or zone
 * @returns why it is refused; undefined if it may be called
 */
export function refuseAddress(address: string, rules: AddressRules): string | undefined {
  const family = isIP(address)
  if (family === 0 || address.includes('%')) return 'it is not an IP address'
  const type = family === 6 ? 'ipv6' : 'ipv4'
  const isLoopback = type === 'ipv4' ? LOOPBACK.check(address, type) : shortest(address) === '::1'
  if (isLoopback) return rules.allowLoopback ? undefined : 'it is a loopback address'
  const ranges = family === 6 ? REFUSED_IPV6 : REFUSED_IPV4
  return [...ranges, ...(mayCallCluster(rules) ? [] : INSIDE_RANGES)].find(([list]) => list.check(address, type))?.[1]
}

/**
 * Checks the base URL of a manifest without a look-up. The addresses of a name are checked again when a connection is opened.
 * @param text for example `https://models.example.com/base`; everything before `/v1`
 */
export function checkBackendUrl(text: string, rules: AddressRules): AddressCheck {
  const error = FORM.find(([holds]) => !holds(text))?.[1]
  if (error !== undefined) return refuse(error)
  const url = new URL(text)
  const reason = refuseHost(url.hostname, text.replace(AROUND_AUTHORITY, '$1'), rules)
  return reason === undefined ? { ok: true, url } : refuse(reason)
}

/**
 * Checks an endpoint of an EndpointSlice or a Service name, which are inside the cluster, and builds its origin.
 * @param text `10.1.2.3:8000`, `[fd00::1]:8000` or `llama.shop.svc:8000`
 */
export function checkEndpoint(text: string, rules: AddressRules): AddressCheck {
  return ENDPOINT.test(text) ? checkBackendUrl(`http://${text}`, { ...rules, allowCluster: true }) : refuse('it is not <address>:<port>')
}

function refuseHost(hostname: string, authority: string, rules: AddressRules): string | undefined {
  if (hostname.startsWith('[')) return refuseAddress(hostname.slice(1, -1), rules)
  if (isIP(hostname) === 4) {
    const written = authority.replace(/:\d*$/, '')
    // The URL parser turns 2130706433, 0x7f.1 and 0177.0.0.1 into addresses. Such spellings only serve to hide an address.
    if (!DOTTED_QUAD.test(written) || written !== hostname) return 'its host is a number; write the address with four decimal parts'
    return refuseAddress(hostname, rules)
  }
  return refuseName(hostname.replace(/\.+$/, '').toLowerCase(), rules)
}

function refuseName(name: string, rules: AddressRules): string | undefined {
  if (name === '') return 'it has no host'
  if (name === 'localhost' || name.endsWith('.localhost')) return rules.allowLoopback ? undefined : 'its host is localhost'
  if (METADATA_NAMES.has(name)) return 'its host is a metadata server'
  return mayCallCluster(rules) || !CLUSTER_NAME.test(name) ? undefined : INSIDE
}

function mayCallCluster({ allowLoopback, allowCluster }: AddressRules): boolean {
  return allowLoopback || allowCluster === true
}

function refuse(reason: string): AddressCheck {
  return { ok: false, reason }
}

/** RFC 5952 form of an IPv6 address. */
function shortest(address: string): string {
  return new URL(`http://[${address}]`).hostname.slice(1, -1)
}

function blockList(nets: ReadonlyArray<readonly [net: string, prefix: number]>): BlockList {
  const list = new BlockList()
  for (const [net, prefix] of nets) list.addSubnet(net, prefix, net.includes(':') ? 'ipv6' : 'ipv4')
  return list
}
