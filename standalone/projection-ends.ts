/** Both ends of the projection: in memory, or in the Redis of REDIS_URL, with the very classes that a cluster uses. */
import type { ProjectionSource } from '../gateway/projection/projection-source.ts'
import { RedisProjectionSource } from '../gateway/projection/redis-projection.ts'
import { Misconfigured } from '../gateway/process/lifecycle.ts'
import { RedisConnection } from '../gateway/process/redis.ts'
import { RedisProjectionStore } from '../operator/projection/redis-projection-store.ts'
import type { ProjectionStore } from '../operator/projection/store.ts'
import { MemoryProjection } from './memory-projection.ts'

/** The operator's and the gateway's end of one projection. */
export interface ProjectionEnds {
  readonly store: ProjectionStore
  readonly source: ProjectionSource
}

const KEY_PREFIX = 'hg'
const COMMAND_MS = 2_000

/** @throws Misconfigured when that Redis does not answer or evicts data: somebody sits in front of this program and can remedy it */
export async function openProjection(redisURL: string | undefined): Promise<ProjectionEnds> {
  if (redisURL === undefined) {
    const projection = new MemoryProjection()
    return { store: projection, source: projection }
  }
  const settings = { url: redisURL }
  const connection = new RedisConnection(settings, 'headgate-operator', { commandMs: COMMAND_MS })
  const ends = { store: new RedisProjectionStore(connection, KEY_PREFIX), source: new RedisProjectionSource(settings, KEY_PREFIX) }
  try {
    await ends.source.meta()
    return ends
  } catch (error) {
    await Promise.all([ends.store.close(), ends.source.close()])
    if (error instanceof Misconfigured) throw error
    throw new Misconfigured(`REDIS_URL: ${error instanceof Error ? error.message : String(error)}; start that Redis or unset REDIS_URL`, {
      cause: error,
    })
  }
}
