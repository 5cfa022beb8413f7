/** Streams of known servers, cut and damaged at random, through the relay of a translated stream: nothing is lost, invented or moved. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkMessageStream } from '../../test/support/message-grammar.ts'
import { rebuilt, saidIn } from '../../test/support/rebuilt-message.ts'
import { RECORDED_STREAMS, STOP_SEQUENCE } from '../../test/support/recorded-streams.ts'
import { openaiEvents } from '../dialects/backend-events.ts'
import { parseObject } from '../dialects/json-body.ts'
import { messages } from '../dialects/messages.ts'
import { parseSseEvent, splitEvents } from '../dialects/sse.ts'
import { pieceOf } from '../dialects/translation/chat-answer.ts'
import { TRANSLATORS } from '../dialects/translation/translators.ts'
import { UnreadableAnswer } from '../dialects/unreadable-answer.ts'
import { GatewayError } from '../errors.ts'
import { backendBroken, type Failure } from './backend-error.ts'
import type { ForwardJob, RelayPort } from './forward-job.ts'
import { StreamRelay } from './relay-stream.ts'
import type { TranslatedAttempt } from './translated-call.ts'

const RUNS = 5_000
const LONGEST_CUT = 200

/** The attempt around a relay: it keeps what a client receives, and counts the ends. */
class Client implements Pick<RelayPort, 'write' | 'open' | 'finish' | 'fail' | 'refused' | 'began'> {
  out = ''
  ends = 0
  readonly isRenamed = false
  readonly began = (): void => undefined
  readonly addsUsage = false
  readonly translated: TranslatedAttempt | undefined = TRANSLATORS.messages && {
    translator: TRANSLATORS.messages,
    headers: [],
    asked: { model: 'llama', stopSequences: [STOP_SEQUENCE], inputTokens: 12 },
  }
  readonly job = {
    dialect: messages,
    askedName: 'llama',
    model: { isShared: false },
    exchange: { requestId: 'r', format: 'anthropic', response: { end: (frame: Buffer) => this.write(frame) } },
  } as unknown as ForwardJob // what a relay reads of it
  readonly #relay = new StreamRelay(this as unknown as RelayPort).answeredBy({ status: 200, headers: {}, isDecoded: false })

  /** @param isLost whether the connection breaks after the last chunk */
  receive(chunks: readonly Buffer[], isLost: boolean): this {
    try {
      for (const chunk of chunks) if (this.ends === 0) this.#relay.data(chunk)
      if (this.ends === 0 && !isLost) this.#relay.end()
    } catch (cause) {
      if (!(cause instanceof UnreadableAnswer)) throw cause
      this.fail(backendBroken('unreadable'))
    }
    if (this.ends === 0) this.fail(backendBroken('lost'))
    return this
  }

  open(): void {
    if (this.out !== '') throw new Error('the head comes after other bytes')
  }

  write(bytes: Buffer | string): void {
    this.out += bytes.toString('utf8')
  }

  finish(last: Buffer | string = ''): void {
    this.ends++
    this.write(last)
  }

  fail({ error }: Failure): void {
    this.ends++
    if (this.#relay.isOpen) this.#relay.broken(error)
  }

  refused(): void {
    this.fail({ error: new GatewayError('backendError', { reason: 'refused' }), isRetryable: false, isBackendFailure: true })
  }
}

function cutUp(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = []
  let start = 0
  for (let at = 0; start < bytes.length; at++) {
    const end = start + (sizes[at % sizes.length] ?? 1)
    chunks.push(bytes.subarray(start, end))
    start = end
  }
  return chunks
}

const recording = fc.constantFrom(...RECORDED_STREAMS)
const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: LONGEST_CUT })), { minLength: 1, maxLength: 12 })

/** One change of a stream, as a list of events or as bytes; a place is a part of the length. */
type Change = (events: readonly string[], place: number) => string[]
const at = (events: readonly unknown[], place: number): number => Math.min(events.length - 1, Math.floor(place * events.length))

