/** Renames the model in answers to the name that the client requested. Other bytes do not change. */
import { asObject, readJson, type JsonBody } from '../dialects/json-body.ts'
import { edited, literalAtTop, provenLiteral } from '../dialects/proven-field.ts'
import { parseSseEvent } from '../dialects/sse.ts'
import { UnreadableAnswer } from '../dialects/unreadable-answer.ts'

const TOKEN = Buffer.from('"model"')
/** Fields of an event that may hold the answer. */
const INNER = ['message', 'response'] as const

/**
 * Sets `model` of an answer, or of the data of a streamed event, to the requested name: at the top level, in the `message` of Anthropic's
 * `message_start`, or in the `response` of events of a Responses stream.
 * @returns `json` itself if there is no such field, if the field has that name, or if this is not a JSON object
 * @throws UnreadableAnswer
 */
export function renamedAnswer(json: Buffer, askedName: string): Buffer {
  const body = json.includes(TOKEN) ? readJson(json) : undefined // most events of an Anthropic stream are not parsed
  return body === undefined ? json : renamedBody(body, askedName)
}

/** `renamedAnswer` for a parsed object. @throws UnreadableAnswer */
export function renamedBody(body: JsonBody, askedName: string): Buffer {
  const { bytes, value } = body
  const inner = INNER.find((name) => asObject(value[name])?.model !== undefined)
  const holder = inner === undefined ? undefined : asObject(value[inner])
  const shown = value.model ?? holder?.model
  if (typeof shown !== 'string' || shown === askedName) return bytes
  const at = provenLiteral(body, 'model', shown)
  if (at !== undefined) return edited(bytes, [{ ...at, text: JSON.stringify(askedName) }])
  const renamed =
    typeof value.model === 'string' ? { ...value, model: askedName } : { ...value, [String(inner)]: { ...holder, model: askedName } }
  try {
    return Buffer.from(JSON.stringify(renamed))
  } catch (cause) {
    throw new UnreadableAnswer('the answer is nested too deep to be serialised again', { cause }) // the parser accepts any depth, but the writer is recursive
  }
}

/** For an answer that is too large to keep. It authorises nothing, so a second `model` further on does no harm. */
export function renamedStart(start: Buffer, askedName: string): Buffer {
  const at = literalAtTop(start, 'model')
  const text = JSON.stringify(askedName)
  return at === undefined || start.toString('utf8', at.start, at.end) === text ? start : edited(start, [{ ...at, text }])
}

const DATA = Buffer.from('data: ')

/** Only the data line changes. @param event whole, with its boundary @returns `event` itself if nothing changes */
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
  return Buffer.concat([Buffer.from(others.map((line) => `${line}\n`).join('')), DATA, data, Buffer.from('\n\n')])
}
