/** Keeps one function library in Redis. A Redis that was replaced, emptied or failed over has no library. */
import { loadRedisFunctions, type RedisCalls } from '../projection/load-redis-functions.ts'

/** A library with a function that returns its revision. */
export interface KeptLibrary {
  readonly library: string
  readonly code: string
  /** Name of the function that returns the revision; it takes no key. */
  readonly revision: string
}

/**
 * Loads a missing or older library. A newer library stays. The check costs one function call. The texts are compared only after an unexpected
 * answer, because a list of functions with their text costs a hundred times as much.
 * @returns the number of libraries that were loaded, 0 or 1
 * @throws errors of Redis
 */
export async function keepLibrary(redis: RedisCalls, kept: KeptLibrary, revision: number): Promise<0 | 1> {
  const present = await loadedRevision(redis, kept)
  if (present !== undefined && present >= revision) return 0
  await loadRedisFunctions(redis, kept)
  return 1
}

async function loadedRevision(redis: RedisCalls, { revision }: KeptLibrary): Promise<number | undefined> {
  try {
    return Number(await redis.call('FCALL', revision, '0'))
  } catch (error) {
    if (isMissingFunction(error)) return undefined
    throw error
  }
}

/** @returns whether the error of Redis means that a function is missing */
export function isMissingFunction(error: unknown): boolean {
  return error instanceof Error && error.message.includes('Function not found')
}
