/** Finds where and why a text is not JSON (RFC 8259). V8's messages quote the text and often lack the position; these never quote it. */

/** The position of an error after this many characters is not searched. It bounds the time to 2 ms, on the thread of all requests. */
const MAX_CHARACTERS = 2 ** 15

const SPACE = /[ \t\n\r]*/y
const SCALAR = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y
const UNESCAPED = /[^"\\\u0000-\u001F]*/y // oxlint-disable-line no-control-regex -- RFC 8259, section 7
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/y

type Expected = 'value' | 'value or ]' | 'name' | 'name or }' | ':' | ', or }' | ', or ]' | 'end'

const MISSING: Readonly<Record<Expected, string>> = {
  value: 'a value is expected',
  'value or ]': 'a value or ] is expected',
  name: 'a field name in double quotes is expected',
  'name or }': 'a field name in double quotes or } is expected',
  ':': 'a colon is expected',
  ', or }': 'a comma or } is expected',
  ', or ]': 'a comma or ] is expected',
  end: 'the JSON value has ended, and more follows',
}

/** Reads a text up to its first error. One object per text. */
class JsonReader {
  readonly #text: string
  /** Closing characters of the open objects and arrays, innermost last. */
  readonly #closers: ('}' | ']')[] = []
  #at = 0
  #expected: Expected = 'value'
  #isInString = false

  constructor(text: string) {
    this.#text = text
  }

  firstError(): string | undefined {
    do this.#take(SPACE)
    while (this.#at < Math.min(this.#text.length, MAX_CHARACTERS) && this.#token())
    if (this.#at >= MAX_CHARACTERS || (this.#at === this.#text.length && this.#expected === 'end')) return undefined
    return `${this.#place()}: ${this.#problem()}`
  }

  get #next(): string | undefined {
    return this.#text[this.#at]
  }

  #token(): boolean {
    const closer = this.#closers.at(-1)
    if (this.#next === closer && this.#expected.endsWith(` ${closer}`)) {
      this.#closers.pop()
      return this.#go(this.#afterValue(), 1)
    }
    switch (this.#expected) {
      case ':':
        return this.#separator(':', 'value')
      case ', or }':
        return this.#separator(',', 'name')
      case ', or ]':
        return this.#separator(',', 'value')
      case 'name':
      case 'name or }':
        return this.#string() && this.#go(':')
      case 'end':
        return false
      default:
        return this.#value()
    }
  }

  #separator(character: string, then: Expected): boolean {
    return this.#next === character && this.#go(then, 1)
  }

  #value(): boolean {
    if (this.#next === '{') {
      this.#closers.push('}')
      return this.#go('name or }', 1)
    }
    if (this.#next === '[') {
      this.#closers.push(']')
      return this.#go('value or ]', 1)
    }
    return (this.#string() || (!this.#isInString && this.#take(SCALAR))) && this.#go(this.#afterValue())
  }

  #string(): boolean {
    if (this.#next !== '"') return false
    this.#at += 1
    this.#isInString = true
    do this.#take(UNESCAPED)
    while (this.#take(ESCAPE))
    if (this.#next !== '"') return false
    this.#isInString = false
    this.#at += 1
    return true
  }

  #afterValue(): Expected {
    const closer = this.#closers.at(-1)
    return closer === undefined ? 'end' : `, or ${closer}`
  }

  /** @param characters that are read */
  #go(expected: Expected, characters = 0): true {
    this.#at += characters
    this.#expected = expected
    return true
  }

  #take(token: RegExp): boolean {
    token.lastIndex = this.#at
    if (!token.test(this.#text)) return false
    this.#at = token.lastIndex
    return true
  }

  #problem(): string {
    const next = this.#next
    if (next === undefined) return this.#isInString ? 'the text ends within a string' : 'the text ends too early'
    if (this.#isInString) return next === '\\' ? 'a string has an unknown escape' : 'a string has a line break or another control character'
    if (next === "'") return 'JSON has double quotes, not single ones'
    const isComma = this.#expected === 'name' || (this.#expected === 'value' && this.#closers.at(-1) === ']')
    if (isComma && next === this.#closers.at(-1)) return 'trailing comma after the last entry'
    return MISSING[this.#expected]
  }

  #place(): string {
    const before = this.#text.slice(0, this.#at)
    return `line ${before.split('\n').length}, column ${this.#at - before.lastIndexOf('\n')}`
  }
}

/** @returns for example `line 3, column 12: a comma or } is expected`; undefined if the error is too far from the start */
export function jsonError(text: string): string | undefined {
  return new JsonReader(text).firstError()
}
