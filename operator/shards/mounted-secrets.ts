/**
 * The Secrets beside the keyring that gateway pods mount: model records of a cold start, and backend credentials, which never enter
 * Redis. Two sets of shards that do not block each other; a model that does not fit is refused alone.
 */
import { hash } from 'node:crypto'
import type { Cancel } from '#platform/clock.ts'
import { MOUNTED_SHARDS } from '#contract/records/mounted-folder.ts'
import { CredentialBytes } from './credential-bytes.ts'
import { MultiMap } from './multi-map.ts'
import { SecretShards, type SecretShardsDeps, type SettledListener } from './secret-shards.ts'
import { type CredentialEntry, MODELS_SET, type RecordEntry, UPSTREAM_SET } from './sets.ts'

/** Maximum size of the distinct backend credentials of one namespace: one tenant must not fill the Secrets of all tenants. */
const MAX_NAMESPACE_CREDENTIAL_BYTES = 262_144
/** Maximum size of the model records of one namespace, for the same reason. Compressed, the Secrets hold more than eight times as much. */
const MAX_NAMESPACE_RECORD_BYTES = 917_504
/** An unused credential stays for this long, ms: pods that have not mounted its successor still use it. */
const KEEP_UNUSED_MS = 600_000
const RETRY_MS = 5_000
const NO_CREDENTIALS: ReadonlyMap<string, number> = new Map()
const SUMS = /[0-9a-f]{64}/g

export interface MountedSecretsDeps extends SecretShardsDeps {
  /** Shards of each set; default: the number that the chart mounts. */
  readonly shards?: number
}

/** The parts of a ServedModel that gateways mount. */
export interface MountedModel {
  readonly namespace: string
  /** Encoded ModelRecord without endpoints; undefined when no backend can be used. */
  readonly text: string | undefined
  readonly credentials: readonly string[]
}

/** Why a model is not mounted whose namespace has used up its share. Only other models of the namespace can make room. */
export class NamespaceMountFull extends Error {}

/** Credentials that do not fit into the share of their namespace. */
export class NamespaceCredentialsFull extends NamespaceMountFull {
  constructor(namespace: string, bytes: number) {
    super(
      `the backend credentials of namespace ${namespace} would have ${bytes} bytes, above ${MAX_NAMESPACE_CREDENTIAL_BYTES}: use fewer distinct credentials`,
    )
    this.name = 'NamespaceCredentialsFull'
  }
}

/** Model records that do not fit into the share of their namespace. */
export class NamespaceRecordsFull extends NamespaceMountFull {
  constructor(namespace: string, bytes: number) {
    super(
      `the records of the ServedModels of namespace ${namespace} would have ${bytes} bytes, above ${MAX_NAMESPACE_RECORD_BYTES}: use fewer or smaller ServedModels`,
    )
    this.name = 'NamespaceRecordsFull'
  }
}

interface Use {
  /** '' if the model is unreadable. */
  readonly namespace: string
  /** Bytes of each credential, by its sum; 0 if unknown. */
  readonly bytes: ReadonlyMap<string, number>
  /** Bytes of the record; 0 if unknown. */
  readonly recordBytes: number
}

/** Keeps both sets equal to the models as they were set last. */
export class MountedSecrets {
  readonly #deps: MountedSecretsDeps
  readonly #models: SecretShards<RecordEntry>
  readonly #credentials: SecretShards<CredentialEntry>
  readonly #uses = new Map<string, Use>()
  /** Uids of the models that use a credential, by sum. */
  readonly #users = new MultiMap<string>()
  /** Bytes of all records, by namespace. */
  readonly #recordBytes = new Map<string, number>()
  /** Bytes of the credentials, by namespace. */
  readonly #credentialBytes = new Map<string, CredentialBytes>()
  /** Models that wait for room in the share of their namespace, by namespace and uid. */
  readonly #waiting = new Map<string, Map<string, Use>>()
  /** By uid of a model, or sum of a credential: why it is not durable. */
  readonly #refused = new Map<string, Error>()
  readonly #listeners: SettledListener[] = []
  /** Time from which a credential has no users, ms monotonic, by sum; oldest first. */
  readonly #unusedSince = new Map<string, number>()
  #cancelSweep: Cancel | undefined

