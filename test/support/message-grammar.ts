/** The grammar of a Messages stream, as clients rely on it. Every stream that a test reads can be checked by it. */
import { parseSseEvent, splitEvents, SseSplitter } from '../../gateway/dialects/sse.ts'

export interface MessageEvent {
  readonly type: string
  readonly index?: number
  readonly message?: { readonly id?: string; readonly usage?: MessageUsage }
  readonly content_block?: { readonly type: string; readonly id?: string; readonly name?: string }
  readonly delta?: MessageDelta
  readonly usage?: MessageUsage
}

interface MessageUsage {
  readonly input_tokens?: number
  readonly cache_read_input_tokens?: number
  readonly output_tokens?: number
}

interface MessageDelta {
  readonly type?: string
  readonly text?: string
  readonly thinking?: string
  readonly partial_json?: string
  readonly stop_reason?: string | null
  readonly stop_sequence?: string | null
}

/** The delta that each kind of block may have. */
const DELTAS: Readonly<Record<string, readonly string[]>> = {
  text: ['text_delta'],
  thinking: ['thinking_delta', 'signature_delta'],
  tool_use: ['input_json_delta'],
}

const PATH = /\/v1\/messages$/

export function isMessageStream(path: string, contentType: string | null | undefined): boolean {
  return PATH.test(path) && contentType?.startsWith('text/event-stream') === true
}

/** Checks a stream while it grows. */
export class MessageCheck {
  readonly #grammar = new Grammar()
  readonly #splitter = new SseSplitter()

  /** @returns the events that are whole now. @throws the first rule that they break */
  push(bytes: Buffer): MessageEvent[] {
    return this.#take(this.#splitter.push(bytes))
  }

  /** @returns the last event if it lacks its empty line. @throws the rule that the end breaks */
  end(): MessageEvent[] {
    const events = this.#take(this.#splitter.end())
    this.#grammar.end()
    return events
  }

  #take(whole: Buffer): MessageEvent[] {
    return [...splitEvents(whole)].flatMap((bytes) => {
      const { event, data } = parseSseEvent(bytes)
      if (data === undefined) return []
      const value = JSON.parse(data) as MessageEvent
      if (event !== value.type) throw new Error(`the event ${event} has data of type ${value.type}`)
      this.#grammar.take(value)
      return [value]
    })
  }
}

/** @throws the first rule that a complete stream breaks. A stream that ends with `error` has no `message_stop` */
export function checkMessageStream(text: string): MessageEvent[] {
  const check = new MessageCheck()
  return [...check.push(Buffer.from(text)), ...check.end()]
}

/** Checks the whole events of a stream that its client has left, or that has lost its gateway. @throws the first rule that they break */
export function checkMessageStart(text: string): MessageEvent[] {
  return new MessageCheck().push(Buffer.from(text))
}

/**
 * Checks the end alone, for a server of Messages that a test lets send nonsense: the gateway passes the bytes of such a server.
 * @throws unless a stream ends with exactly one `message_stop` or `error`
 */
export function checkOneEnd(text: string): void {
  const parsed = [...splitEvents(Buffer.from(text.replace(/^\uFEFF/, '')))].map((bytes) => parseSseEvent(bytes)) // the last name of an event counts
  const types = parsed.flatMap(({ event, data }) => (data === undefined ? [] : [event]))
  const ends = types.filter((type) => type === 'message_stop' || type === 'error')
  if (ends.length !== 1 || types.at(-1) !== ends[0])
    throw new Error(`the stream has the ends ${ends.join(', ')} and ends with ${types.at(-1)}`)
}

/** Ids that the gateway gives to translated answers. Streams of other servers break some rules that clients can live with. */
const OWN_ID = /^msg_[0-9a-f]{32}$/

/** What the rules need to know of a block: a stream may be longer than the memory of its gateway. */
interface Block {
  readonly kind: string
  deltas: number
  hasEmptyDelta: boolean
  signatures: number
  lastDelta: string
  /** Of a call. */
  json: string
}

class Grammar {
  #isOwn = false
  #events = 0
  #hasStarted = false
  readonly #blocks: Block[] = []
  /** By index. llama-server ends all blocks after its last call, so several may be open in a stream of another server. */
  readonly #open = new Map<number, Block>()
  #stopReason: string | undefined
  #ended: string | undefined
  readonly #rules: Readonly<Record<string, (event: MessageEvent) => void>> = {
    message_start: (event) => this.#start(event),
    ping: () => undefined,
    content_block_start: (event) => this.#openBlock(event),
    content_block_delta: (event) => this.#delta(event),
    content_block_stop: (event) => this.#close(event),
    message_delta: (event) => this.#messageDelta(event),
    message_stop: () => this.#stop(),
    error: () => (this.#ended = 'error'),
  }

