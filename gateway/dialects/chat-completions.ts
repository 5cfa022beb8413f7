import { openaiEvents } from './backend-events.ts'
import { openaiFraming } from './client-framing.ts'
import type { Dialect } from './dialect.ts'
import { promptSize } from './prompt-size.ts'
import { wrongMessages } from './request-shape.ts'
import { chatStream } from './stream-of-answer.ts'

/** OpenAI chat completions. */
export const chatCompletions: Dialect = {
  route: 'chat/completions',
  path: '/v1/chat/completions',
  isAnthropic: false,
  isForm: false,
  answers: 'Json',
  hasUsageOption: true,
  hasOutput: true,
  isCharged: true,
  caps: ['max_tokens', 'max_completion_tokens'],
  framing: openaiFraming,
  events: openaiEvents,
  streamOf: chatStream,
  wrongPrompt: wrongMessages,
  promptSize,
}
