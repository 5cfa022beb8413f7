/**
 * The records of accounts and plans, durable and mounted by gateways for a cold start. They are also the memory of the operator for objects
 * that were deleted: the last record of a Plan goes on to apply, and a deleted Account stays refused.
 */
import type { AccountRecord } from '#contract/records/account-record.ts'
import { MOUNTED_SHARDS } from '#contract/records/mounted-folder.ts'
import type { PlanRecord } from '#contract/records/plan-record.ts'
import { RECORDS } from '#contract/records/record-kinds.ts'
import { parseSum } from '#contract/values/signed-micros.ts'
import { BackOff } from '#platform/back-off.ts'
import type { Clock } from '#platform/clock.ts'
import type { Level } from '../loop/level.ts'
import { MultiMap } from '../shards/multi-map.ts'
import { SecretShards, type SecretShardsDeps, type SettledListener } from '../shards/secret-shards.ts'
import { ACCOUNTS_SET, type RecordEntry } from '../shards/sets.ts'

/** Time after which a refused record is tried again, ms: each try of a full Secret costs as much as the first. */
const RETRY = { firstMs: 10_000, maxMs: 300_000 } as const

/** Kinds of records in these Secrets. */
export type AccountRecordKind = 'account' | 'plan'
type RecordIn<K extends AccountRecordKind> = K extends 'account' ? AccountRecord : PlanRecord

export interface RecordRefusal {
  readonly message: string
  /** ms until the next try; 0: now. */
  readonly retryInMs: number
}

export interface AccountRecordsDeps extends SecretShardsDeps {
  /** Default: the number that the chart mounts. */
  readonly shards?: number | undefined
}

export class AccountRecords {
  readonly #shards: SecretShards<RecordEntry>
  readonly #decoded = new WeakMap<RecordEntry, AccountRecord | PlanRecord | undefined>()
  /** uids by kind and name: also of objects that were deleted. */
  readonly #named = new MultiMap<string>()
  readonly #clock: Clock
  /** Why the newest record of an object is not durable, by uid; `untilMs` monotonic: when it may be tried again. */
  readonly #refused = new Map<string, { readonly error: Error; readonly untilMs: number; readonly backOff: BackOff }>()

  constructor(deps: AccountRecordsDeps) {
    const shards = new SecretShards<RecordEntry>({ ...ACCOUNTS_SET, ...deps, shards: deps.shards ?? MOUNTED_SHARDS })
    this.#clock = deps.clock
    shards.onSettled((uid, error) => {
      if (error) this.#refuse(uid, error)
      else this.#refused.delete(uid)
      const entry = error && shards.newest(uid)
      if (entry) this.#index(entry) // a refused removal: the record is still there
    })
    this.#shards = shards
  }

  /** @throws KubeError if the Secrets cannot be listed */
  async load(): Promise<void> {
    await this.#shards.load()
    for (const entry of this.#shards.entries()) this.#index(entry)
  }

  onSettled(listener: SettledListener): void {
    this.#shards.onSettled(listener)
  }

  /** The newest record of an object, durable or about to be. */
  get<K extends AccountRecordKind>(kind: K, uid: string): RecordIn<K> | undefined {
    const entry = this.#shards.newest(uid)
    const record = entry && this.#decode(entry)
    return record?.kind === kind ? (record as RecordIn<K>) : undefined
  }

  /** Records of all objects that have or had the name. */
  named<K extends AccountRecordKind>(kind: K, name: string): ReadonlyArray<RecordIn<K>> {
    return [...this.#named.get(`${kind} ${name}`)].flatMap((uid) => this.get(kind, uid) ?? [])
  }

  /**
   * Whether a record has more Credits than the books: a Credit is in the books before it is published.
   * @param sumOf the sum of the Credits of a name in the books
   */
  hasMoreCredits(sumOf: (name: string) => bigint): boolean {
    const present = [...this.all('account')].filter(({ state }) => state !== 'Deleted') // no later Credit changes a deleted one
    return present.some(({ name, balance }) => (parseSum(balance?.credits ?? '') ?? 0n) > sumOf(name))
  }

  textOf(uid: string): string | undefined {
    return this.#shards.newest(uid)?.text
  }

  /** The newest records of all objects, durable or about to be: a record that gateways have may wait for its Secret. */
  *all<K extends AccountRecordKind>(kind: K): IterableIterator<RecordIn<K>> {
    for (const uid of [...this.#shards.ids()]) {
      const record = this.get(kind, uid)
      if (record !== undefined) yield record
    }
  }

  /** Whether the Secrets may have a record of this object that this build cannot read. */
  isUnreadable(uid: string): boolean {
    return this.#shards.isUnreadable(uid)
  }

  /** Why the wanted text is not durable, also while it is tried again. @param text undefined: no record */
  refusal(uid: string, text: string | undefined): RecordRefusal | undefined {
    const refused = this.#refused.get(uid)
    const isDurable = this.textOf(uid) === text && this.#shards.state(uid) === 'Durable'
    return isDurable
      ? undefined
      : refused && { message: refused.error.message, retryInMs: Math.max(0, refused.untilMs - this.#clock.monotonic()) }
  }

  /** @param text undefined removes the record */
  set(uid: string, text: string | undefined, level: Level): void {
    if (this.#shards.newest(uid)?.text === text) return
    if (text === undefined) this.#remove(uid, level)
    else this.#commit({ uid, text }, level)
  }

  check(): void {
    this.#shards.check()
  }

  /** @throws the first error */
  async flush(): Promise<void> {
    await this.#shards.flush()
  }

  stop(): void {
    this.#shards.stop()
  }

  #refuse(uid: string, error: Error): void {
    const backOff = this.#refused.get(uid)?.backOff ?? new BackOff(RETRY)
    const nowMs = this.#clock.monotonic()
    this.#refused.set(uid, { error, untilMs: nowMs + backOff.next({ nowMs }), backOff })
  }

  #remove(uid: string, level: Level): void {
    const entry = this.#shards.newest(uid)
    const record = entry && this.#decode(entry)
    if (record) this.#named.delete(`${record.kind} ${record.name}`, uid)
    this.#shards.remove(uid, level)
  }

  #commit(entry: RecordEntry, level: Level): void {
    this.#shards.commit(entry, level)
    this.#index(entry)
  }

  #index(entry: RecordEntry): void {
    const record = this.#decode(entry)
    if (record) this.#named.add(`${record.kind} ${record.name}`, record.uid)
  }

  #decode(entry: RecordEntry): AccountRecord | PlanRecord | undefined {
    if (!this.#decoded.has(entry)) this.#decoded.set(entry, decoded(entry.text))
    return this.#decoded.get(entry)
  }
}

/** @returns undefined for a record of another version, which stays as it is, and for a damaged one */
function decoded(text: string): AccountRecord | PlanRecord | undefined {
  for (const kind of ['account', 'plan'] as const) {
    try {
      return RECORDS[kind].decode(text)
    } catch {
      continue
    }
  }
  return undefined
}
