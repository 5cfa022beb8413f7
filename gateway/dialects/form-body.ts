/**
 * Reads a `multipart/form-data` body (RFC 7578) so strictly that every parser must find the same fields in it: the client's own bytes can then be sent.
 * Text fields become values; the bytes of files are not read.
 */
import { isUtf8 } from 'node:buffer'
import type { ByteSpan } from './proven-field.ts'

export interface FormField {
  readonly name: string
  /** undefined for a file. */
  readonly text: string | undefined
  readonly at: ByteSpan
}

/** A form, or what is wrong with it. */
export type ReadForm = { readonly fields: readonly FormField[]; readonly contentType: string } | { readonly problem: string }

/** RFC 2046, without the space. */
const BOUNDARY = /^multipart\/form-data\s*;\s*boundary=(?:"([\w'()+,\-./:=?]{1,70})"|([\w'+\-.]{1,70}))\s*$/i
const DISPOSITION = /^form-data; name="([\w.[\]-]{1,128})"((?:; filename\*?=[^;\r\n]{1,1024})?)(?:; filename\*=[^;\r\n]{1,1024})?$/i
const HEADER = /^([\w-]{1,64}): ?([^\r\n]{0,2048})$/
const MAX_FIELDS = 64
const MAX_HEAD_BYTES = 4_096
/** Longest text field. A prompt has some hundred bytes. */
const MAX_TEXT_BYTES = 65_536

/** @returns the boundary that a content type names; undefined for anything but a form */
export function boundaryIn(contentType: string | undefined): string | undefined {
  const match = BOUNDARY.exec(contentType ?? '')
  return match?.[1] ?? match?.[2]
}

export function readForm(bytes: Buffer, boundary: string): ReadForm {
  const fields: FormField[] = []
  const delimiter = Buffer.from(`--${boundary}`)
  if (bytes.indexOf(delimiter) !== 0) return { problem: 'it does not begin with its boundary' }
  for (let at = 0; ;) {
    const start = at + delimiter.length
    const mark = bytes.toString('latin1', start, start + 2)
    if (mark === '--')
      return isEnd(bytes, start + 2) ? { fields, contentType: contentTypeOf(boundary) } : { problem: 'it goes on after its end' }
    if (mark !== '\r\n') return { problem: 'its boundary occurs within a field' }
    const next = bytes.indexOf(delimiter, start)
    if (next < 0) return { problem: 'its last field has no end' }
    const field = fieldIn(bytes, { start: start + 2, end: next - 2 })
    if ('problem' in field) return field
    if (fields.push(field) > MAX_FIELDS) return { problem: `it has more than ${MAX_FIELDS} fields` }
    at = next
  }
}

function isEnd(bytes: Buffer, at: number): boolean {
  const rest = bytes.length - at
  return rest === 0 || (rest === 2 && bytes.toString('latin1', at) === '\r\n')
}

function contentTypeOf(boundary: string): string {
  return `multipart/form-data; boundary=${/^[\w'+\-.]+$/.test(boundary) ? boundary : `"${boundary}"`}`
}

/** @param part head and content of a field, without the line end before the next boundary */
function fieldIn(bytes: Buffer, part: ByteSpan): FormField | { readonly problem: string } {
  if (bytes.toString('latin1', part.end, part.end + 2) !== '\r\n') return { problem: 'its boundary occurs within a field' }
  const headEnd = bytes.subarray(part.start, Math.min(part.end, part.start + MAX_HEAD_BYTES)).indexOf('\r\n\r\n')
  if (headEnd < 0) return { problem: 'a field of it has no head' }
  const head = nameIn(bytes.toString('latin1', part.start, part.start + headEnd))
  if (typeof head === 'string') return { problem: head }
  const at = { start: part.start + headEnd + 4, end: part.end }
  if (head.isFile) return { name: head.name, text: undefined, at }
  const content = bytes.subarray(at.start, at.end)
  if (content.length > MAX_TEXT_BYTES || !isUtf8(content)) return { problem: `its field ${head.name} is not text, or is too long` }
  return { name: head.name, text: content.toString('utf8'), at }
}

/** @returns what is wrong with a head, or what it says */
function nameIn(head: string): string | { readonly name: string; readonly isFile: boolean } {
  const headers = head.split('\r\n').map((line) => HEADER.exec(line) ?? [])
  if (!headers.every(([, name = '']) => /^content-(disposition|type|length)$/i.test(name))) {
    return 'a field of it has another header than Content-Disposition and Content-Type'
  }
  const [disposition, ...more] = headers.filter(([, name]) => name?.toLowerCase() === 'content-disposition')
  const [, name, file] = DISPOSITION.exec(disposition?.[2] ?? '') ?? []
  return name === undefined || more.length > 0 ? 'a field of it has no plain name' : { name, isFile: file !== '' }
}
