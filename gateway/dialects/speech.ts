import { openaiEvents } from './backend-events.ts'
import { openaiFraming } from './client-framing.ts'
import type { Dialect } from './dialect.ts'
import { promptSize } from './prompt-size.ts'
import { invalid } from './request-shape.ts'

/** OpenAI audio speech: the sound of a text. Servers report no usage for speech, so a call costs its input and the price per request. */
export const speech: Dialect = {
  route: 'audio/speech',
  path: '/v1/audio/speech',
  isAnthropic: false,
  isForm: false,
  answers: 'Any',
  hasUsageOption: false,
  hasOutput: false,
  isCharged: true,
  caps: [],
  framing: openaiFraming,
  events: openaiEvents,
  wrongPrompt: ({ input, stream, stream_format: format }) => {
    if (stream === true) return invalid('stream', 'must be false: sound comes as it is made')
    if (format !== undefined && format !== null && format !== 'audio') return invalid('stream_format', 'must be audio')
    return typeof input === 'string' && input !== '' ? undefined : invalid('input', 'must be a non-empty string')
  },
  promptSize,
}
