/**
 * The stream of a chat completion as the stream of a message. A pure state machine: a chunk goes in, events come out. Clients append to the
 * block that was opened last, whatever index a delta has, so blocks follow one another and never overlap.
 *
 *          first piece                  finish_reason               usage, end marker or end
 *   Idle ───────────────▶ Writing ────────────────────▶ Finished ───────────────────────────▶ Ended
 *
 * In `Writing` at most one block is open. Pieces of a call that belong to another block than the open one wait until that block is closed.
 */
import type { JsonObject } from '../json-body.ts'
import { type TypedEvent, typedEvent } from '../sse.ts'
import { UnreadableAnswer } from '../unreadable-answer.ts'
import { laterReport, type UsageReport } from '../usage.ts'
import { type CallPiece, type ChatPiece, type Finish, pieceOf, usageOf } from './chat-answer.ts'
import { JsonExtent } from './json-extent.ts'
import { type Asked, checkArguments, inputOf, messageId, messageUsage, type Stop, stopOf, uniqueId } from './message-answer.ts'

/** Characters of arguments that may wait for an earlier call. */
const MAX_WAITING = 1024 * 1024
/** Characters of all arguments of an answer. They stay in memory until its end. */
const MAX_ARGUMENTS = 4 * 1024 * 1024
/** Models make some dozens of calls at once. The time to find a call grows with their number. */
const MAX_CALLS = 1_000

type TextKind = 'thinking' | 'text'

interface Call {
  readonly index: number | undefined
  /** As the server sends it. The client may get another one. */
  id: string | undefined
  name: string | undefined
  /** All arguments until now. */
  args: string
  readonly extent: JsonExtent
  /** How much of `args` was sent. */
  sent: number
  state: 'Waiting' | 'Open' | 'Closed'
}

export class MessageStream {
  readonly #asked: Asked
  readonly #ids = new Set<string>()
  readonly #calls: Call[] = []
  #state: 'Idle' | 'Writing' | 'Finished' | 'Ended' = 'Idle'
  #out: TypedEvent[] = []
  /** Number of blocks that were opened. */
  #blocks = 0
  #open: TextKind | Call | undefined = undefined
  #waiting = 0
  #arguments = 0
  /** Number of calls that are or were open. They open in their order. */
  #begun = 0
  #finish: Finish | undefined = undefined
  #usage: UsageReport | undefined = undefined

  constructor(asked: Asked) {
    this.#asked = asked
  }

  /** Whether the server has said why it stopped, so that an end is an end and not a loss. */
  get isFinished(): boolean {
    return this.#finish !== undefined
  }

  get isEnded(): boolean {
    return this.#state === 'Ended'
  }

  /** Takes one chunk. @returns the events that it causes, as bytes of the stream @throws UnreadableAnswer */
  push(chunk: JsonObject, outputTokens: number): string {
    if (this.#state === 'Ended') return ''
    const usage = usageOf(chunk)
    if (usage !== undefined) this.#usage = laterReport(this.#usage, usage)
    // usage beside or before the reason to stop may be partial: some servers report it again, with more detail
    if (this.#finish !== undefined && usage !== undefined) this.#end(outputTokens)
    const piece = pieceOf(chunk)
    if (piece !== undefined && this.#finish === undefined) this.#piece(piece)
    return this.#written()
  }

  /** Ends the message, with the usage if the server has reported it. @throws UnreadableAnswer without a reason for the end */
  end(outputTokens: number): string {
    if (this.#state !== 'Ended') this.#end(outputTokens)
    return this.#written()
  }

  #piece({ reasoning, text, calls, finish }: ChatPiece): void {
    if (this.#state === 'Idle') this.#start()
    if (reasoning !== '') this.#text('thinking', reasoning)
    if (text !== '') this.#text('text', text)
    for (const call of calls) this.#call(call)
    if (finish === undefined) return
    this.#finish = finish
    this.#state = 'Finished'
  }

  #start(): void {
    const { model, inputTokens } = this.#asked
    const usage = { input_tokens: inputTokens, output_tokens: 0 }
    const message = {
      id: messageId(),
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage,
    }
    this.#state = 'Writing'
    this.#emit({ type: 'message_start', message })
    this.#emit({ type: 'ping' })
  }

  #text(kind: TextKind, text: string): void {
    if (this.#open !== kind) {
      this.#closeAll()
      this.#openBlock(kind, kind === 'text' ? { type: 'text', text: '' } : { type: 'thinking', thinking: '', signature: '' })
    }
    this.#delta(kind === 'text' ? { type: 'text_delta', text } : { type: 'thinking_delta', thinking: text })
  }

  #call(piece: CallPiece): void {
    const call = this.#callOf(piece)
    if (call.state === 'Closed' && piece.args.trim() !== '')
      throw new UnreadableAnswer('the arguments of a tool call go on after their end')
    call.id ??= piece.id
    call.name ??= piece.name
    this.#addArguments(call, piece.args)
    if (call.state === 'Open') return this.#sendArguments(call)
    if (call.state === 'Waiting') this.#wait(piece.args.length)
    this.#flush()
  }

  #addArguments(call: Call, args: string): void {
    this.#arguments += args.length
    if (this.#arguments > MAX_ARGUMENTS) throw new UnreadableAnswer('the arguments of its tool calls are too long')
    call.args += args
    call.extent.add(args)
  }

  #callOf(piece: CallPiece): Call {
    const known = this.#knownCall(piece)
    if (known !== undefined && !isOther(known, piece)) return known
    if (this.#calls.length === MAX_CALLS) throw new UnreadableAnswer('too many tool calls')
    const { index, id, name } = piece
    const call: Call = { index, id, name, args: '', extent: new JsonExtent(), sent: 0, state: 'Waiting' }
    this.#calls.push(call)
    return call
  }

  /** Calls are told apart by their index, else by their id; a piece with neither, and without a name, belongs to the last call. */
  #knownCall({ index, id, name }: CallPiece): Call | undefined {
    if (index !== undefined) return this.#calls.findLast((call) => call.index === index)
    if (id !== undefined) return this.#calls.findLast((call) => call.id === id)
    return name === undefined ? this.#calls.at(-1) : undefined
  }

