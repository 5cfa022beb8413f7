import { anthropicEvents } from './backend-events.ts'
import { anthropicFraming } from './client-framing.ts'
import type { Dialect } from './dialect.ts'
import { readMessagesRequest } from './request-shape.ts'

/** Anthropic Messages, forwarded unchanged to backends that support them. */
export const messages: Dialect = {
  path: '/v1/messages',
  needsNative: true,
  hasUsageOption: false,
  framing: anthropicFraming,
  events: anthropicEvents,
  readRequest: readMessagesRequest,
}