  take(event: MessageEvent): void {
    const { type } = event
    if (this.#ended !== undefined) throw new Error(`${type} follows ${this.#ended}`)
    if (!this.#hasStarted && !STARTS.has(type)) throw new Error(`${type} comes before message_start`)
    const rule = this.#rules[type]
    if (rule === undefined) throw new Error(`unknown event ${type}`)
    if (this.#isOwn && this.#events === 1 && type !== 'ping') throw new Error('no ping follows message_start')
    rule(event)
    if (this.#hasStarted) this.#events++
  }

  end(): void {
    if (this.#ended === undefined) throw new Error('the stream has neither message_stop nor error')
  }

  #start({ message }: MessageEvent): void {
    if (this.#hasStarted) throw new Error('a second message_start')
    this.#hasStarted = true
    this.#isOwn = OWN_ID.test(message?.id ?? '')
    if (this.#isOwn && !isPositive(message?.usage?.input_tokens)) throw new Error('message_start has no estimate of the prompt')
  }

  #openBlock({ index, content_block: block }: MessageEvent): void {
    if (this.#stopReason !== undefined) throw new Error('a block starts after message_delta')
    if (this.#isOwn && this.#open.size > 0) throw new Error('a block starts while another one is open')
    if (index !== this.#blocks.length) throw new Error(`block ${this.#blocks.length} has the index ${index}`)
    if (block?.type === 'tool_use' && !(block.id && block.name)) throw new Error(`the call in block ${index} has no id or no name`)
    const opened = { kind: String(block?.type), deltas: 0, hasEmptyDelta: false, signatures: 0, lastDelta: '', json: '' }
    this.#open.set(index, opened)
    this.#blocks.push(opened)
  }

  #delta({ index, delta }: MessageEvent): void {
    const block = this.#open.get(index ?? -1)
    if (!block) throw new Error(`a delta of block ${index}, which is not open`)
    const type = String(delta?.type)
    if (!DELTAS[block.kind]?.includes(type)) throw new Error(`a ${type} in a block of kind ${block.kind}`)
    block.deltas += 1
    block.hasEmptyDelta ||= isEmpty({ ...delta })
    block.signatures += type === 'signature_delta' ? 1 : 0
    block.lastDelta = type
    block.json += delta?.partial_json ?? ''
  }

  #close({ index = -1 }: MessageEvent): void {
    const block = this.#open.get(index)
    if (!block) throw new Error(`block ${index} stops and is not open`)
    if (this.#isOwn) checkOwnBlock(block, index)
    this.#open.delete(index)
  }

  #messageDelta({ delta, usage }: MessageEvent): void {
    if (this.#open.size > 0) throw new Error('message_delta comes while a block is open')
    if (this.#stopReason !== undefined) throw new Error('a second message_delta')
    if (typeof delta?.stop_reason !== 'string') throw new Error('message_delta has no stop_reason')
    this.#stopReason = delta.stop_reason
    if (this.#isOwn) this.#checkOwnEnd(usage)
  }

  #checkOwnEnd(usage: MessageEvent['usage']): void {
    checkOwnUsage(usage)
    if (this.#stopReason === 'max_tokens' || this.#stopReason === 'refusal') return // may cut a call
    const calls = this.#blocks.filter(({ kind }) => kind === 'tool_use')
    if (!calls.every(isComplete)) throw new Error(`the arguments of a call are no object, at stop_reason ${this.#stopReason}`)
    if ((this.#stopReason === 'tool_use') !== calls.length > 0)
      throw new Error(`stop_reason ${this.#stopReason} with ${calls.length} calls`)
  }

  #stop(): void {
    if (this.#stopReason === undefined) throw new Error('message_stop comes before message_delta')
    this.#ended = 'message_stop'
  }
}

const STARTS: ReadonlySet<string> = new Set(['message_start', 'ping', 'error'])

function isPositive(count: number | undefined): boolean {
  return count !== undefined && count > 0
}

function checkOwnUsage({
  input_tokens: input = 0,
  cache_read_input_tokens: cached = 0,
  output_tokens: output = -1,
}: MessageUsage = {}): void {
  if (Math.min(input, output) < 0 || !isPositive(input + cached)) throw new Error('message_delta has no usage')
}

/** Has content; thinking has one signature, at its end. */
function checkOwnBlock({ kind, deltas, hasEmptyDelta, signatures, lastDelta }: Block, index: number): void {
  if (deltas === 0 || hasEmptyDelta) throw new Error(`block ${index} has nothing, or an empty delta`)
  if (kind === 'thinking' && (signatures !== 1 || deltas < 2 || lastDelta !== 'signature_delta'))
    throw new Error(`the thinking in block ${index} does not end with its only signature`)
}

function isEmpty({ type, text = '', thinking = '', partial_json: json = '' }: MessageDelta): boolean {
  return type !== 'signature_delta' && text + thinking + json === ''
}

function isComplete({ json }: Block): boolean {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
