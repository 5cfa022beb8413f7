/** Loads function libraries into Redis. A Redis that was replaced, emptied or failed over has none. */
import { z } from 'zod'
import { libraryRevision } from '#contract/redis/function-library.ts'

export interface RedisCalls {
  call(command: string, ...args: string[]): Promise<unknown>
}

export interface RedisLibrary {
  readonly library: string
  readonly code: string
  /** Name of a function without keys that returns the revision of the loaded text, for a library that is checked often. */
  readonly revision?: string
}

const listReply = z.array(z.array(z.unknown()))

/**
 * Loads a library that is missing, older, or of the same revision with another text; a newer one stays.
 * @param isCompared the text was compared before: then one call tells whether the library is still there
 * @returns the number of loaded libraries
 * @throws errors of Redis
 */
export async function loadLibrary(redis: RedisCalls, { library, code, revision }: RedisLibrary, isCompared = false): Promise<0 | 1> {
  const own = libraryRevision(code)
  if (isCompared && revision !== undefined && (await loadedRevision(redis, revision)) >= own) return 0
  const present = await presentCode(redis, library)
  if (present === code || (present !== undefined && libraryRevision(present) > own)) return 0
  await redis.call('FUNCTION', 'LOAD', 'REPLACE', code)
  return 1
}

/** @returns whether the error of Redis means that a function is missing */
export function isMissingFunction(error: unknown): boolean {
  return error instanceof Error && error.message.includes('Function not found')
}

/** @returns 0 if the function is missing */
async function loadedRevision(redis: RedisCalls, revision: string): Promise<number> {
  try {
    return Number(await redis.call('FCALL', revision, '0'))
  } catch (error) {
    if (isMissingFunction(error)) return 0
    throw error
  }
}

async function presentCode(redis: RedisCalls, library: string): Promise<string | undefined> {
  const [fields = []] = listReply.parse(await redis.call('FUNCTION', 'LIST', 'LIBRARYNAME', library, 'WITHCODE'))
  const text: unknown = fields[fields.indexOf('library_code') + 1]
  return typeof text === 'string' && fields.includes('library_code') ? text : undefined
}
