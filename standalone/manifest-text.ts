/** Converts the bytes of a manifest file to text, and an offset in the text to a line and a column. */
import type { ManifestError } from '#api/manifest-error.ts'

/** A position in a file, both numbers from 1. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** A file that cannot be read as text; its objects stay unchanged. The message never contains content of the file. */
export class UnreadableFile extends Error {
  readonly error: ManifestError
  readonly position: Position | undefined

  constructor(reason: string, remedy: string, position?: Position) {
    super(`${reason}; ${remedy}`)
    this.name = 'UnreadableFile'
    this.error = { field: '', reason, remedy }
    this.position = position
  }
}

/** @throws UnreadableFile for bytes that are not UTF-8 text, with the position of the first one */
export function decodeManifest(bytes: Uint8Array): string {
  if (isUtf16(bytes)) throw new UnreadableFile('is UTF-16 text', 'save the file as UTF-8')
  const validBytes = validPrefix(bytes)
  if (validBytes < bytes.length) {
    const before = new TextDecoder().decode(bytes.subarray(0, validBytes))
    throw new UnreadableFile('has a byte that is not UTF-8 text', 'save the file as UTF-8', positionAt(before, before.length))
  }
  const text = new TextDecoder().decode(bytes)
  const nul = text.indexOf('\0')
  if (nul !== -1)
    throw new UnreadableFile('has a NUL character', 'remove the character, and check that the file is whole', positionAt(text, nul))
  return text
}

/** @param offset in UTF-16 units, as strings count */
export function positionAt(text: string, offset: number): Position {
  const before = text.slice(0, offset)
  const lineStart = before.lastIndexOf('\n') + 1
  return { line: before.split('\n').length, column: Array.from(before.slice(lineStart)).length + 1 }
}

function isUtf16(bytes: Uint8Array): boolean {
  const [first, second] = bytes
  return (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)
}

/** @returns number of bytes from the start that are whole UTF-8 characters */
function validPrefix(bytes: Uint8Array): number {
  if (isUtf8(bytes, false)) return bytes.length
  let [valid, invalid] = [0, bytes.length + 1]
  while (invalid - valid > 1) {
    const middle = Math.floor((valid + invalid) / 2)
    if (isUtf8(bytes.subarray(0, middle), true)) valid = middle
    else invalid = middle
  }
  return Math.min(valid, bytes.length - 1)
}

/** @param isCut a character that is cut off at the end counts as valid */
function isUtf8(bytes: Uint8Array, isCut: boolean): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: isCut })
    return true
  } catch {
    return false // the caller finds the position
  }
}
