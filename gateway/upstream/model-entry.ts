/** Prepares a ModelRecord for requests: checks addresses, and builds origins and paths once. */
import { checkBackendUrl, checkEndpoint, type AddressRules } from '#contract/values/backend-address.ts'
import type { BackendRecord, ModelRecord, StreamUsage } from '#contract/records/model-record.ts'
import { namedModel, type NamedModel } from '#policy/model-names.ts'
import { EndpointHealth } from './backend-health.ts'

export interface Target {
  /** Path before `/v1`, without a slash at its end. */
  readonly prefix: string
  readonly health: EndpointHealth
  readonly backend: BackendEntry
}

export interface BackendEntry {
  readonly name: string
  /** `<model uid>/<backend name>`, as in heartbeats. */
  readonly id: string
  readonly weight: number
  readonly isNative: boolean
  readonly streamUsage: StreamUsage
  readonly upstreamModel: string
  /** SHA-256 of the credential of the server, and of the one before; null if it needs none. */
  readonly credential: { readonly sum: string; readonly former: string | null } | null
  /** The servers that may be called, without those with a refused address. */
  readonly targets: readonly Target[]
  /** Number of servers in the record, including refused ones. */
  readonly total: number
}

export interface ModelEntry extends NamedModel {
  readonly record: ModelRecord
  readonly backends: readonly BackendEntry[]
  readonly hasNative: boolean
}

/** Makes an entry. @param previous the entry that it replaces: endpoints that stay keep their health */
export function modelEntry(record: ModelRecord, rules: AddressRules, previous: ModelEntry | undefined): ModelEntry {
  const known = new Map<string, EndpointHealth>()
  for (const target of targetsOf(previous)) known.set(`${target.backend.id} ${target.health.origin}`, target.health)
  const backends = record.backends.map((backend) => backendEntry(record, backend, rules, known))
  return {
    ...namedModel(record),
    record,
    backends,
    hasNative: backends.some((backend) => backend.isNative && backend.weight > 0),
  }
}

export function targetsOf(entry: ModelEntry | undefined): Target[] {
  return entry === undefined ? [] : entry.backends.flatMap((backend) => backend.targets)
}

function backendEntry(
  { uid, namespace }: ModelRecord,
  record: BackendRecord,
  rules: AddressRules,
  known: ReadonlyMap<string, EndpointHealth>,
): BackendEntry {
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
    const checked = record.url === null ? checkEndpoint(address, rules) : checkBackendUrl(address, rules)
    if (!checked.ok) continue
    const { origin, pathname } = checked.url
    const health = known.get(`${id} ${origin}`) ?? new EndpointHealth(origin, namespace)
    targets.push({ prefix: pathname.replace(/\/+$/, ''), health, backend })
  }
  return backend
}

/** Lists the addresses of a backend: its endpoints, else the Service itself, since a record of a cold start has no endpoints. */
function addressesOf({ url, endpoints, service }: BackendRecord): readonly string[] {
  if (url !== null) return [url]
  if (endpoints.length > 0 || service === null) return endpoints
  return [service]
}
