/** ProjectionStore in Redis: the writer's half; readers are in `gateway/auth/redis-projection.ts`. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { RedisConnection } from '../../gateway/shared/redis.ts'
import { LOG_LENGTH, redisKeys, type RedisKeys } from '../../gateway/shared/redis-keys.ts'
import {
  decodeAcknowledgement,
  LIVE_FOR_MS,
  PROJECTION_SCHEMA,
  RECORD_KINDS,
  type ProjectionMeta,
  type RecordKind,
  stampRevision,
} from '../../gateway/shared/revision-log.ts'
import { LIVE_SCRIPT, SWITCH_SCRIPT, WRITE_SCRIPT } from './projection-scripts.ts'
import type { LiveProcess, ProjectionChange, ProjectionStore, WriteOutcome } from './store.ts'

/** Records per HSET during a rebuild. */
const REBUILD_BATCH = 500
/** Readers that still load the old data set get this long, s. */
const OLD_EPOCH_SECONDS = 300

const metaFields = z.object({
  schema: z.coerce.number().int(),
  epoch: z.string().min(1),
  rev: z.coerce.number().int().nonnegative(),
  fence: z.coerce.number().int().nonnegative(),
})
const strings = z.array(z.string())

/** @param redis a connection of the ACL user that may write the projection */
export class RedisProjectionStore implements ProjectionStore {
  readonly #redis: RedisConnection
  readonly #keys: RedisKeys

  constructor(redis: RedisConnection, keyPrefix: string) {
    this.#redis = redis
    this.#keys = redisKeys(keyPrefix)
  }

  async meta(): Promise<ProjectionMeta | undefined> {
    const parsed = metaFields.safeParse(await this.#redis.run((client) => client.hgetall(this.#keys.meta)))
    return parsed.success ? parsed.data : undefined
  }

  async write(fence: number, epoch: string, changes: readonly ProjectionChange[], floor: number): Promise<WriteOutcome> {
    const args = changes.flatMap(({ kind, op, id, text }) => [kind, op, id, text ?? ''])
    return outcomeOf(await this.#run(WRITE_SCRIPT, this.#all(epoch), [String(fence), epoch, String(floor), String(LOG_LENGTH), ...args]))
  }

  async rebuild(fence: number, epoch: string, rev: number, records: readonly ProjectionChange[]): Promise<WriteOutcome> {
    const former = await this.meta()
    if (former && former.fence > fence) return { outcome: 'fenced', fence: former.fence }
    const present = (await this.#redis.run((client) => client.hget(this.#keys.meta, 'epoch'))) ?? '' // also of a meta that cannot be read
    for (let at = 0; at < records.length; at += REBUILD_BATCH) {
      await this.#store(epoch, rev, records.slice(at, at + REBUILD_BATCH))
    }
    const args = [String(fence), String(PROJECTION_SCHEMA), epoch, String(rev), present]
    const outcome = outcomeOf(await this.#run(SWITCH_SCRIPT, this.#all(epoch), args))
    if (outcome.outcome === 'written') {
      for (const kind of RECORD_KINDS)
        await this.#redis.run((client) => client.expire(this.#keys.records(present, kind), OLD_EPOCH_SECONDS))
    }
    return outcome
  }

  ids(epoch: string, kind: RecordKind): Promise<readonly string[]> {
    return this.#redis.run((client) => client.hkeys(this.#keys.records(epoch, kind)))
  }

  async record(epoch: string, kind: RecordKind, id: string): Promise<string | undefined> {
    return (await this.#redis.run((client) => client.hget(this.#keys.records(epoch, kind), id))) ?? undefined
  }

  async liveProcesses(): Promise<readonly LiveProcess[]> {
    const reply = strings.parse(await this.#run(LIVE_SCRIPT, [this.#keys.pods, this.#keys.acks], [String(LIVE_FOR_MS)]))
    const live: LiveProcess[] = []
    for (let i = 0; i + 1 < reply.length; i += 2) {
      const process = reply[i] ?? ''
      live.push({ process, pod: podOf(process), acknowledgement: decodeAcknowledgement(reply[i + 1] ?? '') })
    }
    return live
  }

  async close(): Promise<void> {
    this.#redis.close()
  }

  async #store(epoch: string, rev: number, records: readonly ProjectionChange[]): Promise<void> {
    const replies = await this.#redis.run((client) => {
      const pipeline = client.pipeline()
      for (const { kind, id, text } of records) {
        if (text !== undefined) pipeline.hset(this.#keys.records(epoch, kind), id, stampRevision(text, rev))
      }
      for (const kind of RECORD_KINDS) pipeline.expire(this.#keys.records(epoch, kind), OLD_EPOCH_SECONDS) // until the switch
      return pipeline.exec()
    })
    for (const [error] of replies ?? []) if (error) throw error
  }

  /** Keys of a script that touches one data set. */
  #all(epoch: string): string[] {
    return [this.#keys.meta, this.#keys.log, ...RECORD_KINDS.map((kind) => this.#keys.records(epoch, kind))]
  }

  /** EVALSHA first: the text of a script goes over the wire once per Redis start. */
  async #run(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const sha = createHash('sha1').update(script).digest('hex')
    return this.#redis.run(async (client) => {
      try {
        return await client.evalsha(sha, keys.length, ...keys, ...args)
      } catch (error) {
        if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
        return await client.eval(script, keys.length, ...keys, ...args)
      }
    })
  }
}

/** Pod name of `<pod>/<process>`. */
function podOf(process: string): string {
  const slash = process.lastIndexOf('/')
  return slash < 0 ? process : process.slice(0, slash)
}

function outcomeOf(reply: unknown): WriteOutcome {
  const [word, ...rest] = strings.parse(reply)
  if (word === 'ok') return { outcome: 'written', revs: rest.map(Number) }
  if (word === 'fenced') return { outcome: 'fenced', fence: Number(rest[0]) }
  return { outcome: 'foreign-epoch' }
}
