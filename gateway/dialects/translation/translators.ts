/**
 * Translations between wire formats of clients and of servers. A translator is pure: it turns values into values. A client's format without a
 * translator is forwarded to servers of that format only.
 */
import type { CallRoute } from '#contract/values/call-routes.ts'
import { type BackendEvents, openaiEvents } from '../backend-events.ts'
import type { JsonObject } from '../json-body.ts'
import { type ChatRequest, chatRequest, type ChatServer } from './chat-request.ts'
import { type Asked, messageAnswer } from './message-answer.ts'
import { MessageStream } from './message-stream.ts'

/** The stream of one answer. Its methods throw UnreadableAnswer if the server breaks off. */
export interface AnswerStream {
  /** Whether the server has said why it stopped. */
  readonly isFinished: boolean
  /** Whether the last event was returned. */
  readonly isEnded: boolean
  /** @param chunk data of one event @param outputTokens estimate until now @returns whole events for the client, or an empty text */
  push(chunk: JsonObject, outputTokens: number): string
  end(outputTokens: number): string
}

export interface Translator {
  /** The route of the server. */
  readonly to: CallRoute
  /** How the server's streams are read. */
  readonly events: BackendEvents
  /** @throws GatewayError, rows 11 and 15 */
  request(body: JsonObject, server: ChatServer): ChatRequest
  /** @throws UnreadableAnswer */
  answer(answer: JsonObject, asked: Asked, outputTokens: number): JsonObject
  stream(asked: Asked): AnswerStream
}

/** By the route of the client. */
export const TRANSLATORS: Partial<Readonly<Record<CallRoute, Translator>>> = {
  messages: {
    to: 'chat/completions',
    events: openaiEvents,
    request: chatRequest,
    answer: messageAnswer,
    stream: (asked) => new MessageStream(asked),
  },
}
