/** All ServedModels in the memory of this process, by name, prepared for requests: addresses are checked, origins and paths built once. */
import { type AddressPolicy, type AddressRules, checkBackendUrl, checkEndpoint, rulesIn } from '#contract/values/backend-address.ts'
import { type Engine, ENGINES, REPORTS_ONE_ANSWER } from '#contract/values/call-routes.ts'
import { forwardableHeaders, refusalOfCredentialHeader, refusalOfHeader } from '#contract/values/forward-headers.ts'
import { isProven } from '#contract/records/credential-proof.ts'
import { hasUnmetNeeds, readWithoutNeeds } from '#contract/records/format.ts'
import { type BackendRecord, decodeModelRecord, type ModelRecord, type StreamUsage } from '#contract/records/model-record.ts'
import { ModelNames, namedModel, type NamedModel } from '#policy/model-names.ts'
import { folded } from '../dialects/request-shape.ts'
import type { RecordLoad, RecordTable } from '../projection/projection-source.ts'
import { EndpointHealth } from './backend-health.ts'

export interface Target {
  /** Path before `/v1`, without a slash at its end. */
  readonly prefix: string
  readonly health: EndpointHealth
  readonly backend: BackendEntry
}

/** The credential of a backend, and the one before, as the record names them. */
export interface WantedCredential {
  /** SHA-256 of the value. */
  readonly sum: string
  readonly former: string | null
  /** Whether a value may be sent to the addresses of the backend. */
  isFor(value: string, which: 'newest' | 'former'): boolean
}

/** The headers of a backend's own in each request. */
export interface OwnHeaders {
  /** Of the credential, in lower case; with the text before the credential. */
  readonly credential: string
  readonly prefix: string
  /** Fixed ones: name, value, name, value … */
  readonly fixed: readonly string[]
  /** All of these names: a client cannot add another value. */
  readonly names: ReadonlySet<string>
}

export interface BackendEntry {
  readonly name: string
  /** `<model uid>/<backend name>`, as in heartbeats. */
  readonly id: string
  readonly weight: number
  /** The program of its servers; `Other` for one that this gateway does not know. */
  readonly engine: Engine
  /** Whether its servers report the tokens of one answer where a request has several. */
  readonly reportsOneAnswer: boolean
  /** Paths behind `/v1/` that its servers serve. */
  readonly routes: ReadonlySet<string>
  readonly streamUsage: StreamUsage
  readonly upstreamModel: string
  /** null if its servers need none. */
  readonly credential: WantedCredential | null
  readonly headers: OwnHeaders
  /** The servers that may be called, without those with a refused address. */
  readonly targets: readonly Target[]
  /** Number of servers in the record, including refused ones. */
  readonly total: number
}

export interface ModelEntry extends NamedModel {
  readonly record: ModelRecord
  readonly backends: readonly BackendEntry[]
  /** Routes that a backend with a share of the requests serves. */
  readonly routes: ReadonlySet<string>
  /** Request headers that its servers get beside the usual ones, in lower case; undefined for none. */
  readonly forwardHeaders: ReadonlySet<string> | undefined
  /** Top-level fields that are refused, in lower case; undefined for none. */
  readonly refusedFields: ReadonlySet<string> | undefined
  /** Whether tenants of several namespaces may call it. */
  readonly isShared: boolean
}

export interface VisibleModel {
  readonly name: string
  readonly entry: ModelEntry
}

const MAX_REMEMBERED = 1_000

/** The models; the follower of the projection fills it. */
export class ModelTable implements RecordTable {
  readonly #rules: AddressPolicy
  readonly #entries = new Map<string, ModelEntry>()
  readonly #names = new ModelNames<ModelEntry>()
  /** Lists by namespace, until a model changes that the namespace may use: building one means to sort and resolve thousands of names. */
  readonly #visible = new Map<string, readonly VisibleModel[]>()

  constructor(rules: AddressPolicy) {
    this.#rules = rules
  }

  resolve(namespace: string, name: string): ModelEntry | undefined {
    return this.#names.resolve(namespace, name)
  }

