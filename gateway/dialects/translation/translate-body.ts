/** A request body in the format of a server. Pure, so any thread may make it. */
import type { Engine } from '#contract/values/call-routes.ts'
import { GatewayError } from '../../errors.ts'
import type { Dialect } from '../dialect.ts'
import { type JsonObject, parseObject } from '../json-body.ts'
import { promptSize } from '../prompt-size.ts'
import { type RequestBody, writtenBody } from '../request-body.ts'
import { ENGINE_TRAITS, type EngineTraits } from './engine-traits.ts'
import { withExactInputs } from './exact-numbers.ts'
import { TRANSLATORS } from './translators.ts'

/** A body for servers of one engine. */
export interface Translation {
  readonly body: RequestBody
  /** Headers of the answer that name what was left out or altered: name, value, name, value … */
  readonly headers: readonly string[]
  readonly stopSequences: readonly string[]
}

export interface TranslateOptions {
  readonly engine: Engine
  /** Of the model; undefined: unknown. */
  readonly contextTokens?: number | undefined
  /** Whether the body is for the tokenizer of the server, and not for an answer. */
  readonly isCount?: boolean
}

/** @param bytes a body of the dialect that was read before @returns rows 11 and 15 for a body that cannot be translated */
export function translateBody(bytes: Buffer, dialect: Pick<Dialect, 'route'>, options: TranslateOptions): Translation | GatewayError {
  const text = bytes.toString('utf8')
  const parsed = parseObject(text)
  const body = parsed && withExactInputs(parsed, text)
  const translator = TRANSLATORS[options.isCount ? 'messages' : dialect.route]
  if (body === undefined || translator === undefined || typeof body.model !== 'string') throw new TypeError('not a body to translate')
  try {
    const traits = ENGINE_TRAITS[options.engine]
    const { fields, changes } = translator.request(body, { traits, tokensLeft: tokensLeft(body, bytes.length, options.contextTokens) })
    const sent = options.isCount ? countedFields(fields, traits) : fields
    return { body: writtenBody(sent, body.model, body.stream === true), headers: changes.headers(), stopSequences: stopSequencesIn(body) }
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}

/** The parts of a chat completion from which its prompt is made. A server that renders the prompt as for an answer gets all of them. */
function countedFields(fields: JsonObject, { tokenizer }: EngineTraits): JsonObject {
  if (tokenizer !== 'ChatTokenize') return fields
  const { messages, tools, chat_template_kwargs: template } = fields
  return { messages, tools, chat_template_kwargs: template, add_generation_prompt: true }
}

/** Tokens for the answer beside the prompt. Only a cap that might not fit is worth the estimate: a token has at least one byte. */
function tokensLeft(body: JsonObject, bytes: number, contextTokens: number | undefined): number | undefined {
  if (contextTokens === undefined || typeof body.max_tokens !== 'number' || body.max_tokens + bytes <= contextTokens) return undefined
  return Math.max(1, contextTokens - promptSize(body, bytes).tokens)
}

/** Sequences that a server may name. They stay in memory until the answer ends, so there are few and short ones. */
const MAX_SEQUENCES = 64
const MAX_SEQUENCE_LENGTH = 256

function stopSequencesIn({ stop_sequences: sequences }: JsonObject): string[] {
  const texts = Array.isArray(sequences) ? sequences.filter((sequence) => typeof sequence === 'string') : []
  return texts.filter(({ length }) => length <= MAX_SEQUENCE_LENGTH).slice(0, MAX_SEQUENCES)
}
