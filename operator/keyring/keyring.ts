/**
 * The keyring: durable truth about issued keys, in a fixed number of Secrets of the operator's namespace. One writer, the leader.
 * A commit is one PUT guarded by resourceVersion; commits that arrive together share it (group commit).
 */
import {
  checkKeyringLine,
  decodeKeyringShard,
  encodeKeyringShard,
  type KeyringLine,
  keyringSecretName,
  RECORDS_KEY,
} from '../../gateway/shared/keyring-line.ts'
import { isKubeError, KubeError, type KubePort } from '../kube/port.ts'
import { type Secret, secrets } from '../kube/resources.ts'
import { KEYRING_LABEL, otherSets } from './other-sets.ts'
import { shardOf } from './shards.ts'

/** An idle shard waits this long for more commits, so that keys made together share a PUT. One being written takes all that come meanwhile. */
const LINGER_MS = 5
/** What only rides along waits for a PUT of its shard for this long. */
const RIDE_MS = 2_000
/** A PUT that lost a race re-reads and tries again this often before its commits fail. */
const MAX_ATTEMPTS = 5
/** etcd refuses objects above 1.5 MiB, Secrets above 1 MiB; a warning at three quarters of this leaves time to act. */
const SHARD_BYTES_LIMIT = 900 * 1024

/** What the keyring needs from its surroundings. */
export interface KeyringDeps {
  readonly kube: KubePort
  /** The operator's own namespace. */
  readonly namespace: string
  readonly shards: number
  /** Throws when this process no longer leads: a deposed leader must not write. */
  readonly assertLeading: () => void
  /** One warning: a damaged shard, a shard near its bound. */
  readonly warn: (message: string) => void
  /** Reports each PUT. */
  readonly onCommit?: (shard: number, bytes: number, seconds: number) => void
}

interface PendingCommit {
  readonly uid: string
  readonly line: KeyringLine | undefined // undefined = forget the key
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

interface Shard {
  secret: Secret | undefined // as last read or written; undefined = none yet
  known: boolean // false = must be read before the next write
  damaged: boolean // the Secret does not hold what memory holds: it is written even without a change
  lines: Map<string, KeyringLine>
  /** Changes that are in force in memory and go with the next PUT. */
  riding: Map<string, KeyringLine>
  pending: PendingCommit[]
  flushing: boolean
}

/** A shard that must take no further keys. Changes of keys that it has go on: a full keyring must not hold up a revocation. */
class ShardFull extends KubeError {}

/** The leader's view of the keyring. Lines are shared: never change one, commit a new one. */
export class Keyring {
  readonly #deps: KeyringDeps
  readonly #shards: Shard[]

