/** Messages between the gateway and the worker that reads large bodies: plain data, and bytes that are transferred without a copy. */
import { type ErrorParams, GatewayError, type RowID } from '../errors.ts'
import type { HowToRead, ReadRequest } from './read-request.ts'
import type { RequestBody } from './request-body.ts'

/** Bytes that fill their ArrayBuffer. The buffer may be transferred, because it has no other bytes. */
type OwnBytes = Uint8Array<ArrayBuffer>

/** Order to read a body. */
export interface BodyJob {
  readonly path: string
  readonly bytes: OwnBytes
  readonly how: HowToRead
}

/** First message of the worker, before its first order. */
export const READY = 'ready'

/** The result, with the bytes of its body apart from it. */
export type BodyAnswer =
  | (Omit<ReadRequest, 'body'> & { readonly body: Omit<RequestBody, 'bytes'>; readonly bytes: OwnBytes })
  | { readonly row: RowID; readonly params: ErrorParams }

/** @returns the buffer's own memory, or a copy if the memory belongs to a pool or is shared with another thread */
export function ownBytes({ buffer, byteOffset, length }: Buffer): OwnBytes {
  const isOwn = buffer instanceof ArrayBuffer && length === buffer.byteLength
  return isOwn ? new Uint8Array(buffer) : new Uint8Array(buffer, byteOffset, length).slice()
}

export function bufferOf({ buffer }: OwnBytes): Buffer {
  return Buffer.from(buffer)
}

export function answerOf(result: ReadRequest | GatewayError): BodyAnswer {
  if (result instanceof GatewayError) return { row: result.row.id, params: result.params }
  const { bytes, ...body } = result.body
  return { ...result, body, bytes: ownBytes(bytes) }
}

export function resultOf(answer: BodyAnswer): ReadRequest | GatewayError {
  if ('row' in answer) return new GatewayError(answer.row, answer.params)
  const { body, bytes, ...rest } = answer
  return { ...rest, body: { ...body, bytes: bufferOf(bytes) } }
}
