/** Builds error bodies in both formats as JSON text. `send-error.ts` sends them as answers, `client-framing.ts` as frames. */
import { errorMessage, errorParam, type ErrorFormat, type GatewayError } from '../errors.ts'

/**
 * Builds an error body. OpenAI's always has all four fields, with null for no value. Anthropic's names the request.
 * @param requestId the gateway's own, not that of the client
 */
export function errorBody(format: ErrorFormat, error: GatewayError, requestId: string): string {
  const { row, params } = error
  if (format === 'anthropic') {
    const message = errorMessage(row, params, format)
    return JSON.stringify({ type: 'error', error: { type: row.anthropic, message }, request_id: requestId })
  }
  const { type, code } = row.openai
  return JSON.stringify({ error: { message: error.message, type, param: errorParam(row, params), code } })
}
