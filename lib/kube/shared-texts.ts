/** Maximum number of kept texts. Then all are forgotten, and the frequent ones return at once. */
const MAX_TEXTS = 8_192
/** Maximum length of a kept text, characters: longer texts are rarely equal. */
const LONGEST = 256

/** Returns one string for equal texts, so that thousands of parsed objects do not each keep a copy. */
export class SharedTexts {
  readonly #texts = new Map<string, string>()

  of(text: string): string {
    if (text.length > LONGEST) return text
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    if (this.#texts.size >= MAX_TEXTS) this.#texts.clear()
    this.#texts.set(text, text)
    return text
  }
}
