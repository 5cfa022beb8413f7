/** How much text an event of a stream brings, told without parsing it: this is done for every event of every metered stream. */

/** Both formats put what the model has written into an object of this name. Quotes inside of texts are escaped, so only a key can match. */
const DELTA = '"delta":'
/** Values of a delta that are no text of the model. */
const SILENT_KEYS: readonly string[] = ['type"', 'role"', 'id"', 'signature"', 'stop_reason"', 'stop_sequence"']

const QUOTE = 34
const COLON = 58
const BACKSLASH = 92
const LETTER_U = 117
const OPENING_BRACE = 123
const CLOSING_BRACE = 125

/**
 * Bytes of the texts, of the reasoning and of the arguments that an event adds, over all its choices.
 * @param event decoded as Latin-1: a unit is a byte
 */
export function deltaBytes(event: string): number {
  let bytes = 0
  for (let at = event.indexOf(DELTA); at >= 0; at = event.indexOf(DELTA, at)) {
    at += DELTA.length
    bytes += bytesOfStrings(event, at)
  }
  return bytes
}

/** Sums up the values that are strings, in an object that begins at `start`, or a little behind it. */
function bytesOfStrings(event: string, start: number): number {
  let bytes = 0
  let depth = 0
  let isSilent = false
  for (let at = start; at < event.length; at++) {
    const code = event.charCodeAt(at)
    if (code === OPENING_BRACE) depth++
    else if (code === CLOSING_BRACE && --depth <= 0) return bytes
    if (code !== QUOTE) continue
    const end = endOfText(event, at + 1)
    if (isKey(event, end)) isSilent = SILENT_KEYS.some((key) => event.startsWith(key, at + 1))
    else if (!isSilent) bytes += textBytes(event, at + 1, end)
    at = end
  }
  return bytes
}

/** @returns index of the closing quote; the end of the event where there is none */
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

/** An escape counts as the character that it stands for. */
function textBytes(event: string, start: number, end: number): number {
  let bytes = end - start
  for (let at = event.indexOf('\\', start); at >= 0 && at < end; at = event.indexOf('\\', at + 2)) {
    bytes -= event.charCodeAt(at + 1) === LETTER_U ? 3 : 1 // \u20ac has six units for three bytes
  }
  return bytes
}
