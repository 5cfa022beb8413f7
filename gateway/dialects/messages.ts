import { anthropicEvents } from './backend-events.ts'
import { anthropicFraming } from './client-framing.ts'
import type { Dialect } from './dialect.ts'
import { promptSize } from './prompt-size.ts'
import { wrongMessages } from './request-shape.ts'
import { messageStream } from './stream-of-answer.ts'

/** Anthropic Messages, forwarded unchanged to backends that support them. */
export const messages: Dialect = {
  route: 'messages',
  path: '/v1/messages',
  otherPaths: ['/v1/v1/messages'], // a base URL that ends in /v1, with an Anthropic SDK
  isAnthropic: true,
  isForm: false,
  answers: 'Json',
  hasUsageOption: false,
  hasOutput: true,
  isCharged: true,
  caps: ['max_tokens', 'max_completion_tokens'],
  framing: anthropicFraming,
  events: anthropicEvents,
  streamOf: messageStream,
  wrongPrompt: wrongMessages,
  promptSize,
}
