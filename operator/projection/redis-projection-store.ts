/** The ProjectionStore in Redis: the writing side. `gateway/auth/redis-projection.ts` is the reading side. */
import type { Redis } from 'ioredis'
import { z } from 'zod'
import { PROJECTION_SCHEMA } from '#contract/records/format.ts'
import type { RedisConnection } from '#platform/redis-connection.ts'
import { redisFunctions, type RedisFunctions } from '#contract/redis/redis-functions.ts'
import { LOG_LENGTH, redisKeys, type RedisKeys } from '#contract/redis/redis-keys.ts'
import { type RecordKind, recordKinds } from '#contract/records/record-kinds.ts'
import { LIVE_FOR_MS, type ProjectionMeta, stampRevision } from '#contract/records/revision-log.ts'
import { isMissingFunction, loadLibrary } from '../redis-library.ts'
import { type LiveProcess, liveProcess, type ProjectionChange, type ProjectionStore, type Writer, type WriteOutcome } from './store.ts'

/** Records per HSET during a rebuild. */
const REBUILD_BATCH = 500
/** Records per HMGET: bounds the size of one answer. */
const FETCH_BATCH = 200
/** Records per HSCAN: one call for 100,000 ids would delay all gateways. */
const SCAN_COUNT = 500
/** After a switch the old data set is kept for this long, for readers that still load it, s. */
const OLD_EPOCH_SECONDS = 300

const wireMeta = z.object({
  schema: z.coerce.number().int(),
  epoch: z.string().min(1),
  rev: z.coerce.number().int().nonnegative(),
  fence: z.coerce.number().int().nonnegative(),
  installation: z.string().default(''),
})
const projectionMeta = wireMeta.transform(({ rev, ...rest }): ProjectionMeta => ({ ...rest, revision: rev }))
const strings = z.array(z.string())

type Runs = Pick<RedisConnection, 'run'>

export class RedisProjectionStore implements ProjectionStore {
  readonly #connection: RedisConnection
  readonly #redis: Runs
  readonly #prefix: string
  readonly #keys: RedisKeys
  readonly #functions: RedisFunctions

  /**
   * @param connection of the ACL user that may write the projection
   * @param own runs all calls except the one that reads whose projection it is
   */
  constructor(connection: RedisConnection, keyPrefix: string, own: Runs = connection) {
    this.#connection = connection
    this.#redis = own
    this.#prefix = keyPrefix
    this.#keys = redisKeys(keyPrefix)
    this.#functions = redisFunctions(keyPrefix)
  }

  async prepare(): Promise<void> {
    await this.#redis.run((client) => loadLibrary(client, this.#functions))
  }

  async meta(): Promise<ProjectionMeta | undefined> {
    return await this.#connection.run((client) => readMeta(client, this.#prefix))
  }

