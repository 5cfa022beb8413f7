/** Secrets of a test that must not be found in any output, and the search for them in every form that software writes texts in. */
import { createHash } from 'node:crypto'

/** A shorter text, such as a code of six digits, may stand in any bytes by chance, and is searched as a word of its own. */
const MIN_LENGTH = 10

interface Canary {
  readonly what: string
  readonly value: string
}

export class Canaries {
  readonly #canaries: Canary[] = []

  /** @param what says what the secret is, and is what the search answers @throws RangeError for an empty secret, which is everywhere */
  note(what: string, value: string | undefined | null): void {
    if (!value) throw new RangeError(`${what} is empty: the story did not go as the test thinks`)
    this.#canaries.push({ what, value })
  }

  get size(): number {
    return this.#canaries.length
  }

  get names(): readonly string[] {
    return [...new Set(this.#canaries.map(({ what }) => what))]
  }

  /** @returns what was found, with its form, sorted */
  foundIn(text: string): readonly string[] {
    const found = this.#canaries.flatMap(({ what, value }) =>
      formsOf(value).flatMap(([form, needle]) => (isIn(text, needle) ? [form === 'as it is' ? what : `${what}, ${form}`] : [])),
    )
    return [...new Set(found)].toSorted()
  }
}

function isIn(text: string, needle: string): boolean {
  if (needle.length >= MIN_LENGTH) return text.includes(needle)
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + 1))
    if (!/[\w.]/.test(text[at - 1] ?? ' ') && !/[\w.]/.test(text[at + needle.length] ?? ' ')) return true
  return false
}

function formsOf(value: string): readonly (readonly [string, string])[] {
  const decoded = decodeURIComponent(value.replaceAll(/%(?![0-9a-fA-F]{2})/g, '%25'))
  const digest = createHash('sha256').update(value).digest()
  const forms = [
    ['as it is', value],
    ['percent-decoded', decoded],
    ['percent-encoded', encodeURIComponent(value)],
    ['as in JSON', JSON.stringify(value).slice(1, -1)],
    ['as in JSON of JSON', JSON.stringify(JSON.stringify(value)).slice(3, -3)],
    ['hex', Buffer.from(value).toString('hex')],
    ...[digest.toString('hex'), digest.toString('base64').slice(0, -1), digest.toString('base64url')].map(
      (hash) => ['its SHA-256', hash] as const,
    ),
    ...(value.length < MIN_LENGTH ? [] : [value, decoded].flatMap(insideBase64)),
  ] as const
  const seen = new Set<string>()
  return forms.filter(([, needle]) => !seen.has(needle) && seen.add(needle))
}

/** The text as it looks in the base64 of a longer one: there are three ways, by where the text begins, without the characters that its surroundings touch. */
function insideBase64(value: string): readonly (readonly [string, string])[] {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(value)])
    const own = [Math.ceil((before * 8) / 6), Math.floor((bytes.length * 8) / 6)] as const
    return (['base64', 'base64url'] as const).map((form) => ['base64', bytes.toString(form).slice(...own)] as const)
  })
}
