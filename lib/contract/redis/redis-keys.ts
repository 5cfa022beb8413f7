/** Every Redis key name. One hash tag: a function changes a record and the log together. */
import type { RecordKind } from '../records/record-kinds.ts'

/** @param prefix chart value `redis.keyPrefix` */
export function redisKeys(prefix: string) {
  const base = `${prefix}:{proj}:`
  return {
    /** Pattern of all of them. */
    all: `${base}*`,
    /** Hash: schema, epoch, rev, fence, builtAt, installation. */
    meta: `${base}meta`,
    /** Stream of revisions; entry id `<rev>-0`. */
    log: `${base}log`,
    /** Sorted set: `<pod>/<process>` → ms of its last heartbeat, by the clock of Redis. */
    pods: `${base}pods`,
    /** Hash: `<pod>/<process>` → Acknowledgement JSON. */
    acks: `${base}acks`,
    /** Hash of one epoch: uid → record JSON. */
    records: (epoch: string, kind: RecordKind) => `${base}${epoch}:${kind}s`,
  }
}

export type RedisKeys = ReturnType<typeof redisKeys>

/**
 * Names of one subject's ledger. One hash tag per subject, because a function sees all of them.
 * @param prefix chart value `redis.keyPrefix`
 * @param subject uid of an ApiKey or Account, never a credential
 */
export function ledgerKeys(prefix: string, subject: string) {
  const base = `${prefix}:l:{${subject}}:`
  return {
    /** Hash: rolling windows of requests and tokens. */
    rate: `${base}rate`,
    /** Hash: permits of running requests, by process. */
    conc: `${base}conc`,
    /** Hash: seed, then spend and holds of each budget window. */
    budget: `${base}budget`,
    /**
     * Hash: the balance of an account. `T` first open period, `bh` and `bl` spend before it, `n` present period, `c:<period>:<process>` spend and
     * `s` its sum, `h:<process>` holds and `H` their sum.
     */
    balance: `${base}balance`,
    /** Hash: newest time seen, and call and batch numbers by process. */
    proc: `${base}proc`,
    /** Hash: counts by day, key and model, for the operator to take. Accounts only. */
    usage: `${base}usage`,
    /** Hash: the same, taken and not yet known to be durable. */
    taken: `${base}taken`,
    /** Hash: `n`, the number of the last take. */
    takes: `${base}takes`,
    /** Hash: numbers of the last reports by process. */
    counted: `${base}counted`,
  }
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

/** Set of accounts with usage since the operator's last read of the set. @param prefix chart value `redis.keyPrefix` */
export function usedAccounts(prefix: string): string {
  return `${prefix}:l:used`
}

/** The log keeps about this many entries; a reader further behind reloads everything. */
export const LOG_LENGTH = 20_000
