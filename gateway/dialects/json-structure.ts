/** How many parts a JSON text has, told from its bytes: a parse of millions of empty objects takes seconds, and more memory than a pod has. */

/** More than any real request: thousands of messages with tools have some ten thousand parts. */
const MAX_PARTS = 200_000

const QUOTE = 0x22
const COMMA = 0x2c
const OPENING_BRACKET = 0x5b
const BACKSLASH = 0x5c
const OPENING_BRACE = 0x7b

/** Whether a text has more than 200,000 objects, arrays and separators together, strings left out. It need not be valid JSON. */
export function hasTooManyParts(bytes: Buffer): boolean {
  if (bytes.length <= MAX_PARTS) return false
  let parts = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) at = endOfString(bytes, at)
    else if (byte === COMMA || byte === OPENING_BRACE || byte === OPENING_BRACKET) parts++
    if (parts > MAX_PARTS) return true
  }
  return false
}

/** @returns place of the closing quote; the end of the text without one */
function endOfString(bytes: Buffer, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end >= 0; end = bytes.indexOf(QUOTE, end + 1)) {
    let escapes = 0
    while (bytes[end - 1 - escapes] === BACKSLASH) escapes++
    if (escapes % 2 === 0) return end
  }
  return bytes.length
}
