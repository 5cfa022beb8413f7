/**
 * Splits server-sent events as bytes and decodes single events. No byte is changed. Lines end in LF, CRLF or CR (WHATWG HTML, "Interpreting
 * an event stream"); a chunk may be cut anywhere.
 */
import { ChunkList } from '#platform/chunk-list.ts'
import type { JsonObject } from './json-body.ts'

const LF = 10
const CR = 13
const EMPTY = Buffer.alloc(0)
const BYTE_ORDER_MARK = '\uFEFF'
/** A boundary is at most CRLF after a line end, so this many bytes of the tail are searched again with the next chunk. */
const WINDOW_BYTES = 3

/** One event, decoded. Several `data:` lines are joined by LF. */
interface SseEvent {
  /** Last `event:` line, undefined without one. */
  readonly event: string | undefined
  /** undefined without any `data:` line */
  readonly data: string | undefined
  /** false for comments and blank lines alone. true without `data` is an event that crashes some SDKs */
  readonly hasFields: boolean
}

/** An event whose type is also its name. */
export interface TypedEvent extends JsonObject {
  readonly type: string
}

export function typedEvent(event: TypedEvent): string {
  return `event: ${event.type}\n${dataEvent(JSON.stringify(event))}`
}

/** @param data one line */
export function dataEvent(data: string): string {
  return `data: ${data}\n\n`
}

/**
 * Collects chunks and returns them up to the last event boundary, so that a relay can edit or add whole events. The concatenation of all
 * results of `push` and `end` equals the input, byte for byte.
 */
export class SseSplitter {
  readonly #tail = new ChunkList()
  #window: Buffer = EMPTY

  get tailBytes(): number {
    return this.#tail.bytes
  }

  /** @returns all bytes up to the last event boundary; empty if no event is complete; usually the chunk itself, without a copy */
  push(chunk: Buffer): Buffer {
    const probe = this.#window.length === 0 ? chunk : Buffer.concat([this.#window, chunk])
    const cut = lastBoundary(probe, this.#window.length) - this.#window.length
    if (cut <= 0) {
      this.#keep(chunk, probe)
      return EMPTY
    }
    const whole = this.#tail.bytes === 0 ? chunk.subarray(0, cut) : Buffer.concat([this.#tail.take(), chunk.subarray(0, cut)])
    this.#window = EMPTY
    if (cut < chunk.length) this.#keep(chunk.subarray(cut), chunk.subarray(cut))
    return whole
  }

  /** @returns the rest at the end of the stream: an event without its boundary, or nothing */
  end(): Buffer {
    return this.#tail.take()
  }

  #keep(bytes: Buffer, probe: Buffer): void {
    if (bytes.length === 0) return
    this.#tail.add(bytes)
    this.#window = probe.subarray(-WINDOW_BYTES)
  }
}

/**
 * Cuts the results of `SseSplitter.push` into single events with their boundaries, without copies. A lone LF after a CR boundary (the
 * network cut CRLF in two) becomes the start of the following event.
 */
export function* splitEvents(whole: Buffer): Generator<Buffer, void> {
  const hasCR = whole.includes(CR)
  let start = 0
  let end = nextBoundary(whole, start, hasCR)
  while (end > 0) {
    yield whole.subarray(start, end)
    start = end
    end = nextBoundary(whole, start, hasCR)
  }
  if (start < whole.length) yield whole.subarray(start)
}

/** Decodes one whole event. It never throws: invalid UTF-8 becomes replacement characters. */
export function parseSseEvent(bytes: Buffer): SseEvent {
  let event: string | undefined
  let data: string | undefined
  let hasFields = false
  const text = bytes.toString('utf8')
  for (const line of (text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text).split(/\r\n|\n|\r/)) {
    if (line === '' || line.startsWith(':')) continue
    hasFields = true
    const { name, value } = field(line)
    if (name === 'event') event = value
    else if (name === 'data') data = data === undefined ? value : `${data}\n${value}`
  }
  return { event, data, hasFields }
}

function field(line: string): { name: string; value: string } {
  const colon = line.indexOf(':')
  if (colon < 0) return { name: line, value: '' }
  const value = line.charCodeAt(colon + 1) === 32 ? colon + 2 : colon + 1 // one space after the colon does not belong to the value
  return { name: line.slice(0, colon), value: line.slice(value) }
}

/** @returns index after the last empty line that ends beyond `from`, or -1 */
function lastBoundary(bytes: Buffer, from: number): number {
  for (let end = bytes.length; end > from; end--) {
    if (endsEmptyLine(bytes, end, 0)) return end
  }
  return -1
}

/** @returns index after the first empty line beyond `from`, or -1 */
function nextBoundary(bytes: Buffer, from: number, hasCR: boolean): number {
  if (!hasCR) {
    const found = bytes.indexOf('\n\n', from)
    return found < 0 ? -1 : found + 2
  }
  for (let end = from + 2; end <= bytes.length; end++) {
    if (endsEmptyLine(bytes, end, from)) return end
  }
  return -1
}

/**
 * Whether the line end before `end` follows another line end. A CR counts even if its LF may still arrive: waiting for it could hold the
 * event without end.
 */
function endsEmptyLine(bytes: Buffer, end: number, start: number): boolean {
  const last = bytes[end - 1]
  if (last === CR) return bytes[end] !== LF && isLineEnd(bytes, end - 2, start)
  if (last !== LF) return false
  const isPair = end - 2 >= start && bytes[end - 2] === CR
  return isLineEnd(bytes, isPair ? end - 3 : end - 2, start)
}

function isLineEnd(bytes: Buffer, at: number, start: number): boolean {
  return at >= start && (bytes[at] === LF || bytes[at] === CR)
}
