/** Keeps one function library on every primary. A Redis that was replaced, emptied or failed over has no library. */
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
 * @param primaries every server that holds keys: a load names no key, so a cluster would load the library on only one server
 * @returns the number of servers on which the library was loaded
 * @throws errors of Redis
 */
export async function keepLibrary(primaries: readonly RedisCalls[], kept: KeptLibrary, revision: number): Promise<number> {
  const loaded = await Promise.all(primaries.map((primary) => keepOn(primary, kept, revision)))
  return loaded.filter(Boolean).length
}

async function keepOn(primary: RedisCalls, kept: KeptLibrary, revision: number): Promise<boolean> {
  const present = await revisionOn(primary, kept)
  if (present !== undefined && present >= revision) return false
  await loadRedisFunctions(primary, kept)
  return true
}

async function revisionOn(primary: RedisCalls, { revision }: KeptLibrary): Promise<number | undefined> {
  try {
    return Number(await primary.call('FCALL', revision, '0'))
  } catch (error) {
    if (isMissingFunction(error)) return undefined
    throw error
  }
}

/** @returns whether the error of Redis means that a function is missing */
export function isMissingFunction(error: unknown): boolean {
  return error instanceof Error && error.message.includes('Function not found')
}
