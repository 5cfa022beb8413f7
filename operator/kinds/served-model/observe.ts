/** Observes the state of one ServedModel from memory: caches, registry and projection, never from the API server. Decides nothing. */
import type { Clock } from '#platform/clock.ts'
import { rulesIn } from '#contract/values/backend-address.ts'
import { credentialProof, isProven } from '#contract/records/credential-proof.ts'
import { type BackendRecord, encodeModelRecord, type ModelRecord } from '#contract/records/model-record.ts'
import { selects } from '#api/label-selector.ts'
import type { ServedModel } from '#api/served-model.ts'
import { isKubeError, namespaceOf, type ObjectRef, uidOf } from '#kube/port.ts'
import { credentialRef, type CredentialRef } from './backend-credential.ts'
import type { ServedModelDeps } from './kind.ts'
import { coldStartRecord, desiredModel } from './desired.ts'
import { credentialsOf } from './model-registry.ts'
import type {
  DesiredModel,
  ModelSurroundings,
  Observed,
  ObservedBackend,
  ObservedCredential,
  ObservedModel,
  ObservedProjection,
  ServiceEndpoints,
} from './observed.ts'
import { isNarrower, publishingOf } from './publishing.ts'
import { NamespaceMountFull } from '../../shards/mounted-secrets.ts'
import { MOUNT_DELAY_MS, statusOf } from './status.ts'
import type { EndpointSlice, Service } from '#kube/resources.ts'

type BackendSpec = ServedModel['spec']['backends'][number]
type ModelId = { readonly uid: string; readonly namespace: string }

/** Maximum number of endpoints of one backend in a record. */
const MAX_ENDPOINTS = 1_000
/** Time after which a refused write of the mounted Secrets is tried again, ms. */
const MOUNT_RETRY_MS = 10_000

/** @returns undefined if no work is left */
export function observe(ref: ObjectRef, deps: ServedModelDeps): Observed | undefined {
  const cached = deps.servedModels.get(ref)
  const model = cached?.metadata.deletionTimestamp === undefined ? cached : undefined
  const former = deps.memory.uidOf(ref)
  if (former !== undefined && former !== model?.metadata.uid)
    return deps.servedModels.isSynced(ref.namespace) ? { state: 'Deleted', ref, uid: former } : undefined
  return model && observeModel(ref, deps.ownWrites.newest(model), deps)
}

export function usedCredentials({ model, desired }: Pick<ObservedModel, 'model' | 'desired'>): readonly CredentialRef[] {
  const used = new Set(desired.record?.backends.filter(({ credentialSum }) => credentialSum !== null).map(({ name }) => name))
  return credentialsOf({ ...model, spec: { ...model.spec, backends: model.spec.backends.filter(({ name }) => used.has(name)) } })
}

function observeModel(ref: ObjectRef, model: ServedModel, deps: ServedModelDeps): ObservedModel {
  const uid = uidOf(model)
  const around = observeSurroundings(model, deps)
  const { record, ...findings } = desiredModel(around)
  const desired: DesiredModel = { ...findings, record: record && proven(record, model, deps) }
  const text = desired.record && encodeModelRecord(desired.record, deps.version())
  const coldStart = coldStartText(desired.record, text, { model, deps })
  const projection = observeProjection(uid, { text, desired }, deps)
  const mounted = observeMounted({ uid, namespace: ref.namespace }, mountKey(coldStart, around), deps)
  const status = statusOf(around, desired, { ...projection, mountedForMs: mounted.forMs }, deps.clock.now())
  const credentials = around.hasPlace ? credentialsOf(model) : []
  const timing = observeTiming(credentials, mounted, deps)
  const unread = around.hasPlace ? unreadCredential(around) : undefined
  return { ...around, state: 'Present', ref, desired, coldStart, text, projection, mounted, status, unread, ...timing }
}

/** The encoded record of a cold start, which has no endpoints: the record itself if it has none. */
function coldStartText(
  record: ModelRecord | undefined,
  text: string | undefined,
  { model, deps }: { readonly model: ServedModel; readonly deps: ServedModelDeps },
): string | undefined {
  if (record === undefined || record.backends.every(({ endpoints }) => endpoints.length === 0)) return text
  return encodeModelRecord(proven(coldStartRecord(record), model, deps), deps.version())
}

/** Identity of a model's entries in the mounted Secrets: the record of a cold start, and the checksums of the credentials. */
function mountKey(coldStart: string | undefined, { backends }: Pick<ModelSurroundings, 'backends'>): string {
  return JSON.stringify([coldStart, backends.map(({ credential }) => (credential.state === 'Found' ? credential.sum : null))])
}

