/** Errors in manifests, and the parts of their messages: a value, if it is not a credential, and the word that a user probably meant. */

/** One error in a manifest: field, reason and remedy. It repeats only text of the manifest, so it is safe to show. */
export interface ManifestError {
  /** Path from the root, as kubectl shows it: `spec.backends[0].url`. */
  readonly field: string
  readonly reason: string
  readonly remedy: string
}

/** Longest text that a message shows, characters. */
const LONGEST = 64
/** Keys of model servers, bearer tokens, and runs of 40 characters that tokens consist of. */
const CREDENTIAL_LIKE = /\bsk-|\bBearer\b|[A-Za-z0-9_+/=-]{40,}/i
/** Fields that hold credentials, or in which users write credentials by mistake. */
const NEVER_SHOWN = new Set<PropertyKey>(['authSecretRef', 'annotations', 'data', 'hash', 'stringData'])

/** @returns the value as text; undefined if it must not be shown or is not a scalar */
export function shownValue(value: unknown, path: readonly PropertyKey[]): string | undefined {
  if (path.some((step) => NEVER_SHOWN.has(step))) return undefined
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' ? shownText(value) : undefined
}

/** @returns the text in quotes; undefined if it looks like a credential or holds one */
export function shownText(text: string): string | undefined {
  const plain = text.includes('://') ? text.replace(/[?#].*$/s, '') : text // a query may hold a token
  if (CREDENTIAL_LIKE.test(plain) || (text.includes('://') && text.includes('@'))) return undefined
  const clipped = Array.from(plain).slice(0, LONGEST).join('')
  return JSON.stringify(clipped.length < text.length ? `${clipped}…` : clipped)
}

/** The type of a value in the words of YAML, with its article. */
export function typeOf(value: unknown): string {
  if (value === null || value === undefined) return 'empty'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return 'text'
  if (typeof value === 'object') return 'an object'
  return typeof value === 'boolean' ? 'true or false' : 'a number'
}

/** Longer words are not compared: they are unlikely to be typing mistakes, and a comparison would take long. */
const LONGEST_WORD = 64
/** The known word may differ in one letter for each group of this many of its letters. */
const LETTERS_PER_MISTAKE = 3

/** @returns the known word that differs least from `word`, ignoring case; undefined when no word is similar enough */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length > LONGEST_WORD) return undefined
  const ranked = known
    .map((candidate) => ({ candidate, mistakes: mistakesBetween(word.toLowerCase(), candidate.toLowerCase()) }))
    .toSorted((a, b) => a.mistakes - b.mistakes)
  const [best] = ranked
  return best !== undefined && best.mistakes <= Math.floor(best.candidate.length / LETTERS_PER_MISTAKE) ? best.candidate : undefined
}

/** Distance by optimal string alignment: letters added, omitted, replaced, or swapped with their neighbour. */
function mistakesBetween(from: string, to: string): number {
  let twoUp: number[] = []
  let up = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const at = (list: readonly number[], index: number): number => list[index] ?? Infinity
      const isSame = from[row - 1] === to[column - 1]
      const isSwapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      const swapped = isSwapped ? at(twoUp, column - 2) + 1 : Infinity
      current.push(Math.min(at(up, column) + 1, at(current, column - 1) + 1, at(up, column - 1) + (isSame ? 0 : 1), swapped))
    }
    twoUp = up
    up = current
  }
  return up[to.length] ?? Infinity
}