const EXTRA_EVENTS = [
  ...[
    ': a comment\n\n',
    '\n',
    'data:\n\n',
    'data: not JSON\n\n',
    'data: []\n\n',
    'data: null\n\n',
    'id: 1\nretry: 5\n\n',
    '\r\n\r\n',
    '\r',
  ],
  ...['data: {"choices":null}\n\n', 'data: {"choices":[]}\n\n', 'data: {"choices":[{}]}\n\n', 'data: [DONE]\n\n'],
  ...[
    'data: {"error":{"message":"broken","code":500}}\n\n',
    'event: error\ndata: {}\n\n',
    'data: {"choices":[],"usage":{"prompt_tokens":-1}}\n\n',
  ],
  ...['stop', 'tool_calls', 'length', 'abort'].map((reason) => `data: {"choices":[{"delta":{},"finish_reason":"${reason}"}]}\n\n`),
  'data: {"choices":[{"delta":{"tool_calls":[{"index":7,"function":{"arguments":"{"}}]}}]}\n\n',
]
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.constantFrom<Change>(
    (events, place) => events.toSpliced(at(events, place), 1),
    (events, place) => events.toSpliced(at(events, place), 0, events[at(events, place)] ?? ''),
    (events, place) => events.slice(0, at(events, place) + 1),
    (events, place) => {
      const from = at(events, place)
      return events.toSpliced(from, 2, ...events.slice(from, from + 2).toReversed())
    },
    (events) => events.map((event) => event.replaceAll('\n', '\r\n')),
    (events) => events.map((event) => event.replaceAll('\n', '\r')),
  ),
  fc.constantFrom(...EXTRA_EVENTS).map(
    (extra): Change =>
      (events, place) =>
        events.toSpliced(at(events, place), 0, extra),
  ),
  fc
    .tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.constantFrom('', '"', '\\', '}', '\n', 'x', '\0', '9'))
    .map(([inside, character]): Change => {
      return (events, place) => {
        const index = at(events, place)
        const event = events[index] ?? ''
        const position = Math.floor(inside * event.length)
        return events.with(index, event.slice(0, position) + character + event.slice(position + 1))
      }
    }),
)
const changes = fc.array(fc.tuple(change, fc.double({ min: 0, max: 1, noNaN: true })), { minLength: 1, maxLength: 4 })

interface Sent {
  thinking: string
  text: string
  readonly names: Set<string>
  readonly pieces: string[]
}

/** What a server has said until its first end, read from the uncut bytes. */
function sentIn(bytes: Buffer): Sent {
  const sent: Sent = { thinking: '', text: '', names: new Set(), pieces: [] }
  for (const event of splitEvents(bytes)) {
    const kind = openaiEvents.kindOf(event)
    if (kind === 'end' || kind === 'error') break
    const piece = pieceOf(parseObject(parseSseEvent(event).data ?? '') ?? {})
    if (piece === undefined) continue
    sent.thinking += piece.reasoning
    sent.text += piece.text
    for (const { name, args } of piece.calls) {
      if (name !== undefined) sent.names.add(name)
      sent.pieces.push(args)
    }
    if (piece.finish) break
  }
  return sent
}

/** Whether a text consists of whole pieces in their order, with others left out. */
function isMadeOf(text: string, pieces: readonly string[]): boolean {
  const reached = new Set([0])
  for (const piece of pieces) for (const from of [...reached]) if (text.startsWith(piece, from)) reached.add(from + piece.length)
  return reached.has(text.length)
}

describe('a translated stream of a known server', () => {
  it('says the same however it is cut', () => {
    fc.assert(
      fc.property(recording, sizes, ({ events, said }, lengths) => {
        const client = new Client().receive(cutUp(Buffer.from(events.join('')), lengths), false)
        expect(client.ends).toBe(1)
        expect(saidIn(checkMessageStream(client.out))).toEqual(said)
      }),
      { numRuns: RUNS },
    )
  })

  it('ends once, invents nothing and keeps the order, whatever damages it', () => {
    let [complete, broken] = [0, 0]
    fc.assert(
      fc.property(recording, changes, sizes, fc.boolean(), ({ events }, list, lengths, isLost) => {
        const damaged = list.reduce((all, [apply, place]) => (all.length === 0 ? all : apply(all, place)), [...events])
        const bytes = Buffer.from(damaged.join(''))
        const client = new Client().receive(cutUp(bytes, lengths), isLost)
        expect(client.ends).toBe(1)
        if (client.out === '') return // the client gets an error with a status
        const { thinking, text, calls, ends } = rebuilt(checkMessageStream(client.out))
        const sent = sentIn(bytes)
        expect(ends).toHaveLength(1)
        if (ends[0] === 'message_stop') {
          complete++
          expect([thinking, text]).toEqual([sent.thinking, sent.text])
        } else {
          broken++
          expect(sent.thinking.startsWith(thinking), `${thinking} begins ${sent.thinking}`).toBe(true)
          expect(sent.text.startsWith(text), `${text} begins ${sent.text}`).toBe(true)
        }
        for (const { name, json } of calls) {
          expect(sent.names).toContain(name)
          expect(json.trim() === '{}' || isMadeOf(json, sent.pieces), `${json} of ${sent.pieces.join(' | ')}`).toBe(true)
        }
      }),
      { numRuns: RUNS },
    )
    expect(
      [complete, broken].every((count) => count > RUNS / 20),
      `${complete} complete, ${broken} broken`,
    ).toBe(true)
  })
})
