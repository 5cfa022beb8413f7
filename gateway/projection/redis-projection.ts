/** ProjectionSource in Redis. This is the reading side; the operator writes. */
import { z } from 'zod'
import { refuseEviction, RedisConnection, StoreUnavailable, type RedisSettings } from '#platform/redis-connection.ts'
import { redisKeys, type RedisKeys } from '#contract/redis/redis-keys.ts'
import { redisFunctions, type RedisFunctions } from '#contract/redis/redis-functions.ts'
import type { RecordKind } from '#contract/records/record-kinds.ts'
import { encodeAcknowledgement, type Acknowledgement, type LogEntry, type ProjectionMeta } from '#contract/records/revision-log.ts'
import type { OnBatch, ProjectionSource, RecordBatch } from './projection-source.ts'

const COMMAND_MS = 1_000
const LONGEST_READ_WAIT_MS = 1_000
const SCAN_COUNT = 1_000
const READ_COUNT = 500
/** Records per HMGET, to bound the size of one reply. */
const FETCH_COUNT = 100

const wholeNumber = z
  .string()
  .regex(/^\d{1,15}$/)
  .transform(Number)
const metaReply = z.tuple([wholeNumber, z.string().min(1), wholeNumber, wholeNumber, z.string().nullable()])
const scanReply = z.tuple([z.string(), z.array(z.string())])
const entryReply = z.tuple([z.string(), z.array(z.string())])
const readReply = z.array(z.tuple([z.string(), z.array(entryReply)])).nullable()
const entryFields = z.object({ k: z.string(), op: z.enum(['put', 'del']), id: z.string().min(1) })
const fetchReply = z.array(z.string().nullable())

/** Reads the projection over two connections, because a blocking read would delay all commands behind it. */
export class RedisProjectionSource implements ProjectionSource {
  readonly #keys: RedisKeys
  readonly #functions: RedisFunctions
  readonly #commands: RedisConnection
  readonly #reads: RedisConnection
  #isPolicyChecked = false

  /** @throws Misconfigured when the CA file of the settings cannot be read */
  constructor(settings: RedisSettings, keyPrefix: string) {
    this.#keys = redisKeys(keyPrefix)
    this.#functions = redisFunctions(keyPrefix)
    this.#commands = new RedisConnection(settings, 'headgate-gateway', { commandMs: COMMAND_MS })
    this.#reads = new RedisConnection(settings, 'headgate-gateway-log', { commandMs: LONGEST_READ_WAIT_MS + COMMAND_MS })
  }

  async meta(): Promise<ProjectionMeta | undefined> {
    return await this.#commands.run(async (redis) => {
      if (!this.#isPolicyChecked) await refuseEviction(redis)
      this.#isPolicyChecked = true // once per process: servers rarely change it
      const reply = await redis.hmget(this.#keys.meta, 'schema', 'epoch', 'rev', 'fence', 'installation')
      if (reply.every((field) => field === null)) return undefined
      const [schema, epoch, revision, fence, installation] = parsed(metaReply, reply, this.#keys.meta)
      return { schema, epoch, revision, fence, installation: installation ?? '' }
    })
  }

  async scan(epoch: string, kind: RecordKind, onBatch: OnBatch): Promise<void> {
    const key = this.#keys.records(epoch, kind)
    let cursor = '0'
    do {
      const reply = await this.#commands.run((redis) => redis.hscan(key, cursor, 'COUNT', SCAN_COUNT))
      const [next, flat] = parsed(scanReply, reply, key)
      await onBatch(pairs(flat))
      cursor = next
    } while (cursor !== '0')
  }

  async read(revision: number, waitMs: number): Promise<readonly LogEntry[]> {
    const { log } = this.#keys
    const block = Math.min(waitMs, LONGEST_READ_WAIT_MS)
    const reply = await this.#reads.run((redis) =>
      block > 0 // BLOCK 0 waits without end
        ? redis.xread('COUNT', READ_COUNT, 'BLOCK', block, 'STREAMS', log, `${revision}-0`)
        : redis.xread('COUNT', READ_COUNT, 'STREAMS', log, `${revision}-0`),
    )
    const [stream] = parsed(readReply, reply, log) ?? []
    return (stream?.[1] ?? []).map((entry) => logEntry(entry, log))
  }

  async records(epoch: string, kind: RecordKind, ids: readonly string[]): Promise<Map<string, string>> {
    const key = this.#keys.records(epoch, kind)
    const found = new Map<string, string>()
    for (let at = 0; at < ids.length; at += FETCH_COUNT) {
      const asked = ids.slice(at, at + FETCH_COUNT)
      const texts = parsed(fetchReply, await this.#commands.run((redis) => redis.hmget(key, ...asked)), key)
      asked.forEach((id, index) => {
        const text = texts[index] ?? undefined
        if (text !== undefined) found.set(id, text)
      })
    }
    return found
  }

  async heartbeat(process: string, acknowledgement: Acknowledgement): Promise<void> {
    const { pods, acks } = this.#keys
    await this.#commands.run((redis) =>
      redis.fcall(this.#functions.heartbeat, 2, pods, acks, process, encodeAcknowledgement(acknowledgement)),
    )
  }

  async leave(process: string): Promise<void> {
    await this.#commands.run((redis) => redis.fcall(this.#functions.leave, 2, this.#keys.pods, this.#keys.acks, process))
  }

  async close(): Promise<void> {
    this.#commands.close()
    this.#reads.close()
  }
}

function pairs(flat: readonly string[]): RecordBatch {
  const all: Array<readonly [string, string]> = []
  for (let i = 0; i + 1 < flat.length; i += 2) all.push([flat[i] ?? '', flat[i + 1] ?? ''])
  return all
}

function logEntry([streamID, flat]: z.infer<typeof entryReply>, log: string): LogEntry {
  const revision = parsed(wholeNumber, streamID.replace(/-0$/, ''), log)
  const { k: kind, op, id } = parsed(entryFields, Object.fromEntries(pairs(flat)), log)
  return { revision, kind, op, id }
}

/** @throws StoreUnavailable for a reply of another shape: another program uses these keys, or another version wrote them */
function parsed<T>(schema: z.ZodType<T>, reply: unknown, key: string): T {
  const result = schema.safeParse(reply)
  if (result.success) return result.data
  throw new StoreUnavailable(
    `Redis key ${key} has a content that this gateway does not know; check REDIS_KEY_PREFIX and the version of the operator`,
  )
}