  constructor(deps: KeyringDeps) {
    this.#deps = deps
    this.#shards = Array.from({ length: deps.shards }, () => ({
      secret: undefined,
      known: false,
      damaged: false,
      lines: new Map(),
      riding: new Map(),
      pending: [],
      flushing: false,
    }))
  }

  /**
   * Reads every shard. A damaged one counts as empty: its keys are restored from Redis or their user Secrets, or reported lost. Keys of a
   * set with another number of shards move into this one.
   */
  async load(): Promise<void> {
    const { kube, namespace, shards, warn } = this.#deps
    const present = await kube.list(secrets, namespace)
    const byName = new Map(present.map((secret) => [secret.metadata.name, secret]))
    this.#shards.forEach((shard, index) => this.#take(shard, index, byName.get(keyringSecretName(shards, index))))
    const others = otherSets(present, shards, warn)
    const moved = others.lines.filter((line) => line.rev > (this.get(line.uid)?.rev ?? -1))
    await Promise.all(moved.map((line) => this.commit(line)))
    for (const { name, uid } of others.secrets) await kube.remove(secrets, { namespace, name }, { uid })
    if (others.secrets.length > 0)
      warn(`${moved.length} keys moved from ${others.secrets.length} Secrets of a keyring with another number of shards`)
  }

  /** Has every shard looked at: one that was deleted or damaged meanwhile is written anew from memory. */
  check(): void {
    this.#shards.forEach((shard, index) => {
      shard.known = false
      this.#startFlush(shard, index)
    })
  }

  /** @returns the line of an ApiKey, as last committed or riding along */
  get(uid: string): KeyringLine | undefined {
    const shard = this.#shardOf(uid)
    return shard.riding.get(uid) ?? shard.lines.get(uid)
  }

  /** Newest revision that any line was written at. */
  get rev(): number {
    let newest = 0
    for (const line of this.lines()) newest = Math.max(newest, line.rev)
    return newest
  }

  /** Every line, as `get` gives it. */
  *lines(): Iterable<KeyringLine> {
    for (const shard of this.#shards) for (const [uid, line] of shard.lines) yield shard.riding.get(uid) ?? line
  }

  /**
   * Makes a line durable.
   * @throws ZodError for a line that nobody could read again: it would cost all others of its shard
   * @throws KubeError when it could not be written; whether it was is unknown then, and the next commit reads first
   */
  async commit(line: KeyringLine): Promise<void> {
    checkKeyringLine(line)
    await this.#enqueue(line.uid, line)
  }

  /** In force at once, durable within 2 s: for what a crash would find out again by itself. */
  commitLater(line: KeyringLine): void {
    const index = shardOf(line.uid, this.#deps.shards)
    const shard = this.#shardOf(line.uid)
    shard.riding.set(line.uid, line)
    setTimeout(() => this.#startFlush(shard, index), RIDE_MS).unref()
  }

  /** Writes what still rides along: before a clean end. @throws KubeError */
  async flush(): Promise<void> {
    await Promise.all(this.#shards.flatMap((shard) => [...shard.riding.values()].map((line) => this.commit(line))))
  }

  /** Drops the line of a key that has been gone for long enough. */
  forget(uid: string): Promise<void> {
    return this.#enqueue(uid, undefined)
  }

  #enqueue(uid: string, line: KeyringLine | undefined): Promise<void> {
    const index = shardOf(uid, this.#deps.shards)
    const shard = this.#shardOf(uid)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    shard.pending.push({ uid, line, done: resolve, failed: reject })
    this.#startFlush(shard, index)
    return promise
  }

  #startFlush(shard: Shard, index: number): void {
    if (shard.flushing || (shard.known && shard.pending.length === 0 && shard.riding.size === 0)) return
    shard.flushing = true
    setTimeout(() => void this.#flush(shard, index), LINGER_MS)
  }

  #shardOf(uid: string): Shard {
    const shard = this.#shards[shardOf(uid, this.#deps.shards)]
    if (!shard) throw new RangeError('shard out of range')
    return shard
  }

  async #flush(shard: Shard, index: number): Promise<void> {
    do {
      const batch = shard.pending.splice(0)
      try {
        await this.#write(shard, index, batch)
        for (const commit of batch) commit.done()
      } catch (error) {
        this.#failed(shard, batch, error)
        if (shard.riding.size > 0) setTimeout(() => this.#startFlush(shard, index), RIDE_MS).unref()
      }
    } while (shard.pending.length > 0)
    shard.flushing = false
  }

  #failed(shard: Shard, batch: readonly PendingCommit[], error: unknown): void {
    const isFull = error instanceof ShardFull
    const refused = isFull ? batch.filter(({ uid }) => !shard.lines.has(uid)) : batch
    shard.known = isFull // else a lost answer: the write may have happened
    for (const commit of refused) commit.failed(error)
    shard.pending.unshift(...batch.filter((commit) => !refused.includes(commit)))
  }

  async #write(shard: Shard, index: number, batch: readonly PendingCommit[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      if (!shard.known) await this.#read(shard, index)
      if (batch.length === 0 && shard.riding.size === 0 && !shard.damaged) return
      this.#deps.assertLeading()
      const riding = [...shard.riding]
      const lines = merged([...shard.lines, ...riding], batch)
      try {
        const secret = await this.#put(shard, index, lines)
        Object.assign(shard, { secret, lines, damaged: false })
        return dropRidden(shard, riding)
      } catch (error) {
        if (attempt >= MAX_ATTEMPTS || !isKubeError(error, 'Conflict', 'AlreadyExists', 'NotFound')) throw error
        await this.#read(shard, index) // changed or removed under us: start from what is there
      }
    }
  }

  async #put({ secret: former, lines: known }: Shard, index: number, lines: ReadonlyMap<string, KeyringLine>): Promise<Secret> {
    const { kube, namespace, shards, onCommit, warn } = this.#deps
    const started = performance.now()
    let rev = 0
    for (const line of lines.values()) rev = Math.max(rev, line.rev)
    const bytes = encodeKeyringShard({ shards, shard: index, rev, lines: [...lines.values()] })
    if (bytes.length > SHARD_BYTES_LIMIT && [...lines.keys()].some((uid) => !known.has(uid))) {
      throw new ShardFull(
        'Other',
        0,
        `keyring shard ${index} would hold ${bytes.length} bytes, above ${SHARD_BYTES_LIMIT}: raise keyring.shards`,
      )
    }
    if (bytes.length > SHARD_BYTES_LIMIT * 0.75)
      warn(`keyring shard ${index} holds ${bytes.length} of ${SHARD_BYTES_LIMIT} bytes: raise keyring.shards`)
    const secret: Secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: keyringSecretName(shards, index),
        namespace,
        labels: { 'app.kubernetes.io/managed-by': 'headgate-operator', [KEYRING_LABEL]: 'true' },
        ...(former?.metadata.resourceVersion ? { resourceVersion: former.metadata.resourceVersion } : {}),
      },
      type: 'headgate.dev/keyring',
      data: { [RECORDS_KEY]: bytes.toString('base64') },
    }
    const written = former ? await kube.update(secrets, secret) : await kube.create(secrets, secret)
    onCommit?.(index, bytes.length, (performance.now() - started) / 1000)
    return written
  }

  async #read(shard: Shard, index: number): Promise<void> {
    const { kube, namespace, shards } = this.#deps
    this.#take(shard, index, await kube.get(secrets, { namespace, name: keyringSecretName(shards, index) }))
  }

  /** What the Secret says counts; where it has vanished or is damaged, what memory says (nothing, at a start). */
  #take(shard: Shard, index: number, secret: Secret | undefined): void {
    const name = keyringSecretName(this.#deps.shards, index)
    const text = secret?.data?.[RECORDS_KEY]
    shard.secret = secret
    shard.known = true
    shard.damaged = text === undefined && shard.lines.size > 0
    if (shard.damaged) this.#deps.warn(`keyring Secret ${name} has vanished; it is written anew`)
    if (text === undefined) return
    try {
      shard.lines = new Map(decodeKeyringShard(Buffer.from(text, 'base64')).lines.map((line) => [line.uid, line]))
    } catch (error) {
      shard.damaged = true
      this.#deps.warn(`keyring Secret ${name} cannot be read (${error instanceof Error ? error.name : 'unknown'}): it will be written anew`)
    }
  }
}

function merged(present: ReadonlyArray<readonly [string, KeyringLine]>, batch: readonly PendingCommit[]): Map<string, KeyringLine> {
  const lines = new Map(present)
  for (const { uid, line } of batch) {
    if (line) lines.set(uid, line)
    else lines.delete(uid)
  }
  return lines
}

/** What a newer change has replaced meanwhile rides on. */
function dropRidden(shard: Shard, riding: ReadonlyArray<readonly [string, KeyringLine]>): void {
  for (const [uid, line] of riding) if (shard.riding.get(uid) === line) shard.riding.delete(uid)
}
