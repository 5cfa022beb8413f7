/** Error bodies of both dialects as JSON text. Who sends them: `send-error.ts` as an answer, `stream-format.ts` as a frame. */
import { errorMessage, errorParam, type ErrorFormat, type GatewayError } from '../errors.ts'

/**
 * The error object of a format. OpenAI: always all four fields, null where there is nothing. Anthropic: names the request.
 * @param requestId ours; not the one that the client sent
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
