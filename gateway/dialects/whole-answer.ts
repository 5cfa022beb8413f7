/**
 * A plain answer that was read whole, in the form that its client expects: translated, or as the stream that the client has asked for and the
 * server has not sent. Pure, so any thread may make it.
 */
import type { BackendEvents } from './backend-events.ts'
import { withoutCached } from './cached-counts.ts'
import type { Dialect, StreamOrder } from './dialect.ts'
import { isError, type JsonObject, parseObject } from './json-body.ts'
import { answerTokens } from './prompt-size.ts'
import { hasTooManyParts } from './read-request.ts'
import type { Asked } from './translation/message-answer.ts'
import { TRANSLATORS, type Translator } from './translation/translators.ts'
import { UnreadableAnswer } from './unreadable-answer.ts'
import type { UsageReport } from './usage.ts'

/** What to make of an answer. Plain data, because it may go to another thread. */
export interface AnswerOrder extends StreamOrder {
  /** Whether the client has asked for a stream. */
  readonly isStream: boolean
  /** Whether the client may not learn what the server had cached; `asked` says it of a translation. */
  readonly hidesCached?: boolean
  /** Of an answer in another format than the client's. */
  readonly asked?: Asked | undefined
}

/** What the answer has cost. */
export interface AnswerCost {
  readonly report?: UsageReport | undefined
  /** Tokens of the text of an answer without usage. */
  readonly writtenTokens?: number | undefined
}

/** `Error`: the server reports an error. `Unreadable`: the answer cannot be written in the form that the client expects. */
export type WholeAnswer =
  | ({ readonly kind: 'Answer'; readonly bytes: Buffer } & AnswerCost)
  | ({ readonly kind: 'Error'; readonly body: JsonObject | undefined } & AnswerCost)
  | ({ readonly kind: 'Unreadable'; readonly reason: string; readonly cause?: string } & AnswerCost)

/** A larger error is not read. */
const MAX_ERROR_BYTES = 65_536

export function wholeAnswer(bytes: Buffer, dialect: Dialect, order: AnswerOrder): WholeAnswer {
  if (hasTooManyParts(bytes)) return { kind: 'Unreadable', reason: 'its answer has too many parts' }
  const answer = parseObject(bytes.toString('utf8'))
  if (answer === undefined) return { kind: 'Unreadable', reason: 'its answer is not a JSON object' }
  const translator = order.asked && TRANSLATORS[dialect.route]
  const cost = costOf(answer, (translator ?? dialect).events)
  if (isError(answer)) return { kind: 'Error', body: bytes.length > MAX_ERROR_BYTES ? undefined : answer, ...cost }
  return written(answer, cost, { dialect, order })
}

interface Form {
  readonly dialect: Dialect
  readonly order: AnswerOrder
}

function written(answer: JsonObject, cost: AnswerCost, { dialect, order }: Form): WholeAnswer {
  const { asked, isStream } = order
  const translator = asked && TRANSLATORS[dialect.route]
  try {
    const text = translator ? translated(answer, translator, { asked, isStream, ...cost }) : dialect.streamOf?.(answer, order)
    if (text === undefined) return { kind: 'Unreadable', reason: 'its answer is not a stream', ...cost }
    const bytes = Buffer.from(text)
    return { kind: 'Answer', bytes: order.hidesCached === true ? withoutCached(bytes) : bytes, ...cost }
  } catch (cause) {
    return { kind: 'Unreadable', reason: 'its answer cannot be translated', cause: whyUnreadable(cause), ...cost }
  }
}

function costOf(answer: JsonObject, events: BackendEvents): AnswerCost {
  const report = events.usageIn(answer)
  return { report, writtenTokens: report?.outputTokens ? undefined : answerTokens(answer) }
}

/** @throws any other exception than one about the answer */
function whyUnreadable(cause: unknown): string {
  if (cause instanceof UnreadableAnswer || cause instanceof RangeError) return cause.message // a RangeError: nested too deep
  throw cause
}

interface ToTranslate extends AnswerCost {
  readonly asked: Asked
  readonly isStream: boolean
}

/** @throws UnreadableAnswer */
function translated(answer: JsonObject, translator: Translator, { asked, isStream, writtenTokens = 0 }: ToTranslate): string {
  if (!isStream) return JSON.stringify(translator.answer(answer, asked, writtenTokens))
  const stream = translator.stream(asked)
  return stream.push(answer, writtenTokens) + stream.end(writtenTokens)
}