/** Adds the proofs of the credentials. Without the value of a credential there is none, and no gateway sends the credential. */
function proven(record: ModelRecord, model: ServedModel, { credentials, mounted }: ServedModelDeps): ModelRecord {
  const backends = record.backends.map((backend) => {
    const ref = model.spec.backends.find(({ name }) => name === backend.name)?.authSecretRef
    const proofFor = (sum: string | null): string | undefined => {
      if (sum === null || ref === undefined) return undefined
      const value = credentials.valueWith(sum, credentialRef(record.namespace, ref)) ?? mounted.credential(sum)
      return value === undefined ? undefined : credentialProof(value, record.uid, backend)
    }
    const newest = proofFor(backend.credentialSum)
    const former = proofFor(backend.formerCredentialSum)
    return { ...backend, ...(newest && { credentialProof: newest }), ...(former && { formerCredentialProof: former }) }
  })
  return { ...record, backends }
}

/** The record of an earlier process, without the backends whose credential that process did not give them: others may write in Redis too. */
export function adoptable(record: ModelRecord, uid: string, { mounted }: Pick<ServedModelDeps, 'mounted'>): ModelRecord {
  const isOwn = (backend: BackendRecord): boolean => {
    const value = backend.credentialSum === null ? undefined : mounted.credential(backend.credentialSum)
    return value !== undefined && isProven(backend.credentialProof, value, uid, backend)
  }
  return { ...record, backends: record.backends.filter(isOwn) }
}

function observeMounted({ uid, namespace }: ModelId, key: string, { memory, mounted, clock }: ServedModelDeps): ObservedModel['mounted'] {
  const last = memory.get(uid).mounted
  const forMs = ageMs(last, clock)
  const retryInMs = retryMountInMs(mounted.refusal(uid), forMs, () => mounted.hasRoomFor(uid, namespace))
  return { key, isCurrent: last?.key === key && retryInMs > 0, retryInMs, forMs }
}

/** A model that exceeds the share of its namespace is not tried again after a time: thousands may wait, and only an event changes `hasRoom`. */
function retryMountInMs(refusal: Error | undefined, forMs: number, hasRoom: () => boolean): number {
  if (refusal === undefined) return Infinity
  if (refusal instanceof NamespaceMountFull) return hasRoom() ? 0 : Infinity
  return isKubeError(refusal, 'Conflict') ? 0 : Math.max(0, MOUNT_RETRY_MS - forMs) // a conflict: another process has written, so the retry is due at once
}

function observeSurroundings(model: ServedModel, deps: ServedModelDeps): ModelSurroundings {
  const uid = uidOf(model)
  const publishing = publishingOf(model, deps.rules)
  const { allowLoopback, clusterAddressNamespaces } = deps.settings
  const { selector } = model.spec.allowedNamespaces
  const selected = selector && publishing === 'Published' ? [...(deps.informers.namespaces?.list() ?? [])] : []
  return {
    model,
    hasPlace: deps.registry.hasPlace(uid),
    namespaceLimit: deps.settings.maxServedModelsPerNamespace,
    publishing,
    lostNames: deps.registry.lostNames(uid),
    backends: model.spec.backends.map((spec) => observeBackend(model, spec, deps)),
    selectedNamespaces: selected.flatMap(({ metadata }) => (selector && selects(selector, metadata.labels) ? [metadata.name] : [])),
    mountRefusal: refusalText(deps.mounted.refusal(uid)),
    addresses: rulesIn(namespaceOf(model), { allowLoopback, clusterNamespaces: clusterAddressNamespaces }),
    secret: deps.secret(),
  }
}

function observeBackend(model: ServedModel, spec: BackendSpec, deps: ServedModelDeps): ObservedBackend {
  const namespace = namespaceOf(model)
  const { service, authSecretRef } = spec
  const found = service && deps.informers.services.get({ namespace, name: service.name })
  return {
    name: spec.name,
    service: service && serviceEndpoints(service.name, service.port, found, deps.slicesOf(namespace, service.name)),
    credential: authSecretRef ? observeCredential(uidOf(model), spec, credentialRef(namespace, authSecretRef), deps) : { state: 'NotUsed' },
    reachable: reachable(`${uidOf(model)}/${spec.name}`, deps),
  }
}

function observeCredential(uid: string, spec: BackendSpec, ref: CredentialRef, deps: ServedModelDeps): ObservedCredential {
  const read = deps.credentials.observe(ref)
  if (read.state !== 'Unread' && read.state !== 'Unreadable') return read
  const known = deps.memory.adoptedCredential(uid, spec)
  if (known === undefined) return read
  return { state: 'Adopted', ...known, ...(read.state === 'Unreadable' ? { unreadable: read.problem } : {}) }
}

