/**
 * The start of a gateway with 100,000 keys, in Redis and in the mounted keyring: the time from the start of the process until the gateway is
 * ready, and its peak memory. Then the same while Redis is down.
 */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { RedisConnection } from '#platform/redis-connection.ts'
import { encodeKeyRecord } from '#contract/records/key-record.ts'
import { writeKeyringEntry } from '#contract/records/keyring-entry.ts'
import { KEYRING_FOLDER, MODELS_FOLDER, MOUNTED_SHARDS } from '#contract/records/mounted-folder.ts'
import { packShard } from '#contract/records/shard-text.ts'
import { RedisProjectionStore } from '../../operator/projection/redis-projection-store.ts'
import { shardOf } from '../../operator/shards/shard-of.ts'
import { freePorts } from '../support/free-port.ts'
import { imageFlags } from '../support/image-flags.ts'
import { KeyringFolder } from '../support/keyring-folder.ts'
import { ManagedProcess } from '../support/managed-process.ts'
import { type IssuedKey, issuedKey, keyringEntry, writer } from '../support/records.ts'
import { RedisPart } from '../support/redis-part.ts'
import { waitFor } from '../support/wait-for.ts'
import { type Bound, compared } from './operator-report.ts'
import type { PartResult, Progress } from './operator-parts.ts'
import { memory, toMib } from './proc.ts'

const SHARDS = 64
/** The gateway reads the mounted folder periodically, so its memory may peak after the start, ms. */
const SETTLED_AFTER_MS = 10_000
const READY_TIME: Bound = { name: 'ready', unit: 's', must: 5 }
const PEAK_MEMORY: Bound = { name: 'VmHWM', unit: 'MiB', must: 512 }

/** Where the benchmark runs. */
export interface ColdStartSite {
  readonly ip: string
  /** Run folder; has `dist/` with the bundles. */
  readonly folder: string
}

interface ColdStart {
  readonly readySeconds: number
  readonly peakMib: number
}

/** @param keys number of keys in Redis and in the keyring */
export async function coldStartPart(site: ColdStartSite, keys: number, say: Progress): Promise<PartResult> {
  say(`cold-start: ${keys} keys are made`)
  const issued = Array.from({ length: keys }, () =>
    issuedKey(randomUUID(), { namespace: 'team-chat', models: [['llama-3-70b', 'embed-*']] }),
  )
  const folder = new KeyringFolder()
  const redis = await RedisPart.start(join(site.folder, 'redis-cold-start'), site.ip)
  try {
    folder.publish(await keyringFiles(issued))
    await fill(redis, issued)
    const credential = issued.at(-1)?.credential ?? ''
    const withRedis = await coldStart(site, { redis, folder, credential })
    await redis.stop()
    const withoutRedis = await coldStart(site, { redis, folder, credential })
    return report(keys, { withRedis, withoutRedis })
  } finally {
    await redis.stop()
    folder.remove()
  }
}

async function keyringFiles(issued: readonly IssuedKey[]): Promise<Record<string, Buffer>> {
  const lines = Array.from({ length: SHARDS }, (): string[] => [])
  for (const { record } of issued) lines[shardOf(record.uid, SHARDS)]?.push(writeKeyringEntry(keyringEntry(record)))
  const files = lines.map(async (some, shard) => [`${KEYRING_FOLDER}/${SHARDS}-${shard}`, await packShard({ shards: SHARDS, shard }, some)])
  const noModels = await packShard({ shards: MOUNTED_SHARDS, shard: 0 }, []) // without a shard of models, the gateway does not know which models exist
  return { ...(Object.fromEntries(await Promise.all(files)) as Record<string, Buffer>), [`${MODELS_FOLDER}/${MOUNTED_SHARDS}-0`]: noModels }
}

async function fill(redis: RedisPart, issued: readonly IssuedKey[]): Promise<void> {
  const { REDIS_URL, REDIS_USERNAME, REDIS_PASSWORD } = redis.envFor('operator')
  const settings = { url: REDIS_URL, username: REDIS_USERNAME, password: REDIS_PASSWORD }
  const store = new RedisProjectionStore(new RedisConnection(settings, 'bench', { commandMs: 60_000 }), 'hg')
  const changes = issued.map(({ record }) => ({ kind: 'key', op: 'put', id: record.uid, text: encodeKeyRecord(record) }) as const)
  try {
    const { outcome } = await store.rebuild(writer(), 'bench', 1, changes)
    if (outcome !== 'written') throw new Error(`the projection could not be filled: ${outcome}`)
  } finally {
    await store.close()
  }
}

interface Surroundings {
  readonly redis: RedisPart
  readonly folder: KeyringFolder
  /** Credential of a key that the gateway must know once it is ready. */
  readonly credential: string
}

async function coldStart({ ip, folder }: ColdStartSite, { redis, folder: { path }, credential }: Surroundings): Promise<ColdStart> {
  const [port = 0, metricsPort = 0] = await freePorts(2)
  const pod = { POD_NAME: 'bench', PORT: String(port), METRICS_PORT: String(metricsPort), NODE_ENV: 'production' }
  const env = { ...redis.envFor('gateway'), ...pod, KEYRING_DIR: path, DEREGISTRATION_SECONDS: '0' }
  const argv = [process.execPath, ...imageFlags('gateway'), join(folder, 'dist/gateway.js')]
  const gateway = new ManagedProcess({ name: 'gateway-cold-start', argv, env, logFile: join(folder, 'gateway-cold-start.log') })
  const started = performance.now()
  await gateway.start()
  try {
    await waitFor('the gateway to be ready', async () => (await fetch(`http://${ip}:${metricsPort}/readyz`)).ok, {
      deadlineMs: 60_000,
      everyMs: 20,
    })
    const readySeconds = (performance.now() - started) / 1000
    const { status } = await fetch(`http://${ip}:${port}/v1/models`, { headers: { authorization: `Bearer ${credential}` } })
    if (status !== 200) throw new Error(`the gateway is ready and answers ${status} to a key that it should know`)
    await sleep(SETTLED_AFTER_MS)
    return { readySeconds, peakMib: toMib(memory([gateway.pid]).peakRssMb) }
  } finally {
    await gateway.stop()
  }
}

function report(keys: number, starts: Readonly<Record<'withRedis' | 'withoutRedis', ColdStart>>): PartResult {
  const { withRedis, withoutRedis } = starts
  const line = (way: string, { readySeconds, peakMib }: ColdStart): string =>
    `  ${way}: ready after ${readySeconds.toFixed(2)} s, VmHWM ${peakMib.toFixed(0)} MiB`
  const text = [
    `cold-start: a gateway with ${keys} keys in ${SHARDS} mounted shards`,
    line('with Redis', withRedis),
    `${line('without Redis', withoutRedis)} (it waits 5 s for a projection first)`,
    `  ready with Redis: ${compared(READY_TIME, withRedis.readySeconds)}`,
    `  VmHWM, the higher of both: ${compared(PEAK_MEMORY, Math.max(withRedis.peakMib, withoutRedis.peakMib))}`,
  ].join('\n')
  const isMissed = withRedis.readySeconds > READY_TIME.must || Math.max(withRedis.peakMib, withoutRedis.peakMib) > PEAK_MEMORY.must
  return { text, isMissed, data: starts }
}
