/** What crosses between the gateway and the worker that reads large bodies: plain data, and bytes that change hands without a copy. */
import { type ErrorParams, GatewayError, type RowID } from '../errors.ts'
import type { ModelRequest } from './dialect.ts'
import type { PromptSize } from './prompt-size.ts'
import type { ReadRequest } from './read-request.ts'
import type { RequestBody } from './request-body.ts'

/** Bytes that fill an ArrayBuffer of their own: it may be transferred, since nobody else has bytes in it. */
export type OwnBytes = Uint8Array<ArrayBuffer>

/** A body to read. */
export interface BodyJob {
  /** Path of the dialect. */
  readonly path: string
  readonly bytes: OwnBytes
  /** Whether limits need to know what the call costs. */
  readonly isMetered: boolean
}

/** What the worker says once, before it takes its first job. */
export const READY = 'ready'

/** What became of a job. */
export type BodyAnswer =
  | {
      readonly asked: ModelRequest
      readonly body: Omit<RequestBody, 'bytes'>
      readonly bytes: OwnBytes
      readonly size: PromptSize | undefined
    }
  | { readonly row: RowID; readonly params: ErrorParams }

/** @returns the buffer's own memory, or a copy where the memory is a pool's, or shared with another thread */
export function ownBytes({ buffer, byteOffset, length }: Buffer): OwnBytes {
  const isOwn = buffer instanceof ArrayBuffer && length === buffer.byteLength
  return isOwn ? new Uint8Array(buffer) : new Uint8Array(buffer, byteOffset, length).slice()
}

/** The same bytes as a Buffer. */
export function bufferOf({ buffer }: OwnBytes): Buffer {
  return Buffer.from(buffer)
}

/** Makes plain data of what was read. */
export function answerOf(result: ReadRequest | GatewayError): BodyAnswer {
  if (result instanceof GatewayError) return { row: result.row.id, params: result.params }
  const { asked, size } = result
  const { bytes, ...body } = result.body
  return { asked, body, bytes: ownBytes(bytes), size }
}

/** The same again on the other side. */
export function resultOf(answer: BodyAnswer): ReadRequest | GatewayError {
  if ('row' in answer) return new GatewayError(answer.row, answer.params)
  const { asked, body, bytes, size } = answer
  return { asked, body: { ...body, bytes: bufferOf(bytes) }, size }
}

/** What of an answer is transferred. */
export function transferOf(answer: BodyAnswer): readonly ArrayBuffer[] {
  return 'bytes' in answer ? [answer.bytes.buffer] : []
}
