import { anthropicStream } from './stream-dialect.ts'
import type { InferenceDialect } from './dialect.ts'
import { readMessagesRequest } from './request-shape.ts'

/** Anthropic Messages, passed on as they are to backends that speak them. */
export const messages: InferenceDialect = {
  name: 'anthropic',
  path: '/v1/messages',
  stream: anthropicStream,
  needsNative: true,
  readRequest: readMessagesRequest,
}
