/** Keeps one function library on every primary: a Redis that was replaced, emptied or failed over has none. */
import { loadRedisFunctions, type RedisCalls } from '../projection/load-redis-functions.ts'

/** A library that can say which text of it is loaded. */
export interface KeptLibrary {
  readonly library: string
  readonly code: string
  /** Name of the function that returns the revision of the text; it takes no key. */
  readonly revision: string
}

/**
 * Loads the library where it is missing or older. A newer one stays. Asking costs one call of a function; the texts are compared only
 * where its answer is not the expected one, since a list of functions with their text costs a hundred times as much.
 * @param primaries every server that holds keys: loading names no key, so a cluster would load it on one of them
 * @returns on how many servers it was loaded
 * @throws what Redis answers
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

/** @returns whether Redis says that it does not have a function */
export function isMissingFunction(error: unknown): boolean {
  return error instanceof Error && error.message.includes('Function not found')
}
