const QUOTE = 34
const BACKSLASH = 92
const OPENING_BRACKET = 91
const CLOSING_BRACKET = 93
const OPENING_BRACE = 123
const CLOSING_BRACE = 125

/** Tells where a JSON object that arrives in pieces ends. It reads each character once and does not check the syntax. */
export class JsonExtent {
  /** Whether the object has its last brace. */
  isComplete = false
  #depth = 0
  #isInString = false
  #isEscaped = false

  add(piece: string): void {
    for (let at = 0; at < piece.length; at++) {
      const code = piece.charCodeAt(at)
      if (this.#isInString) this.#inString(code)
      else this.#outside(code)
    }
  }

  #inString(code: number): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (code === BACKSLASH) this.#isEscaped = true
    else if (code === QUOTE) this.#isInString = false
  }

  #outside(code: number): void {
    if (code === QUOTE) this.#isInString = true
    else if (code === OPENING_BRACE || code === OPENING_BRACKET) this.#depth++
    else if ((code === CLOSING_BRACE || code === CLOSING_BRACKET) && --this.#depth === 0) this.isComplete = true
  }
}
