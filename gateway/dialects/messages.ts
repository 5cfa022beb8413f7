import { anthropicEvents } from './backend-events.ts'
import { anthropicFraming } from './client-framing.ts'
import type { Dialect } from './dialect.ts'
import { wrongMessages } from './request-shape.ts'

/** Anthropic Messages, forwarded unchanged to backends that support them. */
export const messages: Dialect = {
  path: '/v1/messages',
  otherPaths: ['/v1/v1/messages'], // a base URL that ends in /v1, with an Anthropic SDK
  needsNative: true,
  hasUsageOption: false,
  framing: anthropicFraming,
  events: anthropicEvents,
  wrongPrompt: wrongMessages,
}
