import { openaiEvents } from './backend-events.ts'
import { openaiFraming } from './client-framing.ts'
import type { Dialect } from './dialect.ts'
import { wrongMessages } from './request-shape.ts'

/** OpenAI chat completions; every backend serves them. */
export const chatCompletions: Dialect = {
  path: '/v1/chat/completions',
  needsNative: false,
  hasUsageOption: true,
  framing: openaiFraming,
  events: openaiEvents,
  wrongPrompt: wrongMessages,
}
