import { parseSseEvent } from '../dialects/sse.ts'
import { renamedAnswer } from './rename-model.ts'

const DATA = Buffer.from('data:')

/**
 * One event of a stream with `model` set to the name that the client asked for. Of an event that changes, only the data line does.
 * @param event whole, with its boundary
 * @returns `event` itself when nothing has to change
 */
export function renamedEvent(event: Buffer, askedName: string): Buffer {
  const { data } = parseSseEvent(event)
  if (data === undefined) return event
  const before = Buffer.from(data)
  const after = renamedAnswer(before, askedName)
  if (after === before) return event
  const at = event.indexOf(before)
  if (at >= 0) return Buffer.concat([event.subarray(0, at), after, event.subarray(at + before.length)])
  return rewritten(event, after) // the data came in several lines
}

function rewritten(event: Buffer, data: Buffer): Buffer {
  const others = event
    .toString('utf8')
    .split(/\r\n|\n|\r/)
    .filter((line) => line !== '' && !line.startsWith('data'))
  return Buffer.concat([Buffer.from(others.map((line) => `${line}\n`).join('')), DATA, Buffer.from(' '), data, Buffer.from('\n\n')])
}
