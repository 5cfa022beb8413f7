import { messages } from './messages.ts'
import type { Dialect } from './dialect.ts'
import { invalid } from './request-shape.ts'

/** The number of tokens of a message that is not sent. Claude Code asks for a dozen at once, so the call costs nothing. */
export const countTokens: Dialect = {
  ...messages,
  route: 'messages/count_tokens',
  path: '/v1/messages/count_tokens',
  otherPaths: ['/v1/v1/messages/count_tokens'],
  hasOutput: false,
  isCharged: false,
  timeouts: { firstByteSeconds: 2, idleSeconds: 2, totalSeconds: 2 },
  // no server streams a number: its answer would count as a failure of the server, and calls that cost nothing could take it out of service
  wrongPrompt: (body) => (body.stream === true ? invalid('stream', 'must be false: a count has no stream') : messages.wrongPrompt(body)),
}