  #wait(characters: number): void {
    this.#waiting += characters
    if (this.#waiting > MAX_WAITING) throw new UnreadableAnswer('too many arguments of tool calls wait for an earlier call')
  }

  /** Opens calls that wait, until one has no name yet or the arguments of the open one are not complete. */
  #flush(): void {
    for (let call = this.#calls[this.#begun]; call !== undefined; call = this.#calls[this.#begun]) {
      if (call.name === undefined || (isCall(this.#open) && !this.#open.extent.isComplete)) return
      this.#openCall(call)
    }
  }

  #openCall(call: Call): void {
    if (call.name === undefined) throw new UnreadableAnswer('a tool call has no name')
    this.#close()
    call.state = 'Open'
    this.#begun++
    this.#waiting -= call.args.length
    this.#openBlock(call, { type: 'tool_use', id: uniqueId(call.id, this.#ids), name: call.name, input: {} })
    this.#sendArguments(call)
  }

  #sendArguments(call: Call): void {
    const json = call.args.slice(call.sent)
    call.sent = call.args.length
    if (json !== '') this.#delta({ type: 'input_json_delta', partial_json: json })
  }

  #openBlock(kind: TextKind | Call, block: JsonObject): void {
    this.#open = kind
    this.#emit({ type: 'content_block_start', index: this.#blocks, content_block: block })
    this.#blocks++
  }

  #delta(delta: JsonObject): void {
    this.#emit({ type: 'content_block_delta', index: this.#blocks - 1, delta })
  }

  #close(): void {
    if (this.#open === undefined) return
    if (this.#open === 'thinking') this.#delta({ type: 'signature_delta', signature: '' })
    if (isCall(this.#open)) this.#closeCall(this.#open)
    this.#open = undefined
    this.#emit({ type: 'content_block_stop', index: this.#blocks - 1 })
  }

  /** Closes the open block, after every call that waits was sent whole. */
  #closeAll(): void {
    for (const call of this.#calls.slice(this.#begun)) this.#openCall(call)
    this.#close()
  }

  /** A call without arguments has an empty object, which every parser accepts. */
  #closeCall(call: Call): void {
    call.state = 'Closed'
    if (call.args.trim() === '') this.#delta({ type: 'input_json_delta', partial_json: '{}' })
  }

  #end(outputTokens: number): void {
    if (this.#finish === undefined) throw new UnreadableAnswer('the stream has no finish_reason')
    checkArguments(this.#calls)
    const isCut = this.#calls.some(({ args }) => inputOf(args) === undefined)
    const stop = stopOf(this.#finish, { asked: this.#asked, calls: this.#calls.length, isCut })
    this.#closeAll()
    this.#state = 'Ended'
    this.#emit({ type: 'message_delta', delta: deltaOf(stop), usage: messageUsage(this.#usage, this.#asked, outputTokens) })
    this.#emit({ type: 'message_stop' })
  }

  #emit(event: TypedEvent): void {
    this.#out.push(event)
  }

  #written(): string {
    const events = this.#out
    this.#out = []
    return events.map(typedEvent).join('')
  }
}

function isCall(open: TextKind | Call | undefined): open is Call {
  return typeof open === 'object'
}

/** Whether a piece with the index of a call begins another one: some servers send complete calls that all have the index 0. */
function isOther({ id, extent }: Call, piece: CallPiece): boolean {
  const hasOtherID = id !== undefined && piece.id !== undefined && piece.id !== id
  return hasOtherID && piece.name !== undefined && extent.isComplete && piece.args.trim() !== ''
}

function deltaOf(stop: Stop): JsonObject {
  return { ...stop }
}
