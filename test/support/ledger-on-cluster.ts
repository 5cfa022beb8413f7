/** The ledger's library on a real Redis Cluster, with a clock that tests may set. */
import type { Cluster } from 'ioredis'
import type { LedgerStore } from '../../gateway/limits/ledger-store.ts'
import { RedisLedgerStore } from '../../gateway/limits/redis-ledger.ts'
import { ledgerFunctions } from '#contract/ledger/ledger-functions.ts'
import { ledgerKeys } from '#contract/redis/redis-keys.ts'
import type { LedgerStoreSubject } from '../contract/ledger-store.suite.ts'
import { nameOf, type RedisCluster } from './redis-cluster.ts'
import type { RedisPart } from './redis-part.ts'

/** A prefix other than that of the product, since the library with a settable clock is loaded beside the real one. */
const PREFIX = 'clocked'
const FUNCTIONS = ledgerFunctions(PREFIX)
const SET_CLOCK = `${FUNCTIONS.library}_set_clock`

/** The clock is a variable of the library: a key for it would be in another slot than the subject of a call. */
const CODE = [
  FUNCTIONS.code
    .replace('\n', '\nlocal set_now_ms = 0\n')
    .replace(`redis.call('TIME')`, '{ math.floor(set_now_ms / 1000), (set_now_ms % 1000) * 1000 }'),
  `local function set_clock_(_, args) set_now_ms = tonumber(args[1]) return 1 end`,
  `redis.register_function{ function_name = '${SET_CLOCK}', callback = set_clock_, flags = { 'no-writes' } }`,
].join('\n')

/** Loads the library with the settable clock on every primary. */
export async function loadClockedLedger({ nodes }: RedisCluster): Promise<void> {
  for (const { admin } of nodes) await admin.call('FUNCTION', 'LOAD', 'REPLACE', CODE)
}

/**
 * An empty ledger whose subject `s` is on one primary.
 * @param client knows the Cluster, in which `loadClockedLedger` has loaded the library
 */
export async function clockedLedger(cluster: RedisCluster, client: Cluster, primary: RedisPart): Promise<LedgerStoreSubject> {
  await cluster.flush()
  const store = new RedisLedgerStore(client, PREFIX)
  const on = nameOf(primary)
  const place = Array.from({ length: 100 }, (_, at) => `${at}-`).find((prefix) => store.nodeOf(`${prefix}s`) === on)
  if (place === undefined) throw new Error(`no subject of a hundred is on ${on}`)
  const keysOf = (subject: string) => ledgerKeys(PREFIX, place + subject)
  const call = (name: string, subject: string, args: readonly string[]) => client.fcall(name, 1, keysOf(subject).budget, ...args)
  return {
    store: withSubjects(store, (subject) => place + subject),
    setClock: async (nowMs) => {
      await Promise.all(cluster.nodes.map(({ admin }) => admin.fcall(SET_CLOCK, 0, String(nowMs))))
    },
    seed: (subject, seed, checkpoints = []) =>
      call(FUNCTIONS.seed, subject, [seed, ...checkpoints.flatMap(([field, spent]) => [field, String(spent)])]),
    reap: (subject, process) => call(FUNCTIONS.reap, subject, [process]),
    forget: (subject, fields) => call(FUNCTIONS.forget, subject, fields),
    wipe: (subject) => client.del(...Object.values(keysOf(subject))),
  }
}

function withSubjects(store: LedgerStore, named: (subject: string) => string): LedgerStore {
  return {
    call: (call) => store.call({ ...call, subject: named(call.subject) }),
    nodeOf: (subject) => store.nodeOf(named(subject)),
    ping: (node) => store.ping(node),
  }
}