  async write(writer: Writer, epoch: string, changes: readonly ProjectionChange[], floor: number): Promise<WriteOutcome> {
    const kinds = kindsOf(changes)
    const args = changes.flatMap(({ kind, op, id, text }) => [kind, op, id, text ?? ''])
    const head = [String(writer.fence), epoch, writer.installation, String(floor), String(LOG_LENGTH), ...kinds]
    return outcomeOf(await this.#call('write', this.#keysOf(epoch, kinds), [...head, ...args]))
  }

  async rebuild(writer: Writer, epoch: string, revision: number, records: readonly ProjectionChange[]): Promise<WriteOutcome> {
    const present = (await this.#redis.run((client) => client.hget(this.#keys.meta, 'epoch'))) ?? '' // even if `meta` cannot be parsed
    try {
      for (let at = 0; at < records.length; at += REBUILD_BATCH) await this.#store(epoch, revision, records.slice(at, at + REBUILD_BATCH))
    } catch (error) {
      if (epoch !== present) await this.#drop(epoch)
      throw error
    }
    const { fence, installation, takesOver = false } = writer
    const args = [String(fence), epoch, installation, String(PROJECTION_SCHEMA), String(revision), present, takesOver ? '1' : '0']
    const outcome = outcomeOf(await this.#call('switch', this.#keysOf(epoch, kindsOf(records)), args))
    if (outcome.outcome === 'written') {
      for (const kind of recordKinds())
        await this.#redis.run((client) => client.expire(this.#keys.records(present, kind), OLD_EPOCH_SECONDS))
    }
    return outcome
  }

  /** Removes a copy that failed, and that no reader knows: Redis may be full. If that fails too, the copy expires. */
  async #drop(epoch: string): Promise<void> {
    const keys = recordKinds().map((kind) => this.#keys.records(epoch, kind))
    await this.#redis.run((client) => client.unlink(...keys)).catch(() => undefined)
  }

  async ids(epoch: string, kind: RecordKind): Promise<readonly string[]> {
    const key = this.#keys.records(epoch, kind)
    const found = new Set<string>() // a scan may return a field twice
    let cursor = '0'
    do {
      const [next, fields] = await this.#redis.run((client) => client.hscan(key, cursor, 'COUNT', SCAN_COUNT))
      for (let at = 0; at < fields.length; at += 2) found.add(fields[at] ?? '') // each id is followed by its record
      cursor = next
    } while (cursor !== '0')
    return [...found]
  }

  async records(epoch: string, kind: RecordKind, ids: readonly string[]): Promise<Map<string, string>> {
    const key = this.#keys.records(epoch, kind)
    const found = new Map<string, string>()
    for (let at = 0; at < ids.length; at += FETCH_BATCH) {
      const asked = ids.slice(at, at + FETCH_BATCH)
      const texts = await this.#redis.run((client) => client.hmget(key, ...asked))
      asked.forEach((id, index) => {
        const text = texts[index]
        if (typeof text === 'string') found.set(id, text)
      })
    }
    return found
  }

  async liveProcesses(): Promise<readonly LiveProcess[]> {
    const { meta, pods, acks } = this.#keys
    const [epoch = '', revision = '', ...reply] = strings.parse(await this.#call('live', [meta, pods, acks], [String(LIVE_FOR_MS)]))
    const live: LiveProcess[] = []
    for (let i = 0; i + 1 < reply.length; i += 2)
      live.push(liveProcess(reply[i] ?? '', reply[i + 1] ?? '', { epoch, revision: Number(revision) }))
    return live
  }

  async close(): Promise<void> {
    this.#connection.close()
  }

  async #store(epoch: string, revision: number, records: readonly ProjectionChange[]): Promise<void> {
    const replies = await this.#redis.run((client) => {
      const pipeline = client.pipeline()
      for (const { kind, id, text } of records) {
        if (text !== undefined) pipeline.hset(this.#keys.records(epoch, kind), id, stampRevision(text, revision))
      }
      for (const kind of kindsOf(records)) pipeline.expire(this.#keys.records(epoch, kind), OLD_EPOCH_SECONDS) // until the switch
      return pipeline.exec()
    })
    for (const [error] of replies ?? []) if (error) throw error
  }

  /** Redis keys for a function that writes records of these kinds into one data set. */
  #keysOf(epoch: string, kinds: readonly RecordKind[]): string[] {
    return [this.#keys.meta, this.#keys.log, ...kinds.map((kind) => this.#keys.records(epoch, kind))]
  }

  /** Calls a function. If Redis was flushed or replaced and lacks the functions, they are loaded first. */
  #call(name: 'write' | 'switch' | 'live', keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#redis.run(async (client) => {
      const call = (): Promise<unknown> => client.fcall(this.#functions[name], keys.length, ...keys, ...args)
      try {
        return await call()
      } catch (error) {
        if (!isMissingFunction(error)) throw error
        await loadLibrary(client, this.#functions)
        return await call()
      }
    })
  }
}

/** @returns undefined for a Redis without a projection */
export async function readMeta(client: Pick<Redis, 'hgetall'>, keyPrefix: string): Promise<ProjectionMeta | undefined> {
  const parsed = projectionMeta.safeParse(await client.hgetall(redisKeys(keyPrefix).meta))
  return parsed.success ? parsed.data : undefined
}

function kindsOf(changes: readonly ProjectionChange[]): readonly RecordKind[] {
  return [...new Set(changes.map(({ kind }) => kind))]
}

function outcomeOf(reply: unknown): WriteOutcome {
  const [word, ...rest] = strings.parse(reply)
  if (word === 'ok') return { outcome: 'written', revisions: rest.map(Number) }
  if (word === 'fenced') return { outcome: 'fenced', fence: Number(rest[0]) }
  if (word === 'installation') return { outcome: 'foreign-installation', installation: rest[0] ?? '' }
  return { outcome: 'foreign-epoch' }
}
