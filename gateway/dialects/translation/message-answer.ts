/** Answers in the format of the Messages API: its reasons to stop, its usage, and a whole message of a plain chat completion. */
import { randomUUID } from 'node:crypto'
import { asObject, type JsonObject } from '../json-body.ts'
import { exactValue } from './exact-numbers.ts'
import { haveTooManyParts } from '../read-request.ts'
import { UnreadableAnswer } from '../unreadable-answer.ts'
import { settledUsage, type UsageReport } from '../usage.ts'
import { type CallPiece, type Finish, pieceOf, usageOf } from './chat-answer.ts'

/** What the request has asked for, as far as its answer needs it. */
export interface Asked {
  readonly model: string
  readonly stopSequences: readonly string[]
  /** Estimate, for a server that reports no usage. */
  readonly inputTokens: number
  /** Whether the client may not learn what the server had cached. */
  readonly hidesCached?: boolean
}

/** Fields of a message that say why it ended. */
export interface Stop {
  readonly stop_reason: string
  readonly stop_sequence: string | null
  readonly stop_details?: JsonObject
}

export function messageId(): string {
  return `msg_${randomUUID().replaceAll('-', '')}`
}

function toolId(): string {
  return `toolu_${randomUUID().replaceAll('-', '').slice(0, 24)}`
}

/** @throws UnreadableAnswer without an answer, or without a reason for its end */
export function messageAnswer(answer: JsonObject, asked: Asked, outputTokens: number): JsonObject {
  const piece = pieceOf(answer)
  if (piece?.finish === undefined) throw new UnreadableAnswer('the answer has no finish_reason')
  checkArguments(piece.calls)
  const ids = new Set<string>()
  const calls = piece.calls.map((call) => toolUse(call, ids))
  const whole = calls.filter((call) => call !== undefined)
  const content = [
    ...(piece.reasoning === '' ? [] : [{ type: 'thinking', thinking: piece.reasoning, signature: '' }]),
    ...(piece.text === '' ? [] : [{ type: 'text', text: piece.text }]),
    ...whole,
  ]
  const stop = stopOf(piece.finish, { asked, calls: calls.length, isCut: whole.length < calls.length })
  const usage = messageUsage(usageOf(answer), asked, outputTokens)
  return { id: messageId(), type: 'message', role: 'assistant', model: asked.model, content, ...stop, usage }
}

/** @returns undefined if the arguments were cut off @throws UnreadableAnswer without a name */
function toolUse({ id, name, args }: CallPiece, ids: Set<string>): JsonObject | undefined {
  if (name === undefined) throw new UnreadableAnswer('a tool call has no name')
  const input = inputOf(args)
  return input && { type: 'tool_use', id: uniqueId(id, ids), name, input }
}

/** Some servers number the calls of each answer. Such an id would come again in the next turn. */
const NUMBERED = /^(?:call_?)?\d{1,6}$/

export function uniqueId(id: string | undefined, ids: Set<string>): string {
  const unique = id === undefined || ids.has(id) || NUMBERED.test(id) ? toolId() : id
  ids.add(unique)
  return unique
}

/**
 * Arguments are texts within the answer, so no bound of its parts counts them: parsed, 30 MiB of empty objects would end the process.
 * @throws UnreadableAnswer
 */
export function checkArguments(calls: ReadonlyArray<Pick<CallPiece, 'args'>>): void {
  if (haveTooManyParts(calls.map(({ args }) => args))) throw new UnreadableAnswer('the arguments of its tool calls have too many parts')
}

/** The arguments of a call. Some servers send an empty text for a call without arguments. @returns undefined unless they are a JSON object */
export function inputOf(args: string): JsonObject | undefined {
  if (args.trim() === '') return {}
  try {
    return asObject(exactValue(JSON.parse(args) as unknown, args))
  } catch {
    return undefined
  }
}

/** What decides the reason to stop besides the word of the server. */
export interface StopContext {
  readonly asked: Asked
  readonly calls: number
  /** Whether the arguments of a call were cut off. */
  readonly isCut: boolean
}

/**
 * A call is a call whatever the server says of its end. Arguments that were cut off are the limit of tokens, so that no client runs half a call.
 * @throws UnreadableAnswer if the server itself broke off
 */
export function stopOf({ reason, stopSequence }: Finish, { asked, calls, isCut }: StopContext): Stop {
  if (reason === 'abort' || reason === 'error') throw new UnreadableAnswer(`the answer ended with finish_reason ${reason}`)
  if (reason === 'content_filter') {
    return { stop_reason: 'refusal', stop_sequence: null, stop_details: { type: 'refusal', category: null, explanation: null } }
  }
  if (reason === 'length' || isCut) return { stop_reason: 'max_tokens', stop_sequence: null }
  if (calls > 0) return { stop_reason: 'tool_use', stop_sequence: null }
  const isNamed = stopSequence !== undefined && asked.stopSequences.includes(stopSequence)
  return isNamed ? { stop_reason: 'stop_sequence', stop_sequence: stopSequence } : { stop_reason: 'end_turn', stop_sequence: null }
}

/**
 * The counts by which the call is charged. Anthropic counts cached tokens apart from the others, so a client that may not learn of a cache
 * gets the whole prompt. A count of a cache that the server does not give is left out.
 */
export function messageUsage(report: UsageReport = {}, { inputTokens, hidesCached = false }: Asked, outputTokens: number): JsonObject {
  const usage = settledUsage(report, { inputTokens, outputTokens })
  if (hidesCached) return { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens }
  const { cachedInputTokens: read, cacheWrittenTokens: written = 0 } = usage
  return {
    input_tokens: usage.inputTokens - read - written,
    ...(report.cacheReadTokens !== undefined && { cache_read_input_tokens: read }),
    ...(report.cacheWrittenTokens !== undefined && { cache_creation_input_tokens: written }),
    output_tokens: usage.outputTokens,
  }
}
