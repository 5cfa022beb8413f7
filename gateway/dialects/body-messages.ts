/** Messages between the gateway and the worker that reads large bodies and answers: plain data, and bytes that are transferred without a copy. */
import { type ErrorParams, GatewayError, type RowID } from '../errors.ts'
import type { HowToRead, ReadRequest } from './read-request.ts'
import type { RequestBody } from './request-body.ts'
import type { TranslateOptions, Translation } from './translation/translate-body.ts'
import type { AnswerOrder, WholeAnswer } from './whole-answer.ts'

/** Bytes that fill their ArrayBuffer. The buffer may be transferred, because it has no other bytes. */
type OwnBytes = Uint8Array<ArrayBuffer>

/** Order to read a body, to translate one that was read, or to write an answer in another form. */
export interface BodyJob {
  readonly path: string
  readonly bytes: OwnBytes
  readonly how: HowToRead
  /** The translations to make of the body; absent: read it. */
  readonly translations?: readonly TranslateOptions[]
  /** The bytes are those of an answer. */
  readonly answer?: AnswerOrder
}

/** First message of the worker, before its first order. */
export const READY = 'ready'

/** A result with the bytes of its body apart from it, or a refusal. */
export type AnswerTo<T> =
  | { readonly result: Omit<T, 'body'>; readonly body: Omit<RequestBody, 'bytes'>; readonly bytes: OwnBytes }
  | { readonly row: RowID; readonly params: ErrorParams }

/** The result of an order: of the body that was read, of each translation, or of the answer. */
export type BodyAnswer = AnswerTo<ReadRequest> | ReadonlyArray<AnswerTo<Translation>> | SentAnswer

/** A whole answer whose bytes are transferred. */
export type SentAnswer =
  | Exclude<WholeAnswer, { readonly kind: 'Answer' }>
  | (Omit<Extract<WholeAnswer, { readonly kind: 'Answer' }>, 'bytes'> & { readonly bytes: OwnBytes })

/** @returns the buffer's own memory, or a copy if the memory belongs to a pool or is shared with another thread */
export function ownBytes({ buffer, byteOffset, length }: Buffer): OwnBytes {
  const isOwn = buffer instanceof ArrayBuffer && length === buffer.byteLength
  return isOwn ? new Uint8Array(buffer) : new Uint8Array(buffer, byteOffset, length).slice()
}

export function bufferOf({ buffer }: OwnBytes): Buffer {
  return Buffer.from(buffer)
}

export function answerOf<T extends { readonly body: RequestBody }>(outcome: T | GatewayError): AnswerTo<T> {
  if (outcome instanceof GatewayError) return { row: outcome.row.id, params: outcome.params }
  const { body, ...result } = outcome
  const { bytes, ...rest } = body
  return { result, body: rest, bytes: ownBytes(bytes) }
}

export function resultOf<T extends { readonly body: RequestBody }>(answer: AnswerTo<T>): T | GatewayError {
  if ('row' in answer) return new GatewayError(answer.row, answer.params)
  const { result, body, bytes } = answer
  return { ...result, body: { ...body, bytes: bufferOf(bytes) } } as unknown as T
}

export function sentAnswer(answer: WholeAnswer): SentAnswer {
  return answer.kind === 'Answer' ? { ...answer, bytes: ownBytes(answer.bytes) } : answer
}

export function receivedAnswer(answer: SentAnswer): WholeAnswer {
  return answer.kind === 'Answer' ? { ...answer, bytes: bufferOf(answer.bytes) } : answer
}
