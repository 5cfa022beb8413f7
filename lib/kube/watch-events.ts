import { z } from 'zod'

/** One line of a watch. `object` is a Status for ERROR, and has little more than a resourceVersion for BOOKMARK. */
const watchEvent = z.object({ type: z.enum(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']), object: z.unknown() })

export type WatchEvent = Readonly<z.infer<typeof watchEvent>>

/** A longer line is not a watch event: no object is that large, since etcd refuses more than 1.5 MB. */
const MAX_LINE_BYTES = 16 * 1024 * 1024
const NEWLINE = 0x0a

/**
 * Splits a watch into events. Lines are split as bytes and decoded as a whole, since a character may be split between two chunks.
 * An unfinished last line is dropped; the next watch starts before it.
 * @throws Error on a line that is not a watch event
 */
export async function* watchEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<WatchEvent> {
  for await (const line of lines(chunks)) {
    if (line.length === 0) continue
    yield readEvent(line)
  }
}

function readEvent(line: string): WatchEvent {
  try {
    return watchEvent.parse(JSON.parse(line))
  } catch {
    throw new Error('a line of the watch is not an event') // the cause would quote the line, which may hold a Secret
  }
}

async function* lines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let parts: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      yield Buffer.concat([...parts, chunk.subarray(start, end)]).toString('utf8')
      parts = []
      bytes = 0
      start = end + 1
    }
    parts.push(chunk.subarray(start))
    bytes += chunk.length - start
    if (bytes > MAX_LINE_BYTES) throw new Error(`a line of the watch is longer than ${MAX_LINE_BYTES} bytes`)
  }
}
