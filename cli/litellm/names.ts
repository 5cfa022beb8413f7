/** Makes names of ApiKeys from aliases of LiteLLM. Pure. */

/** Room for a suffix within the 63 characters of a DNS label. */
const MAX_NAME = 50
const SUFFIX = 8

/** The inputs of a name. */
export interface Named {
  readonly alias: string | undefined
  /** SHA-256 of the value, hexadecimal digits. */
  readonly sha256: string
}

/**
 * One DNS-safe name per key, in the order of the keys. Aliases that become the same name all get a part of their hash, so that the names do not
 * depend on the order of the file, and a second import finds the same ApiKeys.
 */
export function namesOf(keys: readonly Named[]): readonly string[] {
  const plain = keys.map(({ alias, sha256 }) => dnsName(alias ?? '') ?? `key-${sha256.slice(0, SUFFIX)}`)
  const count = new Map<string, number>()
  for (const name of plain) count.set(name, (count.get(name) ?? 0) + 1)
  return keys.map(({ sha256 }, index) => {
    const name = plain[index] ?? ''
    return count.get(name) === 1 ? name : `${name}-${sha256.slice(0, SUFFIX)}`
  })
}

/** @returns undefined if no character of the alias can be in a name */
function dnsName(alias: string): string | undefined {
  const name = alias
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, MAX_NAME)
    .replace(/-+$/, '')
  return name === '' ? undefined : name
}
