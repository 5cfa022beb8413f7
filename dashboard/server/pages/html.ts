/**
 * HTML from templates. The tag `html` escapes every value, in text and in quoted attributes. Only HTML that this tag has made stays as it is.
 *
 * There is no function that takes text as HTML: what a person, a provider or a mail sends can never become markup.
 */

class Markup {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  toString(): string {
    return this.#text
  }
}

/** HTML that `html` has made. `String(page)` is the text to send. */
export type Html = Markup

/** What a template may hold. `undefined` and `false` leave nothing, a list leaves its parts. */
export type HtmlValue = Html | string | number | false | undefined | readonly HtmlValue[]

/**
 * @throws TypeError if a value is an attribute without quotes, which no escaping makes safe. `name=` after a space counts as an attribute,
 *   also inside of quotes.
 */
export function html(literals: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  const [first = '', ...rest] = literals
  let text = first
  rest.forEach((literal, at) => {
    const before = literals[at] ?? ''
    const value = values[at]
    if (/[\s"'][\w-]+=$/.test(before)) throw new TypeError(`a value needs quotes: ${before.slice(-40)}`)
    const isAddress = /\s(href|src|action|formaction)="$/.test(before) && typeof value === 'string'
    text += (isAddress ? escaped(safeAddress(value)) : textOf(value)) + literal
  })
  return new Markup(text)
}

function textOf(value: HtmlValue): string {
  if (value === undefined || value === false) return ''
  if (value instanceof Markup) return value.toString()
  if (typeof value === 'string' || typeof value === 'number') return escaped(String(value))
  return value.map(textOf).join('')
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;', '`': '&#96;' }

function escaped(text: string): string {
  return text.replaceAll(/[&<>"'`]/g, (character) => ENTITIES[character] ?? '')
}

/** A web address, or a path or a part of this site. Others, for example `javascript:…`, `//elsewhere` and `/\elsewhere`, lead nowhere. */
function safeAddress(text: string): string {
  const isSafe = /^(https?:\/\/|\/(?![/\\])|#)/.test(text) && !/\p{Cc}/u.test(text)
  return isSafe ? text : '#'
}
