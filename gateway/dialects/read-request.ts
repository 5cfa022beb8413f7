/** Reads from a request body the fields on which the gateway decides, and prepares the bytes to send. Pure, so any thread may do it. */
import { GatewayError } from '../errors.ts'
import type { Dialect, ModelRequest } from './dialect.ts'
import { parseBody } from './parse-body.ts'
import { promptSize, type PromptSize } from './prompt-size.ts'
import { requestBody, type RequestBody } from './request-body.ts'

/** A request body after reading. */
export interface ReadRequest {
  readonly asked: ModelRequest
  readonly body: RequestBody
  /** undefined for a call without limits. */
  readonly size: PromptSize | undefined
}

/**
 * Reads a request body. Text and parsed value end with this function; only the bytes live as long as the call.
 * @param isMetered whether limits need the cost of the call: the size of its prompt, and the position at which its usage can be requested.
 * Calls of keys without limits skip both
 * @returns the request, or the refusal (rows 10, 11, 42)
 */
export function readRequest(bytes: Buffer, dialect: Dialect, isMetered = false): ReadRequest | GatewayError {
  const json = parseBody(bytes)
  if (json instanceof GatewayError) return json
  const asked = dialect.readRequest(json.value)
  if (asked instanceof GatewayError) return asked
  const asksUsage = isMetered && dialect.hasUsageOption && asked.stream && !asked.wantsUsage
  const size = isMetered ? promptSize(json.value, bytes.length) : undefined
  return { asked, body: requestBody(json, asked.model, asksUsage), size }
}
