/**
 * Fills a Redis, and optionally a mounted keyring, as the operator of this clone would, and writes the Credentials into files. A program of its
 * own, so that another clone fills its Redis in its own formats.
 *
 *   node test/bench/fill.ts '<FillOrder as JSON>'
 */
import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ledgerFunctions } from '#contract/ledger/ledger-functions.ts'
import { LEDGER_TIMING } from '#contract/ledger/ledger-layout.ts'
import { encodeAccountRecord } from '#contract/records/account-record.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { writeKeyringEntry } from '#contract/records/keyring-entry.ts'
import { KEYRING_FOLDER, MODELS_FOLDER, MOUNTED_SHARDS } from '#contract/records/mounted-folder.ts'
import { encodePlanRecord } from '#contract/records/plan-record.ts'
import { CALL_ROUTES } from '#contract/values/call-routes.ts'
import { packShard } from '../support/pack-shard.ts'
import { ledgerKeys } from '#contract/redis/redis-keys.ts'
import { RedisConnection } from '#platform/redis-connection.ts'
import { Redis } from 'ioredis'
import { RedisProjectionStore } from '../../operator/projection/redis-projection-store.ts'
import { shardOf } from '../../operator/shards/shard.ts'
import { backendRecord, type IssuedKey, issuedKey, keyringEntry, modelText, recordText, writer } from '../support/records.ts'

/** The order to the program. Other clones must understand it. */
export interface FillOrder {
  readonly redis: { readonly url: string; readonly username: string; readonly password: string }
  /** Gets a file `keys-<kind>` for each kind, with one Credential a line. */
  readonly folder: string
  /** Number of keys by their limits. `refused`: one request a minute. `shared`: the limits of `limited`, and those of one of ten accounts. */
  readonly keys: Readonly<Record<'bare' | 'limited' | 'refused' | 'shared', number>>
  /** Address and price of a million tokens by the name of the model, in millionths of the currency. */
  readonly models: Readonly<Record<string, { readonly url: string; readonly price: number }>>
  /** Also writes the keyring into this folder, as a kubelet mounts it. */
  readonly keyring?: string
}

/** The servers speak no Messages: a gateway translates. */
const ROUTES = CALL_ROUTES.filter((route) => route !== 'messages')
const MANY = 1_000_000_000
const SHARDS = 64
const SEEDED_AT_ONCE = 500
const WIDE: Pick<KeyRecord, 'limits' | 'budgets'> = {
  limits: { requestsPerMinute: MANY, tokensPerMinute: 1_000 * MANY },
  budgets: [{ name: 'monthly', unit: 'Currency', window: 'Month', timeZone: 'UTC', amount: 900_000 * MANY, onExceeded: 'Block' }],
}
const ACCOUNTS = 10
const PLAN = 'plan'
const LIMITS: Readonly<Record<keyof FillOrder['keys'], (at: number) => Partial<KeyRecord>>> = {
  bare: () => ({}),
  limited: () => WIDE,
  refused: () => ({ limits: { requestsPerMinute: 1 } }),
  shared: (at) => ({ ...WIDE, account: accountOf(at) }),
}
const accountOf = (at: number): string => `account-${at % ACCOUNTS}`

async function fill({ redis, folder, keys, models, keyring }: FillOrder): Promise<void> {
  const kinds = ['bare', 'limited', 'refused', 'shared'] as const
  const issued = kinds.map((kind) => Array.from({ length: keys[kind] }, (_, at) => issuedKey(randomUUID(), LIMITS[kind](at))))
  for (const [at, kind] of kinds.entries()) {
    const credentials = (issued[at] ?? []).map(({ credential }) => credential)
    writeFileSync(join(folder, `keys-${kind}`), credentials.join('\n'), { mode: 0o600 })
  }
  const all = issued.flat()
  const accounts = Array.from({ length: ACCOUNTS }, (_, at) => accountOf(at))
  await seedBudgets(redis, [...all.flatMap(({ record }) => (record.budgets ? [record.uid] : [])), ...accounts])
  const head = { version: 1, revision: 0, generation: 1 }
  const plan = encodePlanRecord({ ...head, kind: 'plan', uid: PLAN, name: PLAN, models: ['*'] })
  await project(redis, [
    { kind: 'plan', op: 'put', id: PLAN, text: plan },
    ...accounts.map((uid) => {
      const text = encodeAccountRecord({ ...head, kind: 'account', uid, name: uid, state: 'Active', plan: PLAN, ledger: uid, ...WIDE })
      return { kind: 'account' as const, op: 'put' as const, id: uid, text }
    }),
    ...all.map(({ record }) => ({ kind: 'key' as const, op: 'put' as const, id: record.uid, text: recordText(record) })),
    ...Object.entries(models).map(([name, model]) => ({ kind: 'model' as const, op: 'put' as const, id: name, text: textOf(name, model) })),
  ])
  if (keyring !== undefined) await writeKeyring(keyring, all)
}

/** A gateway refuses a budget that the operator has not seeded. */
async function seedBudgets({ url, username, password }: FillOrder['redis'], uids: readonly string[]): Promise<void> {
  const redis = new Redis(url, { username, password })
  const { code, seed } = ledgerFunctions('hg', LEDGER_TIMING)
  await redis.call('FUNCTION', 'LOAD', 'REPLACE', code)
  for (let from = 0; from < uids.length; from += SEEDED_AT_ONCE) {
    await Promise.all(uids.slice(from, from + SEEDED_AT_ONCE).map((uid) => redis.fcall(seed, 1, ledgerKeys('hg', uid).budget, 'seed-1')))
  }
  redis.disconnect()
}

async function project(redis: FillOrder['redis'], changes: Parameters<RedisProjectionStore['rebuild']>[3]): Promise<void> {
  const store = new RedisProjectionStore(new RedisConnection(redis, 'bench', { commandMs: 60_000 }), 'hg')
  try {
    const { outcome } = await store.rebuild(writer(), 'bench', 1, changes)
    if (outcome !== 'written') throw new Error(`the projection could not be filled: ${outcome}`)
  } finally {
    await store.close()
  }
}

function textOf(name: string, { url, price }: FillOrder['models'][string]): string {
  const pricing = { inputPerMillion: price, outputPerMillion: price, cachedInputPerMillion: price }
  return modelText(name, { backends: [backendRecord({ url, upstreamModel: name, routes: ROUTES })], pricing })
}

async function writeKeyring(folder: string, issued: readonly IssuedKey[]): Promise<void> {
  const lines = Array.from({ length: SHARDS }, (): string[] => [])
  for (const { record } of issued) lines[shardOf(record.uid, SHARDS)]?.push(writeKeyringEntry(keyringEntry(record)))
  const write = (path: string, bytes: Uint8Array): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), bytes)
  }
  for (const [shard, some] of lines.entries())
    write(`${KEYRING_FOLDER}/${SHARDS}-${shard}`, await packShard({ shards: SHARDS, shard }, some))
  write(`${MODELS_FOLDER}/${MOUNTED_SHARDS}-0`, await packShard({ shards: MOUNTED_SHARDS, shard: 0 }, [])) // without a shard of models, the gateway does not know which models exist
}

await fill(JSON.parse(process.argv[2] ?? '') as FillOrder) // written by gateways.ts
