/** Every Redis key name. One hash tag: a function changes a record and the log together. */
import type { RecordKind } from '../records/record-kinds.ts'

/** Names below one prefix (`hg` by default). */
export interface RedisKeys {
  /** Pattern of all of them. */
  readonly all: string
  /** Hash: schema, epoch, rev, fence, builtAt, installation. */
  readonly meta: string
  /** Stream of revisions; entry id `<rev>-0`. */
  readonly log: string
  /** Sorted set: `<pod>/<process>` → ms of its last heartbeat, by the clock of Redis. */
  readonly pods: string
  /** Hash: `<pod>/<process>` → Acknowledgement JSON. */
  readonly acks: string
  /** Hash of one epoch: uid → record JSON. */
  records(epoch: string, kind: RecordKind): string
}

/** @param prefix chart value `redis.keyPrefix` */
export function redisKeys(prefix: string): RedisKeys {
  const base = `${prefix}:{proj}:`
  return {
    all: `${base}*`,
    meta: `${base}meta`,
    log: `${base}log`,
    pods: `${base}pods`,
    acks: `${base}acks`,
    records: (epoch, kind) => `${base}${epoch}:${kind}s`,
  }
}

/** Names of one subject's ledger. One hash tag per subject, because a function sees all of them. */
export interface LedgerKeys {
  /** Hash: rolling windows of requests and tokens. */
  readonly rate: string
  /** Hash: permits of running requests, by process. */
  readonly conc: string
  /** Hash: seed, then spend and holds of each budget window. */
  readonly budget: string
  /** Hash: newest time seen, and call and batch numbers by process. */
  readonly proc: string
}

/**
 * @param prefix chart value `redis.keyPrefix`
 * @param subject uid of an ApiKey or Account, never a credential
 */
export function ledgerKeys(prefix: string, subject: string): LedgerKeys {
  const base = `${prefix}:l:{${subject}}:`
  return { rate: `${base}rate`, conc: `${base}conc`, budget: `${base}budget`, proc: `${base}proc` }
}

/** Pattern of the ledger keys of every subject. @param prefix chart value `redis.keyPrefix` */
export function ledgerPattern(prefix: string): string {
  return `${prefix}:l:*`
}

/**
 * Set of subjects that have settled a request with a budget since the operator's last read of the set. The operator reads those subjects
 * for its checkpoint at once. A lost name only makes a checkpoint older, since the operator reads all others every few seconds.
 * @param prefix chart value `redis.keyPrefix`
 */
export function settledSubjects(prefix: string): string {
  return `${prefix}:l:settled`
}

/** The log keeps about this many entries; a reader further behind reloads everything. */
export const LOG_LENGTH = 20_000
