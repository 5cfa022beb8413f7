import { openaiEvents } from './backend-events.ts'
import { openaiFraming } from './client-framing.ts'
import type { Dialect } from './dialect.ts'
import { promptSize } from './prompt-size.ts'
import { invalid } from './request-shape.ts'

/** OpenAI embeddings: vectors of texts. vLLM also takes `messages` in place of `input`. */
export const embeddings: Dialect = {
  route: 'embeddings',
  path: '/v1/embeddings',
  isAnthropic: false,
  isForm: false,
  answers: 'Json',
  hasUsageOption: false,
  hasOutput: false,
  isCharged: true,
  caps: [],
  framing: openaiFraming,
  events: openaiEvents,
  wrongPrompt: ({ input, messages, stream }) => {
    if (stream === true) return invalid('stream', 'must be false: an embedding has no stream')
    return (input ?? messages ?? null) === null ? invalid('input', 'is required') : undefined
  },
  promptSize,
}
