/**
 * The Secrets beside the keyring that gateway pods mount: model records of a cold start, and backend credentials, which never enter
 * Redis. Two sets of shards that do not block each other; a model that does not fit is refused alone.
 */
import { hash } from 'node:crypto'
import type { Cancel } from '#platform/clock.ts'
import { FORMAT } from '#contract/records/format.ts'
import { MOUNTED_SHARDS } from '#contract/records/mounted-folder.ts'
import { type CommitState, SecretShards, type SecretShardsDeps, type SettledListener } from './secret-shards.ts'
import { credentialCodec, type CredentialEntry } from './credential-codec.ts'
import { CredentialUsers } from './credential-users.ts'
import { modelCodec, type ModelEntry } from './model-codec.ts'

/** Maximum size of the distinct backend credentials of one namespace: one tenant must not fill the Secrets of all tenants. */
export const MAX_NAMESPACE_CREDENTIAL_BYTES = 262_144

/** An unused credential stays for this long, ms: pods that have not mounted its successor still use it. */
const KEEP_UNUSED_MS = 600_000
const RETRY_MS = 5_000
const SUMS = /[0-9a-f]{64}/g
/** The remedy of a full shard. The number of shards is fixed, so only less content helps. */
const REMEDY = 'use fewer ServedModels or fewer distinct backend credentials'

/** Dependencies of the mounted Secrets. */
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

/** Credentials that do not fit into the share of their namespace. */
export class NamespaceCredentialsFull extends Error {
  constructor(namespace: string, bytes: number) {
    super(
      `the backend credentials of namespace ${namespace} would have ${bytes} bytes, above ${MAX_NAMESPACE_CREDENTIAL_BYTES}: use fewer distinct credentials`,
    )
    this.name = 'NamespaceCredentialsFull'
  }
}

/** Keeps both sets equal to the models as they were set last. */
export class MountedSecrets {
  readonly #deps: MountedSecretsDeps
  readonly #models: SecretShards<ModelEntry>
  readonly #credentials: SecretShards<CredentialEntry>
  readonly #users = new CredentialUsers()
  /** By uid of a model, or sum of a credential: why it is not durable. */
  readonly #refused = new Map<string, Error>()
  readonly #listeners = new Set<SettledListener>()
  /** Time from which a credential has no users, ms monotonic, by sum; oldest first. */
  readonly #unusedSince = new Map<string, number>()
  #cancelSweep: Cancel | undefined

