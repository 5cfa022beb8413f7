/** Text of a Redis Function library: its head, the Lua files, and the registration of its functions. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** All Lua files by their path below lib/contract/. `build.ts` puts them into a bundle, where the files do not exist. */
declare const LUA_FILES: Readonly<Record<string, string>> | undefined

export interface LibraryParts {
  readonly library: string
  /** Number of the text within one layout of the arguments. An operator never replaces a higher revision with a lower one. */
  readonly revision: number
  /** Values of the constants at the start of the text. */
  readonly constants?: Readonly<Record<string, number | string>>
  /** Paths below lib/contract/, in order: a file sees the local names of the files before it. */
  readonly files: readonly string[]
  /** Name of each function; the Lua function is `<callback>_`. */
  readonly names: Readonly<Record<string, string>>
  /** Flags of functions, in Lua. `allow-oom`: the function runs even when memory is full, because it frees memory. */
  readonly flags: Readonly<Partial<Record<string, string>>>
}

export function libraryCode({ library, revision, constants = {}, files, names, flags }: LibraryParts): string {
  const registered = Object.entries(names).map(([callback, name]) => {
    const flag = flags[callback]
    return `redis.register_function{ function_name = '${name}', callback = ${callback}_${flag === undefined ? '' : `, flags = { ${flag} }`} }`
  })
  return [
    `#!lua name=${library}`,
    `-- headgate revision ${revision}`,
    ...Object.entries(constants).map(([name, value]) => `local ${name} = ${value}`),
    ...files.map(luaFile),
    ...registered,
    '',
  ].join('\n')
}

/** @returns the revision in a library text; 0 for a foreign text */
export function libraryRevision(code: string): number {
  return Number(/^-- headgate revision (\d{1,9})$/m.exec(code)?.[1] ?? 0)
}

/** The start of all library names of an installation: letters, digits and underscores; every other character becomes its bytes between underscores. */
export function libraryPrefix(keyPrefix: string): string {
  return keyPrefix.replaceAll(/[^A-Za-z0-9]/gu, (character) => `_${Buffer.from(character).toString('hex')}_`)
}

function luaFile(path: string): string {
  if (typeof LUA_FILES === 'undefined') return readFileSync(join(import.meta.dirname, '..', path), 'utf8')
  return LUA_FILES[path] ?? ''
}
