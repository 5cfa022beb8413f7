import { parseSseEvent } from '../dialects/sse.ts'
import { renamedAnswer } from './rename-model.ts'

const DATA = Buffer.from('data:')

/**
 * Sets `model` of a stream's event to the name that the client requested. Only the data line changes.
 * @param event whole, with its boundary
 * @returns `event` itself if nothing changes
 */
export function renamedEvent(event: Buffer, askedName: string): Buffer {
  const { data } = parseSseEvent(event)
  if (data === undefined) return event
  const before = Buffer.from(data)
  const after = renamedAnswer(before, askedName)
  if (after === before) return event
  const at = event.indexOf(before)
  if (at >= 0) return Buffer.concat([event.subarray(0, at), after, event.subarray(at + before.length)])
  return rewritten(event, after) // the data has several lines
}

function rewritten(event: Buffer, data: Buffer): Buffer {
  const others = event
    .toString('utf8')
    .split(/\r\n|\n|\r/)
    .filter((line) => line !== '' && !line.startsWith('data'))
  return Buffer.concat([Buffer.from(others.map((line) => `${line}\n`).join('')), DATA, Buffer.from(' '), data, Buffer.from('\n\n')])
}
