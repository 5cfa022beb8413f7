import { responsesEvents } from './backend-events.ts'
import { responsesFraming } from './client-framing.ts'
import type { Dialect } from './dialect.ts'
import type { JsonObject } from './json-body.ts'
import { promptSize } from './prompt-size.ts'
import { invalid, MULTIPLIERS } from './request-shape.ts'
import { responseStream } from './stream-of-answer.ts'

/** OpenAI Responses. Codex speaks nothing else. Stored responses stay with the server: the gateway has no route to read one. */
export const responses: Dialect = {
  route: 'responses',
  path: '/v1/responses',
  isAnthropic: false,
  isForm: false,
  answers: 'Json',
  hasUsageOption: false,
  hasOutput: true,
  isCharged: true,
  caps: ['max_output_tokens'],
  framing: responsesFraming,
  events: responsesEvents,
  streamOf: responseStream,
  wrongPrompt: (body) => {
    const { input, background } = body
    if (background === true) return invalid('background', 'must be false: nobody would learn what the call has cost')
    const multiplier = MULTIPLIERS.find((name) => typeof body[name] === 'number' && body[name] > 1)
    if (multiplier !== undefined) return invalid(multiplier, 'must be 1: a call has one response')
    return Array.isArray(input) && input.length === 0 ? invalid('input', 'must not be empty') : undefined
  },
  promptSize: (body, bodyBytes) => ({ ...promptSize(body, bodyBytes), hasHistory: hasHistory(body) }),
}

/** Whether the server adds what it has stored to the prompt. */
function hasHistory({ previous_response_id: previous, conversation, prompt }: JsonObject): boolean {
  return [previous, conversation, prompt].some((stored) => stored !== undefined && stored !== null)
}
