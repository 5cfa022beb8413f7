import { z } from 'zod'
import { libraryRevision, type RedisFunctions } from '#contract/redis/redis-functions.ts'

/** A connection to Redis. */
export interface RedisCalls {
  call(command: string, ...args: string[]): Promise<unknown>
}

const listReply = z.array(z.array(z.unknown()))

/**
 * Makes sure that Redis has the function library. The library of a newer build stays, since it answers the same calls. An older or changed
 * library is replaced.
 * @throws the error of Redis
 */
export async function loadRedisFunctions(redis: RedisCalls, { library, code }: Pick<RedisFunctions, 'library' | 'code'>): Promise<void> {
  const present = await presentCode(redis, library)
  if (present === code) return
  if (present !== undefined && libraryRevision(present) > libraryRevision(code)) return
  await redis.call('FUNCTION', 'LOAD', 'REPLACE', code)
}

async function presentCode(redis: RedisCalls, library: string): Promise<string | undefined> {
  const [fields = []] = listReply.parse(await redis.call('FUNCTION', 'LIST', 'LIBRARYNAME', library, 'WITHCODE'))
  const text: unknown = fields[fields.indexOf('library_code') + 1]
  return typeof text === 'string' && fields.includes('library_code') ? text : undefined
}
