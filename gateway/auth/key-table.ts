import { hashCredential, type KeyHash, type KeyProof, proofOf } from '#contract/values/credential.ts'
import { hasUnmetNeeds } from '#contract/records/format.ts'
import { hasSameLimits } from '#contract/records/limits-record.ts'
import { decodeKeyRecord, type KeyRecord } from '#contract/records/key-record.ts'
import { isLive, keyRecordOf, type KeyringEntry } from '#contract/records/keyring-entry.ts'
import type { RecordLoad, RecordTable } from '../projection/projection-source.ts'
import type { LimitSubject } from '#policy/effective.ts'
import { TurnTaker } from '../http/request-turns.ts'
import { type ShareOwner, tenantOf } from '../http/shares.ts'

const MAX_INTERNED = 10_000

/** An authenticated key. No header or field besides the Credential has an influence on it. */
export interface Caller {
  readonly record: KeyRecord
  readonly hash: KeyHash
  /** Public id of the Credential in use. Logs may show it. */
  readonly keyID: string
  /** Time from which the key or this Credential no longer works, ms since 1970. Infinity: never. */
  readonly expiresAt: number
  /** What limits the calls of a key with an account, the key first; undefined for a key without an account, whose record says it. */
  readonly subjects?: readonly LimitSubject[] | undefined
  /** Name of its account in the ledger, under which its calls are counted. */
  readonly account?: string | undefined
  /** What the manifest says about the value; undefined for a key that alone has the hash. */
  readonly claim?: Claim | undefined
  /** Whose shares of the process its requests take. */
  readonly owner: ShareOwner
  /** Its turns among all keys whose requests start (`http/request-turns.ts`). */
  readonly turns: TurnTaker
}

/** A proof in a manifest, and whether it was made from the value: the first request with the value tells. */
interface Claim {
  readonly proof: KeyProof
  readonly createdMs: number
  isProven: boolean | undefined
}

/** @param uid of the ApiKey */
type KeyChanged = (uid: string, how: 'changed' | 'deleted') => void

export function* callersOf(record: KeyRecord): Iterable<[KeyHash, Caller]> {
  const owner = { tenant: tenantOf(record), key: record.uid }
  for (const { id, hash, expiresMs, proof, createdMs = 0 } of record.verifiers) {
    const expiresAt = Math.min(record.expiresMs ?? Infinity, expiresMs ?? Infinity)
    const claim = proof && { proof, createdMs, isProven: undefined }
    yield [hash, { record, hash, keyID: id, expiresAt, claim, owner, turns: new TurnTaker() }]
  }
}

/** Whether the proof was made from the Credential. The answer stays true, because only one Credential has the hash. */
function isProven({ claim, record }: Caller, credential: string): boolean {
  if (claim === undefined) return false
  claim.isProven ??= proofOf(credential, record) === claim.proof
  return claim.isProven
}

/** All keys by KeyHash. The projection fills the table, or at a cold start the mounted keyring, whose revocations always count. */
export class KeyTable implements RecordTable {
  readonly #onChanged: KeyChanged
  #keys = new KeySet()
  #fromProjection = false
  /** Deleted keys by the hashes of their values. */
  #tombstones: ReadonlyMap<KeyHash, KeyringEntry> = new Map()
  readonly #interned = new Map<string, KeyRecord['models']>()

  /** @param onChanged called when a change deletes a key, makes it unusable, or changes its limits */
  constructor(onChanged: KeyChanged = () => undefined) {
    this.#onChanged = onChanged
  }

  /**
   * Finds the Caller of a Credential. Any number of keys may name its hash with a proof, and of those whose proof matches the first one
   * counts; another key is admitted by the hash alone. `authenticate.ts` checks whether the key is usable now.
   */
  find(credential: string): Caller | undefined {
    const hash = hashCredential(credential)
    const claimants = this.#keys.claimants.get(hash)
    return claimants?.find((one) => isProven(one, credential)) ?? this.#keys.byHash.get(hash)
  }

  /** The newest Caller of a running call: of the same key, if others have the same hash. */
  current({ hash, claim, record: { uid } }: Caller): Caller | undefined {
    if (claim === undefined) return this.#keys.byHash.get(hash)
    return this.#keys.claimants.get(hash)?.find((one) => one.record.uid === uid && one.claim?.proof === claim.proof)
  }

  /** Whether any key names the hash of a Credential with a proof. */
  isClaimed(credential: string): boolean {
    return this.#keys.claimants.has(hashCredential(credential))
  }

