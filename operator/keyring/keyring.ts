/**
 * The keyring: durable truth about issued keys, in a fixed number of Secrets of the operator's namespace. One writer, the leader.
 * A commit is one PUT guarded by resourceVersion; commits that arrive together share it (group commit).
 */
import {
  decodeKeyringShard,
  encodeKeyringShard,
  type KeyringLine,
  keyringSecretName,
  RECORDS_KEY,
} from '../../gateway/shared/keyring-line.ts'
import { isKubeError, KubeError, type KubePort } from '../kube/port.ts'
import { type Secret, secrets } from '../kube/resources.ts'
import { shardOf } from './shards.ts'

/** An idle shard waits this long for more commits, so that keys made together share a PUT. */
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
  lines: Map<string, KeyringLine>
  /** Changes that are in force in memory and go with the next PUT. */
  riding: Map<string, KeyringLine>
  pending: PendingCommit[]
  flushing: boolean
}

/** The leader's view of the keyring. Lines are shared: never change one, commit a new one. */
export class Keyring {
  readonly #deps: KeyringDeps
  readonly #shards: Shard[]

  constructor(deps: KeyringDeps) {
    this.#deps = deps
    this.#shards = Array.from({ length: deps.shards }, () => ({
      secret: undefined,
      known: false,
      lines: new Map(),
      riding: new Map(),
      pending: [],
      flushing: false,
    }))
  }

  /** Reads every shard. A damaged one counts as empty: its keys are restored from their user Secrets, or reported lost. */
  async load(): Promise<void> {
    await Promise.all(this.#shards.map((shard, index) => this.#read(shard, index)))
  }

  /** @returns the line of an ApiKey, as last committed or riding along */
  get(uid: string): KeyringLine | undefined {
    const shard = this.#shardOf(uid)
    return shard.riding.get(uid) ?? shard.lines.get(uid)
  }

  /** Every line, as `get` gives it. */
  *lines(): Iterable<KeyringLine> {
    for (const shard of this.#shards) for (const [uid, line] of shard.lines) yield shard.riding.get(uid) ?? line
  }

  /**
   * Makes a line durable.
   * @throws KubeError when it could not be written; whether it was is unknown then, and the next commit reads first
   */
  commit(line: KeyringLine): Promise<void> {
    return this.#enqueue(line.uid, line)
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
    if (shard.flushing || (shard.pending.length === 0 && shard.riding.size === 0)) return
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
        shard.known = false // a lost answer: the write may have happened
        for (const commit of batch) commit.failed(error)
        if (shard.riding.size > 0) setTimeout(() => this.#startFlush(shard, index), RIDE_MS).unref()
      }
    } while (shard.pending.length > 0)
    shard.flushing = false
  }

  async #write(shard: Shard, index: number, batch: readonly PendingCommit[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      if (!shard.known) await this.#read(shard, index)
      this.#deps.assertLeading()
      const riding = new Map(shard.riding)
      const lines = new Map([...shard.lines, ...riding])
      for (const { uid, line } of batch) {
        if (line) lines.set(uid, line)
        else lines.delete(uid)
      }
      try {
        shard.secret = await this.#put(shard.secret, index, lines)
        shard.lines = lines
        for (const [uid, line] of riding) if (shard.riding.get(uid) === line) shard.riding.delete(uid)
        return
      } catch (error) {
        if (attempt >= MAX_ATTEMPTS || !isKubeError(error, 'Conflict', 'AlreadyExists', 'NotFound')) throw error
        await this.#read(shard, index, shard.lines) // changed or removed under us: start from what is there
      }
    }
  }

  async #put(former: Secret | undefined, index: number, lines: ReadonlyMap<string, KeyringLine>): Promise<Secret> {
    const { kube, namespace, shards, onCommit, warn } = this.#deps
    const started = performance.now()
    let rev = 0
    for (const line of lines.values()) rev = Math.max(rev, line.rev)
    const bytes = encodeKeyringShard({ shards, shard: index, rev, lines: [...lines.values()] })
    if (bytes.length > SHARD_BYTES_LIMIT) {
      throw new KubeError('Other', 0, `keyring shard ${index} would hold ${bytes.length} bytes, above ${SHARD_BYTES_LIMIT}: raise keyring.shards`)
    }
    if (bytes.length > SHARD_BYTES_LIMIT * 0.75) warn(`keyring shard ${index} holds ${bytes.length} of ${SHARD_BYTES_LIMIT} bytes: raise keyring.shards`)
    const secret: Secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: keyringSecretName(shards, index),
        namespace,
        labels: { 'app.kubernetes.io/managed-by': 'headgate-operator', 'headgate.dev/keyring': 'true' },
        ...(former?.metadata.resourceVersion ? { resourceVersion: former.metadata.resourceVersion } : {}),
      },
      type: 'headgate.dev/keyring',
      data: { [RECORDS_KEY]: bytes.toString('base64') },
    }
    const written = former ? await kube.update(secrets, secret) : await kube.create(secrets, secret)
    onCommit?.(index, bytes.length, (performance.now() - started) / 1000)
    return written
  }

  /** @param remembered lines to keep when the Secret has vanished or is damaged (the leader's memory restores it) */
  async #read(shard: Shard, index: number, remembered: ReadonlyMap<string, KeyringLine> = new Map()): Promise<void> {
    const { kube, namespace, shards, warn } = this.#deps
    const name = keyringSecretName(shards, index)
    const secret = await kube.get(secrets, { namespace, name })
    shard.secret = secret
    shard.lines = new Map(remembered)
    const text = secret?.data?.[RECORDS_KEY]
    if (text) {
      try {
        shard.lines = new Map(decodeKeyringShard(Buffer.from(text, 'base64')).lines.map((line) => [line.uid, line]))
      } catch (error) {
        warn(`keyring Secret ${name} cannot be read (${error instanceof Error ? error.name : 'unknown'}): it will be written anew`)
      }
    }
    shard.known = true
  }
}
