/** A ModelRecord made ready for requests: addresses judged, origins and paths built once. */
import { checkBackendUrl, checkEndpoint, type AddressRules } from '../shared/backend-address.ts'
import type { BackendRecord, ModelRecord, StreamUsage } from '../shared/model-record.ts'
import { EndpointHealth } from './backend-health.ts'
import { poolID, type PoolID } from './upstream-pools.ts'

/** One server that a request can be sent to. */
export interface Target {
  /** For example `http://10.1.2.3:8000`. */
  readonly origin: string
  /** Of its connections. */
  readonly pool: PoolID
  /** Path in front of `/v1`, without a slash at its end. */
  readonly prefix: string
  readonly health: EndpointHealth
  readonly backend: BackendEntry
}

/** One backend of a model. */
export interface BackendEntry {
  readonly name: string
  /** `<model uid>/<backend name>`, as heartbeats name it. */
  readonly id: string
  readonly weight: number
  /** Speaks the Anthropic Messages API itself. */
  readonly isNative: boolean
  readonly streamUsage: StreamUsage
  /** The name that the server knows the model by. */
  readonly upstreamModel: string
  /** SHA-256 of the credential that the server wants, and of the one before it; null without one. */
  readonly credential: { readonly sum: string; readonly former: string | null } | null
  /** The servers that may be called; those with a refused address are left out. */
  readonly targets: readonly Target[]
  /** Servers that the record names, refused ones included. */
  readonly total: number
}

/** One ServedModel as requests use it. */
export interface ModelEntry {
  readonly record: ModelRecord
  /** Served name and aliases. */
  readonly names: readonly string[]
  readonly backends: readonly BackendEntry[]
  /** Some backend with a weight serves `/v1/messages`. */
  readonly hasNative: boolean
  /** Whether keys of a namespace may use it. */
  admits(namespace: string): boolean
}

/**
 * Makes an entry.
 * @param previous the entry that it replaces: endpoints that stay keep what is known of their health
 */
export function modelEntry(record: ModelRecord, rules: AddressRules, previous: ModelEntry | undefined): ModelEntry {
  const known = new Map<string, EndpointHealth>()
  for (const target of targetsOf(previous)) known.set(`${target.backend.id} ${target.origin}`, target.health)
  const backends = record.backends.map((backend) => backendEntry(record.uid, backend, { rules, known, namespace: record.namespace }))
  const allowed = record.allowedNamespaces === '*' ? undefined : new Set(record.allowedNamespaces)
  return {
    record,
    names: [...new Set([record.servedName, ...record.aliases])],
    backends,
    hasNative: backends.some((backend) => backend.isNative && backend.weight > 0),
    admits: (namespace) => namespace === record.namespace || allowed === undefined || allowed.has(namespace),
  }
}

/** All targets of an entry, over its backends. */
export function targetsOf(entry: ModelEntry | undefined): Target[] {
  return entry === undefined ? [] : entry.backends.flatMap((backend) => backend.targets)
}

interface Surroundings {
  readonly rules: AddressRules
  readonly known: ReadonlyMap<string, EndpointHealth>
  readonly namespace: string
}

function backendEntry(uid: string, record: BackendRecord, { rules, known, namespace }: Surroundings): BackendEntry {
  const id = `${uid}/${record.name}`
  const addresses = addressesOf(record)
  const targets: Target[] = []
  const backend: BackendEntry = {
    name: record.name,
    id,
    weight: record.weight,
    isNative: record.messages === 'Native',
    streamUsage: record.streamUsage ?? 'Inject',
    upstreamModel: record.upstreamModel,
    credential: record.credentialSum === null ? null : { sum: record.credentialSum, former: record.formerCredentialSum },
    targets,
    total: addresses.length,
  }
  for (const address of addresses) {
    const judged = record.url === null ? checkEndpoint(address, rules) : checkBackendUrl(address, rules)
    if (!judged.ok) continue
    const { origin, pathname } = judged.url
    const health = known.get(`${id} ${origin}`) ?? new EndpointHealth(...hostAndPort(judged.url), namespace)
    targets.push({ origin, pool: poolID(origin, namespace), prefix: pathname.replace(/\/+$/, ''), health, backend })
  }
  return backend
}

/** Endpoints come first; a record from the cold start has none and names the Service itself. */
function addressesOf({ url, endpoints, service }: BackendRecord): readonly string[] {
  if (url !== null) return [url]
  if (endpoints.length > 0 || service === null) return endpoints
  return [service]
}

function hostAndPort(url: URL): [host: string, port: number] {
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
  return [host, url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)]
}