  /** Every name that `resolve` answers for a namespace, sorted. The array stays the same object until one of these models changes. */
  visible(namespace: string): readonly VisibleModel[] {
    const known = this.#visible.get(namespace)
    if (known) return known
    const found: VisibleModel[] = []
    for (const name of [...this.#names.names].sort()) {
      const entry = this.resolve(namespace, name)
      if (entry !== undefined) found.push({ name, entry })
    }
    if (this.#visible.size >= MAX_REMEMBERED) this.#visible.clear()
    this.#visible.set(namespace, found)
    return found
  }

  entries(): Iterable<ModelEntry> {
    return this.#entries.values()
  }

  put(uid: string, text: string): boolean {
    const read = this.#read(uid, text)
    const entry = read ?? unprogrammed(text, this.#rules, this.#entries.get(uid))
    if (entry === undefined) return false
    const isOlder = entry.record.revision < (this.#entries.get(uid)?.record.revision ?? 0) // batches of a load and the log overlap
    if (!isOlder) this.delete(uid)
    if (!isOlder) this.#add(uid, entry)
    return read !== undefined
  }

  delete(uid: string): void {
    const entry = this.#entries.get(uid)
    if (entry === undefined) return
    this.#entries.delete(uid)
    this.#outdate(entry)
    this.#names.delete(entry)
    for (const target of targetsOf(entry)) target.health.isRetired = true
  }

  has(uid: string): boolean {
    return this.#entries.has(uid)
  }

  load(): RecordLoad {
    const entries = new Map<string, ModelEntry>()
    return {
      put: (uid, text) => {
        const entry = this.#read(uid, text)
        const former = entries.get(uid) ?? this.#entries.get(uid)
        const kept = entry ?? unprogrammed(text, this.#rules, former) ?? former
        if (kept !== undefined) entries.set(uid, kept)
        return entry !== undefined
      },
      delete: (uid) => void entries.delete(uid),
      commit: () => {
        for (const uid of [...this.#entries.keys()]) this.delete(uid)
        for (const [uid, entry] of entries) this.#add(uid, entry)
      },
    }
  }

  #add(uid: string, entry: ModelEntry): void {
    this.#entries.set(uid, entry)
    this.#names.add(entry)
    this.#outdate(entry)
    for (const target of targetsOf(entry)) target.health.isRetired = false
  }

  /** A tenant who edits a model all the time must not cost the lists of all others. */
  #outdate(entry: ModelEntry): void {
    for (const namespace of [...this.#visible.keys()]) if (entry.admits(namespace)) this.#visible.delete(namespace)
  }

  #read(uid: string, text: string): ModelEntry | undefined {
    try {
      return modelEntry(decodeModelRecord(text), this.#rules, this.#entries.get(uid))
    } catch {
      return undefined // of a newer version or damaged: the caller reports the record in its heartbeat, and the last good one stays
    }
  }
}

/**
 * A model whose record needs what this version lacks: the names of the model stay, and none of its servers is called, so its calls answer 503.
 * The former record may send to the servers what the new record forbids.
 * @param former the last good entry @returns undefined if the record has no such need
 */
function unprogrammed(text: string, policy: AddressPolicy, former: ModelEntry | undefined): ModelEntry | undefined {
  if (!hasUnmetNeeds(text)) return undefined
  const record = readWithoutNeeds(text, decodeModelRecord)
  const entry = record ? modelEntry(record, policy, undefined) : former
  return entry && { ...entry, backends: entry.backends.map((backend) => ({ ...backend, targets: [] })) }
}

/** Makes an entry. @param previous the entry that it replaces: endpoints that stay keep their health */
export function modelEntry(record: ModelRecord, policy: AddressPolicy, previous: ModelEntry | undefined): ModelEntry {
  const known = new Map<string, EndpointHealth>()
  for (const target of targetsOf(previous)) known.set(`${target.backend.id} ${target.health.origin}`, target.health)
  const rules = rulesIn(record.namespace, policy)
  const backends = record.backends.map((backend) => backendEntry(record, backend, rules, known))
  return {
    ...namedModel(record),
    record,
    backends,
    routes: new Set(backends.flatMap(({ routes, weight }) => (weight > 0 ? [...routes] : []))),
    forwardHeaders: record.forwardHeaders && new Set(forwardableHeaders(record.forwardHeaders)),
    refusedFields: record.refusedFields && new Set(record.refusedFields.map(folded)),
    isShared: record.allowedNamespaces === '*' || record.allowedNamespaces.some((name) => name !== record.namespace),
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
  const engine = ENGINES.find((known) => known === record.engine) ?? 'Other'
  const targets: Target[] = []
  const backend: BackendEntry = {
    name: record.name,
    id,
    weight: record.weight,
    engine,
    reportsOneAnswer: REPORTS_ONE_ANSWER.has(engine),
    routes: new Set(record.routes),
    streamUsage: record.streamUsage ?? 'Inject',
    upstreamModel: record.upstreamModel,
    credential: wantedCredential(uid, record),
    headers: ownHeaders(record),
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

/** Leaves out what the operator would not have written: others may write records too. */
export function ownHeaders(record: Pick<BackendRecord, 'credentialHeader' | 'credentialScheme' | 'headers'>): OwnHeaders {
  const { credentialHeader = 'authorization', credentialScheme = 'Bearer', headers = [] } = record
  const credential = refusalOfCredentialHeader(credentialHeader) === undefined ? credentialHeader.toLowerCase() : 'authorization'
  const fixed = new Map<string, string>()
  for (const { name, value } of headers) if (refusalOfHeader(name) === undefined) fixed.set(name.toLowerCase(), value)
  fixed.delete(credential)
  const prefix = credentialScheme === '' ? '' : `${credentialScheme} `
  return { credential, prefix, fixed: [...fixed].flat(), names: new Set([credential, ...fixed.keys()]) }
}

function wantedCredential(uid: string, record: BackendRecord): WantedCredential | null {
  const { credentialSum, formerCredentialSum, credentialProof, formerCredentialProof } = record
  if (credentialSum === null) return null
  return {
    sum: credentialSum,
    former: formerCredentialSum,
    isFor: (value, which) => isProven(which === 'newest' ? credentialProof : formerCredentialProof, value, uid, record),
  }
}

/** Lists the addresses of a backend: its endpoints, else the Service itself, since a record of a cold start has no endpoints. */
function addressesOf({ url, endpoints, service }: BackendRecord): readonly string[] {
  if (url !== null) return [url]
  if (endpoints.length > 0 || service === null) return endpoints
  return [service]
}