  constructor(deps: MountedSecretsDeps) {
    const own = { ...deps, shards: deps.shards ?? MOUNTED_SHARDS }
    const namespaceOf = (uid: string | undefined): string => this.#uses.get(uid ?? '')?.namespace ?? ''
    this.#deps = deps
    this.#models = new SecretShards({ ...MODELS_SET, ...own, groupOf: ({ uid }) => namespaceOf(uid) })
    this.#credentials = new SecretShards({ ...UPSTREAM_SET, ...own, groupOf: ({ sum }) => namespaceOf([...this.#users.get(sum)][0]) })
    this.#models.onSettled((uid, error) => (this.#uses.has(uid) ? this.#settled(uid, [uid], error) : this.#removed(uid, error)))
    this.#credentials.onSettled((sum, error) => {
      if (this.#users.has(sum)) this.#settled(sum, [...this.#users.get(sum)], error)
      else if (error) this.#unused([sum])
    })
  }

  /** Reads both sets. @throws KubeError if they cannot be listed */
  async load(): Promise<void> {
    await Promise.all([this.#models.load(), this.#credentials.load()])
  }

  /** Called when every ServedModel was set or kept. Only then are entries without a model removed, so a restart never removes too much. */
  start(): void {
    for (const { uid } of [...this.#models.entries()]) if (!this.#uses.has(uid)) this.#models.remove(uid, 'background')
    this.#unused(Array.from(this.#credentials.entries(), ({ sum }) => sum).filter((sum) => !this.#users.has(sum)))
  }

  /** Calls a listener whenever a model's record or credential becomes durable or is refused; `refusal` gives the reason. */
  onSettled(listener: SettledListener): void {
    this.#listeners.push(listener)
  }

  /** Sets the mounted parts of one model, and writes changed parts. Refused parts are tried again when the model is set again. */
  setModel(uid: string, { namespace, text, credentials }: MountedModel): void {
    const entries = [...new Set(credentials)].map((value): CredentialEntry => ({ sum: hash('sha256', value, 'hex'), value }))
    const bytes = new Map(entries.map(({ sum, value }) => [sum, Buffer.byteLength(value)]))
    const use = { namespace, bytes, recordBytes: Buffer.byteLength(text ?? '') }
    this.#refused.delete(uid)
    this.#waiting.get(namespace)?.delete(uid)
    const refusal = this.#overShare(uid, use)
    if (refusal) return this.#wait(uid, use, refusal)
    this.#replace(uid, use)
    for (const entry of entries) this.#use(entry)
    this.#setRecord(uid, text)
    this.#offerRoom(namespace)
  }

  /** Keeps the mounted parts of a model that is unreadable. */
  keep(uid: string): void {
    if (this.#uses.has(uid)) return
    const sums: readonly string[] = this.#models.get(uid)?.text.match(SUMS) ?? []
    this.#replace(uid, { namespace: '', bytes: new Map(sums.map((sum) => [sum, 0])), recordBytes: 0 })
  }

  /** Whether the record of a model is mounted. */
  has(uid: string): boolean {
    return this.#models.get(uid) !== undefined
  }

  deleteModel(uid: string): void {
    const namespace = this.#uses.get(uid)?.namespace
    this.#refused.delete(uid)
    for (const waiting of this.#waiting.values()) waiting.delete(uid)
    this.#replace(uid, undefined)
    this.#setRecord(uid, undefined)
    if (namespace !== undefined) this.#offerRoom(namespace)
  }

  /** Whether a model that was refused for the share of its namespace would fit now. Listeners hear of one such model at a time. */
  hasRoomFor(uid: string, namespace: string): boolean {
    const use = this.#waiting.get(namespace)?.get(uid)
    return use !== undefined && this.#overShare(uid, use) === undefined
  }

  /** The value of a credential that is mounted or on its way. */
  credential(sum: string): string | undefined {
    return this.#credentials.newest(sum)?.value
  }

  /** Why a part of the model, as set last, is not mounted: ShardFull, NamespaceCredentialsFull, NamespaceRecordsFull, EntryUnreadable or an error of the API server. */
  refusal(uid: string): Error | undefined {
    const sums = this.#uses.get(uid)?.bytes.keys() ?? []
    return [uid, ...sums].map((id) => this.#refused.get(id)).find((error) => error !== undefined)
  }

  /** Reads every shard again, in the background. A shard that was deleted or damaged meanwhile is written again from memory. */
  check(): void {
    this.#models.check()
    this.#credentials.check()
  }

  /** Writes all pending entries, before a clean end. @throws the first error */
  async flush(): Promise<void> {
    await Promise.all([this.#models.flush(), this.#credentials.flush()])
  }

  stop(): void {
    this.#cancelSweep?.()
    this.#models.stop()
    this.#credentials.stop()
  }

  #wait(uid: string, use: Use, refusal: NamespaceMountFull): void {
    const waiting = this.#waiting.get(use.namespace) ?? new Map<string, Use>()
    this.#waiting.set(use.namespace, waiting.set(uid, use))
    queueMicrotask(() => this.#settled(uid, [uid], refusal))
  }

  /** Notifies the first waiting model that fits, because thousands may wait. When that model has taken its room, the next one is notified. */
  #offerRoom(namespace: string): void {
    const waiting = this.#waiting.get(namespace)
    if (waiting === undefined) return
    if (waiting.size === 0) return void this.#waiting.delete(namespace)
    for (const [uid, use] of waiting) {
      if (this.#overShare(uid, use) !== undefined) continue
      const refusal = this.#refused.get(uid)
      return this.#listeners.forEach((listener) => listener(uid, refusal))
    }
  }

  /** Why the models of a namespace would exceed its share with this use. */
  #overShare(uid: string, use: Use): NamespaceMountFull | undefined {
    const { namespace, recordBytes } = use
    const former = this.#uses.get(uid)
    const own = former?.namespace === namespace ? former.bytes : NO_CREDENTIALS
    const credentials = use.bytes.size > 0 ? this.#credentialsOf(namespace).totalWith(own, use.bytes) : 0
    if (credentials > MAX_NAMESPACE_CREDENTIAL_BYTES) return new NamespaceCredentialsFull(namespace, credentials)
    const others = (this.#recordBytes.get(namespace) ?? 0) - (former?.namespace === namespace ? former.recordBytes : 0)
    const isOver = recordBytes > 0 && others + recordBytes > MAX_NAMESPACE_RECORD_BYTES
    return isOver ? new NamespaceRecordsFull(namespace, others + recordBytes) : undefined
  }

  #credentialsOf(namespace: string): CredentialBytes {
    return this.#credentialBytes.get(namespace) ?? new CredentialBytes()
  }

  #countCredentials(former: Use | undefined, use: Use | undefined): void {
    if (former) this.#credentialsOf(former.namespace).delete(former.bytes)
    if (former && this.#credentialsOf(former.namespace).isEmpty) this.#credentialBytes.delete(former.namespace)
    if (use === undefined || use.bytes.size === 0) return
    const counted = this.#credentialsOf(use.namespace)
    counted.add(use.bytes)
    this.#credentialBytes.set(use.namespace, counted)
  }

  #countRecords(former: Use | undefined, use: Use | undefined): void {
    if (former) this.#recordBytes.set(former.namespace, (this.#recordBytes.get(former.namespace) ?? 0) - former.recordBytes)
    if (use) this.#recordBytes.set(use.namespace, (this.#recordBytes.get(use.namespace) ?? 0) + use.recordBytes)
    if (former && this.#recordBytes.get(former.namespace) === 0) this.#recordBytes.delete(former.namespace)
  }

  /** Replaces the credentials of a model; undefined removes the model. */
  #replace(uid: string, use: Use | undefined): void {
    const former = this.#uses.get(uid)
    if (use) this.#uses.set(uid, use)
    else this.#uses.delete(uid)
    this.#countCredentials(former, use)
    this.#countRecords(former, use)
    for (const sum of use?.bytes.keys() ?? []) this.#users.add(sum, uid)
    const left = [...(former?.bytes.keys() ?? [])].filter((sum) => use?.bytes.has(sum) !== true)
    this.#unused(left.filter((sum) => this.#users.delete(sum, uid)))
  }

  #setRecord(uid: string, text: string | undefined): void {
    if (this.#models.newest(uid)?.text === text) return
    if (text === undefined) this.#models.remove(uid, 'background')
    else this.#models.commit({ uid, text }, 'background')
  }

  #use(entry: CredentialEntry): void {
    this.#unusedSince.delete(entry.sum)
    this.#refused.delete(entry.sum)
    if (!this.#credentials.newest(entry.sum)) this.#credentials.commit(entry, 'change')
  }

  #unused(sums: readonly string[]): void {
    for (const sum of sums) this.#unusedSince.set(sum, this.#deps.clock.monotonic())
    if (sums.length > 0) this.#cancelSweep ??= this.#deps.clock.after(KEEP_UNUSED_MS, () => this.#sweep())
  }

  #sweep(): void {
    const nowMs = this.#deps.clock.monotonic()
    this.#cancelSweep = undefined
    for (const [sum, sinceMs] of this.#unusedSince) {
      const leftMs = sinceMs + KEEP_UNUSED_MS - nowMs
      if (leftMs > 0) return void (this.#cancelSweep = this.#deps.clock.after(leftMs, () => this.#sweep()))
      this.#unusedSince.delete(sum)
      this.#credentials.remove(sum, 'background')
    }
  }

  /** Tries a refused removal of a deleted model again, because no reconcile of the model will do so. */
  #removed(uid: string, error: Error | undefined): void {
    if (!error) return
    this.#deps.clock.after(RETRY_MS, () => {
      if (!this.#uses.has(uid)) this.#setRecord(uid, undefined)
    })
  }

  #settled(id: string, uids: readonly string[], error: Error | undefined): void {
    if (error) this.#refused.set(id, error)
    else this.#refused.delete(id)
    for (const uid of uids) for (const listener of this.#listeners) listener(uid, error)
  }
}