  constructor(deps: MountedSecretsDeps) {
    const { shards = MOUNTED_SHARDS, version = () => FORMAT.writes } = deps
    const common = { ...deps, shards, remedy: REMEDY }
    this.#deps = deps
    this.#models = new SecretShards<ModelEntry>({
      ...common,
      set: 'models',
      codec: modelCodec(version),
      groupOf: ({ uid }) => this.#users.namespaceOf(uid) ?? '',
    })
    this.#credentials = new SecretShards<CredentialEntry>({
      ...common,
      set: 'upstream',
      codec: credentialCodec,
      groupOf: ({ sum }) => this.#namespaceUsing(sum),
    })
    this.#models.onSettled((uid, error) => (this.#users.has(uid) ? this.#settled(uid, [uid], error) : this.#removed(uid, error)))
    this.#credentials.onSettled((sum, error) => {
      if (this.#users.isUsed(sum)) this.#settled(sum, [...this.#users.of(sum)], error)
      else if (error) this.#unused([sum])
    })
  }

  /** Reads both sets. @throws KubeError if they cannot be listed */
  async load(): Promise<void> {
    await Promise.all([this.#models.load(), this.#credentials.load()])
  }

  /** Called when every ServedModel was set or kept. Only then are entries without a model removed, so a restart never removes too much. */
  start(): void {
    for (const { uid } of [...this.#models.entries()]) if (!this.#users.has(uid)) this.#models.remove(uid, 'background')
    for (const { sum } of [...this.#credentials.entries()]) if (!this.#users.isUsed(sum)) this.#unused([sum])
  }

  /** Calls a listener whenever a model's record or credential becomes durable or is refused; `stateOf` and `refusal` give the details. */
  onSettled(listener: SettledListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Sets the mounted parts of one model, and writes changed parts. Listeners receive refusals, which are tried again when the model is set
   * again.
   */
  setModel(uid: string, { namespace, text, credentials }: MountedModel): void {
    const entries = [...new Set(credentials)].map((value): CredentialEntry => ({ sum: hash('sha256', value, 'hex'), value }))
    const bytes = this.#users.bytesWith(uid, namespace, entries)
    this.#refused.delete(uid)
    if (entries.length > 0 && bytes > MAX_NAMESPACE_CREDENTIAL_BYTES) {
      return queueMicrotask(() => this.#settled(uid, [uid], new NamespaceCredentialsFull(namespace, bytes)))
    }
    this.#unused(this.#users.set(uid, namespace, entries))
    for (const entry of entries) this.#use(entry)
    this.#setRecord(uid, text)
  }

  /** Keeps the mounted parts of a model that is unreadable. */
  keep(uid: string): void {
    if (this.#users.has(uid)) return
    this.#users.keep(uid, this.#models.get(uid)?.text.match(SUMS) ?? [])
  }

  /** Removes a deleted ServedModel. */
  deleteModel(uid: string): void {
    this.#refused.delete(uid)
    this.#unused(this.#users.delete(uid))
    this.#setRecord(uid, undefined)
  }

  /** Whether everything of the model, as set last, is durable or refused. */
  stateOf(uid: string): CommitState {
    if (this.#models.state(uid) === 'Pending') return 'Pending'
    for (const sum of this.#users.sumsOf(uid)) if (this.#credentials.state(sum) === 'Pending') return 'Pending'
    return 'Durable'
  }

  /** Why a part of the model, as set last, is not mounted: ShardFull, NamespaceCredentialsFull, EntryUnreadable or an error of the API server. */
  refusal(uid: string): Error | undefined {
    const own = this.#refused.get(uid)
    if (own) return own
    for (const sum of this.#users.sumsOf(uid)) {
      const error = this.#refused.get(sum)
      if (error) return error
    }
    return undefined
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

  /** A namespace whose models use the credential; if there are several, any of them. */
  #namespaceUsing(sum: string): string {
    for (const uid of this.#users.of(sum)) return this.#users.namespaceOf(uid) ?? ''
    return ''
  }

  #setRecord(uid: string, text: string | undefined): void {
    const isPending = this.#models.state(uid) === 'Pending'
    const present = isPending ? this.#models.pending(uid) : this.#models.get(uid)
    if (present?.text === text) return
    if (text === undefined) this.#models.remove(uid, 'change')
    else this.#models.commit({ uid, text }, 'change')
  }

  #use(entry: CredentialEntry): void {
    this.#unusedSince.delete(entry.sum)
    this.#refused.delete(entry.sum)
    const isPending = this.#credentials.state(entry.sum) === 'Pending'
    const present = isPending ? this.#credentials.pending(entry.sum) : this.#credentials.get(entry.sum)
    if (!present) this.#credentials.commit(entry, 'change')
  }

  #unused(sums: readonly string[]): void {
    for (const sum of sums) this.#unusedSince.set(sum, this.#deps.clock.monotonic())
    if (sums.length > 0) this.#cancelSweep ??= this.#deps.clock.after(KEEP_UNUSED_MS, () => this.#sweep())
  }

  #sweep(): void {
    const now = this.#deps.clock.monotonic()
    this.#cancelSweep = undefined
    for (const [sum, since] of this.#unusedSince) {
      const leftMs = since + KEEP_UNUSED_MS - now
      if (leftMs > 0) this.#cancelSweep ??= this.#deps.clock.after(leftMs, () => this.#sweep())
      else this.#unusedSince.delete(sum)
      if (leftMs <= 0) this.#credentials.remove(sum, 'background')
    }
  }

  /** Tries a refused removal of a deleted model again, because no reconcile of the model will do so. */
  #removed(uid: string, error: Error | undefined): void {
    if (!error) return
    this.#deps.clock.after(RETRY_MS, () => {
      if (!this.#users.has(uid)) this.#setRecord(uid, undefined)
    })
  }

  #settled(id: string, uids: readonly string[], error: Error | undefined): void {
    if (error) this.#refused.set(id, error)
    else this.#refused.delete(id)
    for (const uid of uids) for (const listener of this.#listeners) listener(uid, error)
  }
}
