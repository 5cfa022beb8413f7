/** Measures the text in an event of a stream without parsing it, because this is done for every event of every metered stream. */

/** Both formats put the text of the model into an object of this name. Texts escape their quotes, so only a key can match. */
const DELTA = '"delta":'
/** String values of a delta that are not text of the model. */
const SILENT_KEYS: readonly string[] = ['type"', 'role"', 'id"', 'signature"', 'stop_reason"', 'stop_sequence"']

const QUOTE = 34
const COLON = 58
const BACKSLASH = 92
const LETTER_U = 117
const OPENING_BRACE = 123
const CLOSING_BRACE = 125

/** Reads the events of one stream. An object with a position costs less than results that are allocated for each event. */
export class DeltaText {
  #event = ''
  #at = 0

  /**
   * Counts the bytes of texts, reasoning and arguments that an event adds, over all its choices. It reads each byte once, whatever the
   * event contains.
   * @param event decoded as Latin-1: one unit per byte
   */
  bytesOf(event: string): number {
    let bytes = 0
    this.#event = event
    for (this.#at = event.indexOf(DELTA); this.#at >= 0; this.#at = event.indexOf(DELTA, this.#at)) {
      this.#at += DELTA.length
      bytes += this.#strings()
    }
    this.#event = ''
    return bytes
  }

  /** Adds up the string values, up to the end of the object that begins here or a little further. */
  #strings(): number {
    const event = this.#event
    let [bytes, depth] = [0, 0]
    let isSilent = false
    for (; this.#at < event.length; this.#at++) {
      const code = event.charCodeAt(this.#at)
      if (code === OPENING_BRACE) depth++
      else if (code === CLOSING_BRACE && --depth <= 0) return bytes
      if (code !== QUOTE) continue
      const start = this.#at + 1
      this.#at = endOfText(event, start)
      if (isKey(event, this.#at)) isSilent = SILENT_KEYS.some((key) => event.startsWith(key, start))
      else if (!isSilent) bytes += textBytes(event, start, this.#at)
    }
    return bytes
  }
}

/** @returns index of the closing quote; the end of the event without one */
function endOfText(event: string, from: number): number {
  for (let at = event.indexOf('"', from); at >= 0; at = event.indexOf('"', at + 1)) {
    let slashes = 0
    while (event.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes++
    if (slashes % 2 === 0) return at
  }
  return event.length
}

/** @param end index of the closing quote */
function isKey(event: string, end: number): boolean {
  let at = end + 1
  while (event.charCodeAt(at) === 32) at++
  return event.charCodeAt(at) === COLON
}

/** Counts an escape as the bytes of its character. */
function textBytes(event: string, start: number, end: number): number {
  let bytes = end - start
  for (let at = start; at < end; at++) {
    if (event.charCodeAt(at) !== BACKSLASH) continue
    at++
    bytes -= event.charCodeAt(at) === LETTER_U ? 3 : 1 // \u20ac has six units for three bytes
  }
  return bytes
}