  /** The deleted key that a Credential belonged to, if the mounted keyring still has its tombstone. */
  tombstone(credential: string): { readonly entry: KeyringEntry; readonly keyID: string } | undefined {
    if (this.#tombstones.size === 0) return undefined
    const hash = hashCredential(credential)
    const entry = this.#tombstones.get(hash)
    return entry && { entry, keyID: entry.verifiers.find((one) => one.hash === hash)?.id ?? '' }
  }

  get size(): number {
    return this.#keys.records.size
  }

  put(id: string, text: string): boolean {
    const former = this.#keys.records.get(id)
    const record = this.#read(id, text)
    if (record) this.#keys.put(record)
    if (record && isEnded(former, record)) this.#onChanged(id, 'changed')
    if (!record && hasUnmetNeeds(text)) this.delete(id)
    return record !== undefined
  }

  delete(id: string): void {
    this.#keys.delete(id)
    this.#onChanged(id, 'deleted')
  }

  has(id: string): boolean {
    return this.#keys.records.has(id)
  }

  load(): RecordLoad {
    const fresh = new KeySet()
    fresh.override(this.#keys.overrides)
    const unreadable = new Set<string>()
    return {
      put: (id, text) => {
        const record = this.#read(id, text)
        if (record) fresh.put(record)
        if (record || hasUnmetNeeds(text)) unreadable.delete(id)
        else unreadable.add(id)
        if (!record && !unreadable.has(id)) fresh.delete(id)
        return record !== undefined
      },
      delete: (id) => {
        fresh.delete(id)
        unreadable.delete(id)
      },
      commit: () => {
        const lastGood = [...unreadable].flatMap((id) => (fresh.records.has(id) ? [] : (this.#keys.records.get(id) ?? [])))
        for (const record of lastGood) fresh.put(record)
        fresh.override(this.#keys.overrides) // the overrides may have changed during the load
        const former = this.#keys.records
        this.#keys = fresh
        this.#fromProjection = true
        this.#reportChanges(former)
      },
    }
  }

  /** Adds all keys until the projection is loaded. Keys that later entries lack stay: the files may be older than the loaded keys. */
  seed(entries: readonly KeyringEntry[]): void {
    const newest = byUid(entries)
    for (const entry of this.#fromProjection ? [] : newest.values()) {
      const former = this.#keys.records.get(entry.uid)
      if (former && former.generation > entry.generation) continue
      const record = keyRecordOf(entry)
      this.#keys.delete(record.uid) // `generation` decides, because revisions of the keyring may be older than those of the log
      this.#keys.put({ ...record, models: this.#intern(record.models) })
    }
    this.#override(newest)
  }

  /** Applies the keyring to known keys: its revocations always, the rest where its `generation` is higher than that of the projection. */
  override(entries: readonly KeyringEntry[]): void {
    this.#override(byUid(entries))
  }

  /**
   * Whether an entry of the keyring changes what the projection says about its key, now or once the projection has the key. Records of one key never
   * become older, so an entry that changes nothing will not.
   */
  isNeeded(entry: KeyringEntry): boolean {
    const base = this.#keys.records.get(entry.uid)
    return isRevoked(entry) || base === undefined || inForce(base, entry) !== base
  }

  /** Entries that can change nothing are not kept in memory. */
  #override(overrides: Map<string, KeyringEntry>): void {
    for (const [uid, entry] of overrides) if (!isRevoked(entry) && !(this.has(uid) && this.isNeeded(entry))) overrides.delete(uid)
    this.#keys.override(overrides)
    const deleted = [...overrides.values()].filter(({ deletedMs }) => deletedMs !== null)
    this.#tombstones = new Map(deleted.flatMap((entry) => entry.verifiers.map(({ hash }) => [hash, entry])))
  }

  /** A load replaces all records at once, so changes of single keys were never seen one by one. */
  #reportChanges(former: ReadonlyMap<string, KeyRecord>): void {
    for (const [uid, record] of former) {
      const next = this.#keys.records.get(uid)
      if (next === undefined) this.#onChanged(uid, 'deleted')
      else if (isEnded(record, next)) this.#onChanged(uid, 'changed')
    }
  }

  /** Decodes a record. @returns undefined for text that this version cannot read */
  #read(id: string, text: string): KeyRecord | undefined {
    try {
      const record = decodeKeyRecord(text)
      return record.uid === id ? { ...record, models: this.#intern(record.models) } : undefined
    } catch {
      return undefined // the caller reports the uid in its heartbeat, and the operator reads it there
    }
  }

  /** Returns one shared copy of equal lists: thousands of keys have the same lists, and share their compiled form too. */
  #intern(models: KeyRecord['models']): KeyRecord['models'] {
    const text = JSON.stringify(models)
    const known = this.#interned.get(text)
    if (known) return known
    if (this.#interned.size >= MAX_INTERNED) this.#interned.clear()
    this.#interned.set(text, models)
    return models
  }
}

/** Whether what a process has leased under the former record of a key must go back. */
function isEnded(former: KeyRecord | undefined, record: KeyRecord): boolean {
  return record.state !== 'Active' || !hasSameLimits(former, record)
}

/** A set of keys with an index by hash: the set in use, or the set that a load builds beside it. */
class KeySet {
  readonly records = new Map<string, KeyRecord>()
  /** Keys without a proof by hash, after the overrides of the keyring. */
  readonly byHash = new Map<KeyHash, Caller>()
  /** Keys with a proof by hash, in the order in which they took it. */
  readonly claimants = new Map<KeyHash, readonly Caller[]>()
  overrides: ReadonlyMap<string, KeyringEntry> = new Map()

  /** Stores a record unless the set has a newer one of the same key: batches of a load and entries of the log overlap. */
  put(record: KeyRecord): void {
    const former = this.records.get(record.uid)
    if (former && former.revision > record.revision) return
    if (former) this.#unindex(former)
    this.records.set(record.uid, record)
    this.#index(record)
  }

  delete(uid: string): void {
    const former = this.records.get(uid)
    if (former) this.#unindex(former)
    this.records.delete(uid)
  }

  override(next: ReadonlyMap<string, KeyringEntry>): void {
    const touched = new Set([...this.overrides.keys(), ...next.keys()])
    const records = [...touched].flatMap((uid) => this.records.get(uid) ?? [])
    for (const record of records) this.#unindex(record)
    this.overrides = next
    for (const record of records) this.#index(record)
  }

  #index(record: KeyRecord): void {
    const live = inForce(record, this.overrides.get(record.uid))
    for (const [hash, caller] of callersOf(live)) {
      if (caller.claim === undefined) this.byHash.set(hash, caller)
      else this.claimants.set(hash, [...(this.claimants.get(hash) ?? []), caller].toSorted(byAge))
    }
  }

  #unindex(record: KeyRecord): void {
    const live = inForce(record, this.overrides.get(record.uid))
    for (const { hash } of live.verifiers) {
      if (this.byHash.get(hash)?.record.uid === record.uid) this.byHash.delete(hash)
      const others = this.claimants.get(hash)?.filter((one) => one.record.uid !== record.uid) ?? []
      if (others.length > 0) this.claimants.set(hash, others)
      else this.claimants.delete(hash)
    }
  }
}

/** Every gateway must put two claims in one order. */
function byAge(a: Caller, b: Caller): number {
  const age = (a.claim?.createdMs ?? 0) - (b.claim?.createdMs ?? 0)
  return age === 0 ? Number(a.record.uid > b.record.uid) - Number(a.record.uid < b.record.uid) : age
}

/** The entry that counts for each key. A change of the shard count leaves two: a revoked one wins, then the newer one. */
function byUid(entries: readonly KeyringEntry[]): Map<string, KeyringEntry> {
  const found = new Map<string, KeyringEntry>()
  for (const entry of entries) {
    const former = found.get(entry.uid)
    if (!former || isAbove(entry, former)) found.set(entry.uid, entry)
  }
  return found
}

function isAbove(next: KeyringEntry, former: KeyringEntry): boolean {
  if (isRevoked(next) !== isRevoked(former)) return isRevoked(next)
  if (next.generation !== former.generation) return next.generation > former.generation
  return next.revision > former.revision
}

/** Deleted or Revoked. That is final and outlasts every load. */
function isRevoked({ deletedMs, state }: KeyringEntry): boolean {
  return deletedMs !== null || state === 'Revoked'
}

/** The keyring's entry counts where its `generation` is higher: Redis is older than the keyring, or does not answer. */
function inForce(base: KeyRecord, entry: KeyringEntry | undefined): KeyRecord {
  if (!entry) return base
  if (isRevoked(entry)) return { ...base, state: 'Revoked' } // the verifiers stay, so that a client with the value of the key gets "revoked" as the reason
  if (entry.generation > base.generation) return keyRecordOf(entry)
  const dead = entry.verifiers.filter((verifier) => !isLive(verifier)).map(({ id }) => id)
  return dead.length === 0 ? base : { ...base, verifiers: base.verifiers.filter(({ id }) => !dead.includes(id)) }
}
