/** From the bytes of a request body to what the gateway decides on, and the bytes to send. Pure, so that any thread may do it. */
import { GatewayError } from '../errors.ts'
import type { Dialect, ModelRequest } from './dialect.ts'
import { parseBody } from './parse-body.ts'
import { requestBody, type RequestBody } from './request-body.ts'

/** A request body that was read. */
export interface ReadRequest {
  readonly asked: ModelRequest
  readonly body: RequestBody
}

/**
 * Reads a request body. Text and parsed value end with this function: the bytes alone live as long as the call.
 * @returns what was read, or the refusal (rows 10, 11, 42)
 */
export function readRequest(bytes: Buffer, dialect: Dialect): ReadRequest | GatewayError {
  const json = parseBody(bytes)
  if (json instanceof GatewayError) return json
  const asked = dialect.readRequest(json.value)
  return asked instanceof GatewayError ? asked : { asked, body: requestBody(json, asked.model) }
}
