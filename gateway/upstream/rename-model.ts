/** Answers name the model as the client does, whatever the backend calls it. Bytes change only where the name stands. */
import { asObject, readJson, type JsonBody } from '../dialects/json-body.ts'
import { edited, literalAtTop, provenLiteral } from '../dialects/proven-field.ts'

const TOKEN = Buffer.from('"model"')

/** A backend's answer that JSON.parse reads and JSON.stringify cannot write. */
export class UnwritableAnswer extends Error {}

/**
 * An answer, or the data of one streamed event, with `model` set to the name that the client asked for: at its top level, or in the
 * `message` of Anthropic's `message_start`.
 * @returns `json` itself when there is no such field, when it says so already, or when this is no JSON object
 * @throws UnwritableAnswer
 */
export function renamedAnswer(json: Buffer, askedName: string): Buffer {
  const body = json.includes(TOKEN) ? readJson(json) : undefined // most events of an Anthropic stream need no parse
  return body === undefined ? json : renamedBody(body, askedName)
}

/** `renamedAnswer` of what is parsed already. @throws UnwritableAnswer */
export function renamedBody(body: JsonBody, askedName: string): Buffer {
  const { bytes, value } = body
  const message = asObject(value.message)
  const shown = value.model ?? message?.model
  if (typeof shown !== 'string' || shown === askedName) return bytes
  const at = provenLiteral(body, 'model', shown)
  if (at !== undefined) return edited(bytes, [{ ...at, text: JSON.stringify(askedName) }])
  const renamed = typeof value.model === 'string' ? { ...value, model: askedName } : { ...value, message: { ...message, model: askedName } }
  try {
    return Buffer.from(JSON.stringify(renamed))
  } catch (cause) {
    throw new UnwritableAnswer('the answer is nested too deep to be written anew', { cause }) // the parser takes any depth, the writer recurses
  }
}

/**
 * The first bytes of an answer that is too large to be held, with `model` set to the name that the client asked for, if it stands in them
 * at the top level. Nothing is authorised by an answer, so that a second `model` further on does no harm.
 */
export function renamedStart(start: Buffer, askedName: string): Buffer {
  const at = literalAtTop(start, 'model')
  const text = JSON.stringify(askedName)
  return at === undefined || start.toString('utf8', at.start, at.end) === text ? start : edited(start, [{ ...at, text }])
}
