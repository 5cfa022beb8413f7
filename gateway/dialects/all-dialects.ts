import type { Dialect } from './dialect.ts'
import { anthropicEvents, openaiEvents } from './backend-events.ts'
import { anthropicFraming, openaiFraming } from './client-framing.ts'
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

/** The routes of model calls. The worker for large bodies gets the path, because a function cannot be sent to another thread. */
export const DIALECTS: ReadonlyMap<string, Dialect> = new Map([chatCompletions, messages].map((dialect) => [dialect.path, dialect]))
