import { transcriptionEvents } from './backend-events.ts'
import { openaiFraming } from './client-framing.ts'
import type { Dialect } from './dialect.ts'
import type { JsonObject } from './json-body.ts'
import type { PromptSize } from './prompt-size.ts'
import { invalid } from './request-shape.ts'

/** Whisper has 50 tokens for a second of sound, for which compressed sound has some 6 to 16 KB. */
const BYTES_PER_TOKEN = 320
/** Fewest bytes of a token: speech at 2.5 KB/s. */
const MIN_BYTES_PER_TOKEN = 50

/** OpenAI audio transcriptions: the text of a sound file, which is sent as a form. */
export const transcriptions: Dialect = {
  route: 'audio/transcriptions',
  path: '/v1/audio/transcriptions',
  isAnthropic: false,
  isForm: true,
  answers: 'Any',
  hasUsageOption: false,
  hasOutput: true,
  isCharged: true,
  caps: ['max_completion_tokens'],
  framing: openaiFraming,
  events: transcriptionEvents,
  wrongPrompt: ({ file }) => (file === undefined ? invalid('file', 'is required') : undefined),
  promptSize: size,
}

function size(_: JsonObject, bodyBytes: number): PromptSize {
  const tokens = Math.max(1, Math.ceil(bodyBytes / BYTES_PER_TOKEN))
  return { tokens, mediaTokens: tokens, maxTokens: Math.max(tokens, Math.ceil(bodyBytes / MIN_BYTES_PER_TOKEN)) }
}
