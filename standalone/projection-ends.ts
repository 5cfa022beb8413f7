/** Both ends of the projection: in memory, or in the Redis of REDIS_URL, with the same classes as in a cluster. */
import { messageOf } from '#platform/message-of.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ProjectionSource } from '../gateway/projection/projection-source.ts'
import { RedisProjectionSource } from '../gateway/projection/redis-projection.ts'
import { Misconfigured } from '#platform/lifecycle.ts'
import { RedisConnection } from '#platform/redis-connection.ts'
import { redisKeys } from '#contract/redis/redis-keys.ts'
import { HEARTBEAT_EVERY_MS } from '#contract/records/revision-log.ts'
import { RedisProjectionStore } from '../operator/projection/redis-projection-store.ts'
import type { ProjectionStore } from '../operator/projection/store.ts'
import type { StandaloneConfig } from './config.ts'
import { MemoryProjection } from './memory-projection.ts'

export interface ProjectionEnds {
  readonly store: ProjectionStore
  readonly source: ProjectionSource
}

const COMMAND_MS = 2_000
/** Longer than the time between two heartbeats of a live process, ms. */
const OBSERVE_MS = 2 * HEARTBEAT_EVERY_MS + 200

/**
 * @param installation id of this state folder's installation
 * @throws Misconfigured if that Redis does not answer, evicts data, or is in use by another installation: the user can fix it at once
 */
export async function openProjection(config: StandaloneConfig, installation: () => Promise<string>): Promise<ProjectionEnds> {
  const { redisURL, redisKeyPrefix, redisTakeOver } = config
  if (redisURL === undefined) {
    const projection = new MemoryProjection()
    return { store: projection, source: projection }
  }
  const connection = new RedisConnection({ url: redisURL }, 'headgate-operator', { commandMs: COMMAND_MS })
  const source = new RedisProjectionSource({ url: redisURL }, redisKeyPrefix)
  const ends = { store: new RedisProjectionStore(connection, redisKeyPrefix), source }
  try {
    const meta = await source.meta()
    if (meta !== undefined && !redisTakeOver) {
      refuseForeign(meta.installation, await installation())
      await refuseLiving(connection, redisKeyPrefix)
    }
    return ends
  } catch (error) {
    await closeEnds(ends)
    if (error instanceof Misconfigured) throw error
    throw new Misconfigured(`REDIS_URL: ${messageOf(error)}, or unset REDIS_URL`, { cause: error })
  }
}

export async function closeEnds({ store, source }: ProjectionEnds): Promise<void> {
  await Promise.all([store.close(), source.close()])
}

/** Refuses a Redis of another installation, whose keys would all be replaced and answer 401. */
function refuseForeign(found: string, own: string): void {
  if (found === '' || found === own) return
  throw new Misconfigured(
    `REDIS_URL: this Redis holds the keys of another installation (${found}), which would all stop working; use another Redis, another database (redis://…/1) or another REDIS_KEY_PREFIX; set REDIS_TAKE_OVER=true once to replace those keys`,
  )
}

/**
 * Refuses a Redis in use by a copy of the state folder, which has the same installation id. The newest heartbeat of a killed process stays as
 * it is.
 */
async function refuseLiving(connection: RedisConnection, redisKeyPrefix: string): Promise<void> {
  const { pods } = redisKeys(redisKeyPrefix)
  const newest = (): Promise<string[]> => connection.run((client) => client.zrevrange(pods, 0, 0, 'WITHSCORES'))
  const [, before] = await newest()
  if (before === undefined) return
  await sleep(OBSERVE_MS)
  const [process, after] = await newest()
  if (after === undefined || after === before) return
  throw new Misconfigured(
    `REDIS_URL: another Headgate with a copy of this state folder uses this Redis (process ${process}); stop that Headgate, or use another Redis, another database (redis://…/1) or another REDIS_KEY_PREFIX`,
  )
}