function observeProjection(
  uid: string,
  { text, desired }: Pick<ObservedModel, 'text' | 'desired'>,
  deps: ServedModelDeps,
): ObservedProjection {
  const { wanted, isKept } = deps.memory.get(uid)
  const isWanted = wanted !== undefined && wanted.text === text
  const revision = isWanted && text !== undefined ? deps.projection.present('model', uid, text)?.revision : undefined
  const hadRecord = wanted?.text !== undefined
  return {
    isWanted,
    isKept: isKept === true,
    hadRecord,
    isRestricted: hadRecord && (desired.record === undefined || isNarrower(desired.record.allowedNamespaces, wanted.allowedNamespaces)),
    revision,
    confirmation: revision === undefined ? undefined : deps.acknowledgements.confirmation(revision, uid),
    sinceMs: ageMs(wanted, deps.clock),
    storeAvailable: deps.projection.available,
  }
}

function ageMs(given: { readonly atMs: number } | undefined, clock: Clock): number {
  return given === undefined ? Infinity : clock.monotonic() - given.atMs
}

function observeTiming(
  credentials: readonly CredentialRef[],
  { forMs, retryInMs }: ObservedModel['mounted'],
  deps: ServedModelDeps,
): Pick<ObservedModel, 'dueCredential' | 'nextChangeAtMs'> {
  const waits = credentials.flatMap((ref) => [deps.credentials.readInMs(ref), deps.credentials.formerEndsInMs(ref) ?? Infinity])
  if (credentials.length > 0 && forMs < MOUNT_DELAY_MS) waits.push(MOUNT_DELAY_MS - forMs)
  waits.push(retryInMs)
  const soonest = Math.min(...waits)
  return {
    dueCredential: credentials.find((ref) => deps.credentials.readInMs(ref) === 0),
    nextChangeAtMs: Number.isFinite(soonest) ? deps.clock.now() + soonest : undefined,
  }
}

/** The first credential that must be read now. Gateways already serve a model with an adopted credential, so that read can wait. */
function unreadCredential({ model, backends }: ModelSurroundings): CredentialRef | undefined {
  const spec = model.spec.backends.find((_spec, index) => backends[index]?.credential.state === 'Unread')
  return spec?.authSecretRef && credentialRef(namespaceOf(model), spec.authSecretRef)
}

/** The message of a refusal for the status. Failures that end within seconds are left out. */
function refusalText(refusal: Error | undefined): string | undefined {
  if (refusal === undefined || isKubeError(refusal, 'Unreachable', 'Conflict', 'AlreadyExists', 'TooManyRequests')) return undefined
  return refusal.message
}

/** The worst backend health that a live gateway reports. One gateway that cannot reach a backend is a problem that the status shows. */
function reachable(id: string, deps: ServedModelDeps): { up: number; total: number } | undefined {
  let worst: { up: number; total: number } | undefined
  for (const { acknowledgement } of deps.acknowledgements.live) {
    const health = acknowledgement?.backends[id]
    if (health && (!worst || health.up / Math.max(1, health.total) < worst.up / Math.max(1, worst.total))) worst = health
  }
  return worst
}

/** Ready addresses, sorted. Gateways do not use the ClusterIP: a connection to a dead pod behind it stalls until a time-out. */
export function serviceEndpoints(
  name: string,
  port: number,
  service: Service | undefined,
  slices: Iterable<EndpointSlice>,
): ServiceEndpoints {
  const servicePort = usablePort(name, port, service)
  if ('problem' in servicePort) return { found: false, ...servicePort }
  const ready = new Set<string>()
  let total = 0
  for (const slice of slices) {
    const podPort = podPortOf(slice, servicePort.name ?? '')
    if (podPort === undefined) continue
    const endpoints = slice.endpoints ?? []
    total += endpoints.length
    const host = (address: string): string => (slice.addressType === 'IPv6' ? `[${address}]` : address)
    for (const address of endpoints.filter(isUsable).flatMap(({ addresses }) => addresses)) ready.add(`${host(address)}:${podPort}`)
  }
  return { found: true, ready: [...ready].sort().slice(0, MAX_ENDPOINTS), total }
}

/** An ExternalName leads to any name, so also to another namespace. */
function usablePort(name: string, port: number, service: Service | undefined): { readonly name?: string } | { readonly problem: string } {
  if (!service) return { problem: `Service ${name} does not exist in this namespace` }
  if (service.spec?.type === 'ExternalName')
    return { problem: `Service ${name} is of type ExternalName and has no endpoints; write its host as url` }
  return service.spec?.ports?.find((candidate) => candidate.port === port) ?? { problem: `Service ${name} has no port ${port}` }
}

/** Finds the port of the pods. A slice has the port names of the Service, with the numbers of the pods. */
function podPortOf(slice: EndpointSlice, name: string): number | undefined {
  return slice.ports?.find((candidate) => (candidate.name ?? '') === name)?.port ?? undefined
}

/** An absent `ready` means ready (discovery.k8s.io/v1). */
function isUsable({ conditions }: NonNullable<EndpointSlice['endpoints']>[number]): boolean {
  return conditions?.ready !== false && conditions?.terminating !== true
}
