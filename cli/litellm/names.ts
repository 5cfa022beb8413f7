/** Names of objects that are made of texts of people. Pure. */
import { createHash } from 'node:crypto'

/** Room for a suffix within the 63 characters of a DNS label. */
const MAX_NAME = 50
const SUFFIX = 8

/** The name that an object would have alone, and a text that is different for every object. */
export interface Named {
  readonly name: string
  readonly suffix: string
}

/** @returns undefined if no character of the text can be in a name */
export function dnsName(text: string): string | undefined {
  const words = text
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
  return words.replace(/^-+/, '').slice(0, MAX_NAME).replace(/-+$/, '') || undefined
}

/** @param sha256 hexadecimal */
export function shortened(sha256: string): string {
  return sha256.slice(0, SUFFIX)
}

/** The beginning of the SHA-256 of a text. */
export function suffixOf(text: string): string {
  return shortened(createHash('sha256').update(text).digest('hex'))
}

/**
 * One name each, in order. Equal names all get their suffix, so that the names do not depend on the order of the file, and a second import
 * finds the same objects.
 */
export function uniqueNames(all: readonly Named[]): readonly string[] {
  const counts = Map.groupBy(all, ({ name }) => name)
  return all.map(({ name, suffix }) => ((counts.get(name)?.length ?? 0) > 1 ? `${name}-${suffix}` : name))
}
