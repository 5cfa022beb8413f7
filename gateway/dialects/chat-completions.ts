import { openaiStream } from './stream-dialect.ts'
import type { InferenceDialect } from './dialect.ts'
import { readMessagesRequest } from './request-shape.ts'

/** OpenAI chat completions; every backend serves them. */
export const chatCompletions: InferenceDialect = {
  name: 'openai',
  path: '/v1/chat/completions',
  stream: openaiStream,
  needsNative: false,
  readRequest: readMessagesRequest,
}
