import { messages } from './messages.ts'
import type { Dialect } from './dialect.ts'

/** The number of tokens of a message that is not sent. Claude Code asks for a dozen at once, so the call costs nothing. */
export const countTokens: Dialect = {
  ...messages,
  route: 'messages/count_tokens',
  path: '/v1/messages/count_tokens',
  otherPaths: ['/v1/v1/messages/count_tokens'],
  hasOutput: false,
  isCharged: false,
}
