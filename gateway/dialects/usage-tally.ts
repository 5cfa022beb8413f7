import { laterReport, settledUsage, tokensOfBytes, type Usage, type UsageReport } from './usage.ts'

/** Largest number of bytes of one token: tokens have four bytes on average, and few have more than this. */
const MAX_BYTES_OF_ONE_TOKEN = 8

/** The cost of an unfinished stream: the usage that its backend reports, and the text that it has sent, in case there is no report. */
export class UsageTally {
  readonly #text = new DeltaText()
  #report: UsageReport | undefined = undefined
  #events = 0
  #bytes = 0

  /** Counts the text of an event. @param event decoded as Latin-1 */
  addEvent(event: string): void {
    const bytes = this.#text.bytesOf(event)
    if (bytes === 0) return
    this.#events++
    this.#bytes += bytes
  }

  addReport(report: UsageReport): void {
    this.#report = laterReport(this.#report, report)
  }

  /** @param inputTokens estimate of the prompt, in case the backend does not report it */
  settled(inputTokens: number): Usage {
    return settledUsage(this.#report, { inputTokens, outputTokens: this.#outputTokens })
  }

  /** Servers send each token in an event, unless they are late or make several at once; then events are longer. */
  get #outputTokens(): number {
    const isOneByOne = this.#bytes <= this.#events * MAX_BYTES_OF_ONE_TOKEN
    return isOneByOne ? this.#events : Math.max(this.#events, tokensOfBytes(this.#bytes))
  }
}

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

/** Measures text without parsing. One object per stream: results that are allocated for each event would cost more. */
export class DeltaText {
  #event = ''
  #at = 0

  /** Bytes of texts, reasoning and arguments over all choices of an event. @param event as Latin-1: one unit per byte */
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
