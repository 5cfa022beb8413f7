/** What an answer of chat completions says, whichever server wrote it: the fields by which servers differ are read here alone. */
import { asObject, type JsonObject } from '../json-body.ts'
import { UnreadableAnswer } from '../unreadable-answer.ts'
import { openaiUsage, type UsageReport } from '../usage.ts'

/** A part of an answer: a plain answer has one, a stream has many. */
export interface ChatPiece {
  readonly reasoning: string
  readonly text: string
  readonly calls: readonly CallPiece[]
  readonly finish: Finish | undefined
}

export interface CallPiece {
  /** By which later pieces of the call are recognised; undefined or negative: the server sends none. */
  readonly index: number | undefined
  readonly id: string | undefined
  readonly name: string | undefined
  readonly args: string
}

export interface Finish {
  readonly reason: string
  /** The stop sequence that ended the answer, if the server names it. */
  readonly stopSequence: string | undefined
}

/** @returns undefined if it has no choice, as the last chunk with the usage */
export function pieceOf(answer: JsonObject): ChatPiece | undefined {
  const choices: unknown = answer.choices
  const choice = Array.isArray(choices) ? asObject(choices[0]) : undefined
  if (choice === undefined) return undefined
  const delta = asObject(choice.delta)
  const message = delta ?? asObject(choice.message) ?? {}
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls.map(callOf).filter(isSaid) : []
  return {
    reasoning: textOf(message.reasoning_content) || textOf(message.reasoning),
    text: contentText(message.content) || textOf(message.refusal),
    calls: delta ? calls : calls.map((call, index) => ({ ...call, index })), // a plain answer has each call once, whatever its index
    finish: finishOf(choice),
  }
}

export function usageOf(answer: JsonObject): UsageReport | undefined {
  return openaiUsage(answer)
}

/** Servers name the stop sequence in different fields; a number there is the id of a token. */
function finishOf(choice: JsonObject): Finish | undefined {
  const { finish_reason: reason, stop_reason: stopReason, matched_stop: matched } = choice
  if (typeof reason !== 'string' || reason === '') return undefined
  return { reason, stopSequence: textOf(stopReason) || textOf(matched) || undefined }
}

/** A piece that says nothing is no call. */
function isSaid({ id, name, args }: CallPiece): boolean {
  return id !== undefined || name !== undefined || args !== ''
}

function callOf(value: unknown): CallPiece {
  const call = asObject(value) ?? {}
  const { name, arguments: args } = asObject(call.function) ?? {}
  return {
    index: typeof call.index === 'number' && call.index >= 0 ? call.index : undefined,
    id: textOf(call.id) || undefined,
    name: textOf(name) || undefined,
    args: typeof args === 'string' ? args : argumentText(args),
  }
}

/** Some servers send the arguments as an object. @throws UnreadableAnswer if it is nested too deep to be written */
function argumentText(args: unknown): string {
  if (asObject(args) === undefined) return ''
  try {
    return JSON.stringify(args)
  } catch (cause) {
    throw new UnreadableAnswer('the arguments of a tool call cannot be written', { cause })
  }
}

function contentText(content: unknown): string {
  if (!Array.isArray(content)) return textOf(content)
  return content.map((part) => textOf(asObject(part)?.text)).join('')
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
