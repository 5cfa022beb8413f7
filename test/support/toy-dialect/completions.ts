/** A dialect that the gateway does not have: OpenAI's older completions. A dialect needs only its own file and one row of `DIALECTS`. */
import { openaiEvents } from '../../../gateway/dialects/backend-events.ts'
import { type Dialect, openaiFraming } from '../../../gateway/dialects/dialect.ts'
import { invalid } from '../../../gateway/dialects/request-shape.ts'

export const completions: Dialect = {
  path: '/v1/completions',
  needsNative: false,
  hasUsageOption: true,
  framing: openaiFraming,
  events: openaiEvents,
  wrongPrompt: ({ prompt }) => (typeof prompt === 'string' ? undefined : invalid('prompt', 'is required')),
}
