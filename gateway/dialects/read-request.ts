/** From the bytes of a request body to what the gateway decides on, and the bytes to send. Pure, so that any thread may do it. */
import { GatewayError } from '../errors.ts'
import type { Dialect, ModelRequest } from './dialect.ts'
import { parseBody } from './parse-body.ts'
import { promptSize, type PromptSize } from './prompt-size.ts'
import { requestBody, type RequestBody } from './request-body.ts'

/** A request body that was read. */
export interface ReadRequest {
  readonly asked: ModelRequest
  readonly body: RequestBody
  /** undefined when it was not asked for. */
  readonly size: PromptSize | undefined
}

/**
 * Reads a request body. Text and parsed value end with this function: the bytes alone live as long as the call.
 * @param isMetered whether limits need to know what the call costs: the size of its prompt, and the place where its usage can be asked for. Calls
 * of keys without limits do not pay for either
 * @returns what was read, or the refusal (rows 10, 11, 42)
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
