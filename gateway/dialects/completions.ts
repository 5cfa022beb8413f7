import { completionEvents } from './backend-events.ts'
import { openaiFraming } from './client-framing.ts'
import type { Dialect } from './dialect.ts'
import type { JsonObject } from './json-body.ts'
import { promptSize } from './prompt-size.ts'
import { invalid } from './request-shape.ts'
import { completionStream } from './stream-of-answer.ts'

/** OpenAI's older completions of a text. */
export const completions: Dialect = {
  route: 'completions',
  path: '/v1/completions',
  isAnthropic: false,
  isForm: false,
  answers: 'Json',
  hasUsageOption: true,
  hasOutput: true,
  isCharged: true,
  caps: ['max_tokens'],
  framing: openaiFraming,
  events: completionEvents,
  streamOf: completionStream,
  wrongPrompt: ({ prompt }) => {
    if (prompt === undefined || prompt === null) return invalid('prompt', 'is required')
    return Array.isArray(prompt) && prompt.length === 0 ? invalid('prompt', 'must not be empty') : undefined
  },
  prompts,
  promptSize,
}

/** A list of numbers is one prompt. Each entry of any other list is a prompt. */
function prompts({ prompt }: JsonObject): number {
  return Array.isArray(prompt) && typeof prompt[0] !== 'number' ? prompt.length : 1
}
