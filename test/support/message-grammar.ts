/** The grammar of a Messages stream, as clients rely on it. Every stream that a test reads can be checked by it. */
import { parseSseEvent, splitEvents } from '../../gateway/dialects/sse.ts'

export interface MessageEvent {
  readonly type: string
  readonly index?: number
  readonly content_block?: { readonly type: string; readonly name?: string }
  readonly delta?: MessageDelta
  readonly usage?: { readonly output_tokens?: number }
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

export function messageEvents(text: string): MessageEvent[] {
  return [...splitEvents(Buffer.from(text))].flatMap((bytes) => {
    const { event, data } = parseSseEvent(bytes)
    if (data === undefined) return []
    const value = JSON.parse(data) as MessageEvent
    if (event !== value.type) throw new Error(`the event ${event} has data of type ${value.type}`)
    return [value]
  })
}

/** @throws the first rule that a complete stream breaks. A stream that ends with `error` has no `message_stop` */
export function checkMessageStream(text: string): MessageEvent[] {
  const events = messageEvents(text)
  const grammar = new Grammar()
  for (const event of events) grammar.take(event)
  grammar.end()
  return events
}

class Grammar {
  #started = false
  #blocks = 0
  #open: { readonly kind: string; deltas: number } | undefined
  #hasDelta = false
  #ended: string | undefined
  readonly #rules: Readonly<Record<string, (event: MessageEvent) => void>> = {
    ping: () => undefined,
    content_block_start: (event) => this.#openBlock(event),
    content_block_delta: (event) => this.#delta(event),
    content_block_stop: (event) => this.#close(event),
    message_delta: (event) => this.#messageDelta(event),
    message_stop: () => this.#stop(),
  }

  take(event: MessageEvent): void {
    if (this.#ended !== undefined) throw new Error(`${event.type} follows ${this.#ended}`)
    if (event.type === 'message_start') return this.#start()
    if (event.type === 'error') return void (this.#ended = 'error')
    if (!this.#started) throw new Error(`${event.type} comes before message_start`)
    const rule = this.#rules[event.type]
    if (rule === undefined) throw new Error(`unknown event ${event.type}`)
    rule(event)
  }

  end(): void {
    if (this.#ended === undefined) throw new Error('the stream has neither message_stop nor error')
  }

  #stop(): void {
    if (!this.#hasDelta) throw new Error('message_stop comes before message_delta')
    this.#ended = 'message_stop'
  }

  #start(): void {
    if (this.#started) throw new Error('a second message_start')
    this.#started = true
  }

  #openBlock({ index, content_block: block }: MessageEvent): void {
    if (this.#hasDelta) throw new Error('a block starts after message_delta')
    if (this.#open) throw new Error('a block starts while another one is open')
    if (index !== this.#blocks) throw new Error(`block ${this.#blocks} has the index ${index}`)
    this.#blocks++
    this.#open = { kind: String(block?.type), deltas: 0 }
  }

  #delta({ index, delta }: MessageEvent): void {
    if (!this.#open || index !== this.#blocks - 1) throw new Error(`a delta of block ${index}, which is not open`)
    const type = String(delta?.type)
    if (!DELTAS[this.#open.kind]?.includes(type)) throw new Error(`a ${type} in a block of kind ${this.#open.kind}`)
    this.#open.deltas++
  }

  #close({ index }: MessageEvent): void {
    if (!this.#open || index !== this.#blocks - 1) throw new Error(`block ${index} stops and is not open`)
    if (this.#open.deltas === 0) throw new Error(`block ${index} is empty`)
    this.#open = undefined
  }

  #messageDelta({ delta, usage }: MessageEvent): void {
    if (this.#open) throw new Error('message_delta comes while a block is open')
    if (this.#hasDelta) throw new Error('a second message_delta')
    if (typeof delta?.stop_reason !== 'string') throw new Error('message_delta has no stop_reason')
    if (usage?.output_tokens === undefined || usage.output_tokens < 0) throw new Error('message_delta has no usage')
    this.#hasDelta = true
  }
}
