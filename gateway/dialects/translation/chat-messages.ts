/** The turns of a Messages request as chat messages: calls beside their results, one message for each turn, no two of one role in a row. */
import { asObject, type JsonObject } from '../json-body.ts'
import { invalid } from '../request-shape.ts'
import type { Changes } from './changes.ts'
import {
  blocksOf,
  type ChatContent,
  type ChatPart,
  contentOf,
  imagePart,
  noteBlock,
  plainTexts,
  shownType,
  textIn,
  type TextPart,
  textPart,
  unsupported,
  userPart,
} from './content-blocks.ts'
import type { EngineTraits } from './engine-traits.ts'

export interface ToolCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: ChatContent | null
  readonly tool_calls?: readonly ToolCall[]
  readonly tool_call_id?: string
  readonly reasoning?: string
  readonly reasoning_content?: string
}

/**
 * The value of `cch` in the line that Claude Code puts before its system prompt changes with each request and would make every prefix cache
 * useless. The rest of the line stays.
 */
const CHANGING_SUM = /^(x-anthropic-billing-header:[^\n]*?\bcch=)[0-9a-f]+/i

/** A turn while the parts of its messages are collected: joining texts at each message would take time by the square of their number. */
interface Turn {
  readonly role: ChatMessage['role']
  readonly parts: ChatPart[]
  readonly thoughts: string[]
  readonly calls: ToolCall[]
  readonly callID?: string
}

/** @throws GatewayError, rows 11 and 15 */
export function chatMessages(body: JsonObject, traits: EngineTraits, changes: Changes): ChatMessage[] {
  const turns = new Turns(traits, changes)
  turns.system(body.system)
  const messages = Array.isArray(body.messages) ? (body.messages as unknown[]) : []
  messages.forEach((message, index) => turns.add(asObject(message) ?? {}, `messages.${index}`))
  return turns.end()
}

class Turns {
  readonly #traits: EngineTraits
  readonly #changes: Changes
  readonly #turns: Turn[] = []
  /** Calls of the last assistant turn that have no result yet, by their position in the request. */
  readonly #open = new Map<string, string>()
  /** System messages that stand between a call and its result. They follow the result. */
  readonly #late: string[] = []
  /** What a user says before the last result: messages of one role in a row are one turn, so that results may come in several. */
  readonly #said: ChatPart[] = []

  constructor(traits: EngineTraits, changes: Changes) {
    this.#traits = traits
    this.#changes = changes
  }

  system(system: unknown): void {
    if (system === undefined || system === null) return
    const text = this.#systemText(system, 'system', '\n\n')
    if (text !== '') this.#push('system', [textPart(text)])
  }

  add(message: JsonObject, field: string): void {
    const content = `${field}.content`
    if (message.role === 'user') return this.#user(blocksOf(message.content, content), content)
    if (message.role === 'assistant') return this.#assistant(blocksOf(message.content, content), content)
    if (message.role !== 'system') throw invalid(`${field}.role`, 'must be user, assistant or system')
    const text = this.#systemText(message.content, content, '\n')
    if (this.#open.size > 0) this.#late.push(text)
    else this.#push('system', [textPart(text)])
  }

  end(): ChatMessage[] {
    this.#checkAnswered()
    if (this.#turns.length === 0) throw invalid('messages', 'must have content')
    return this.#turns.map((turn) => this.#message(turn))
  }

  #systemText(system: unknown, field: string, separator: string): string {
    const blocks = blocksOf(system, field)
    for (const block of blocks) noteBlock(block, this.#changes)
    return plainTexts(blocks, field)
      .map((text) => text.replace(CHANGING_SUM, '$100000'))
      .join(separator)
  }

  /** Results come before the other blocks of the turn, in the order of the calls. */
  #user(blocks: readonly JsonObject[], field: string): void {
    const results = new Map<string, readonly ChatPart[]>()
    const parts: ChatPart[] = []
    blocks.forEach((block, index) => {
      const at = `${field}.${index}`
      if (block.type === 'tool_result') this.#takeResult(block, at, results)
      else parts.push(userPart(block, at, this.#changes))
    })
    for (const id of [...this.#open.keys()]) {
      const result = results.get(id)
      if (result !== undefined) for (const image of this.#pushResult(id, result)) this.#said.push(image)
    }
    for (const part of parts) this.#said.push(part)
    if (this.#open.size > 0) return
    for (const late of this.#late.splice(0)) this.#push('system', [textPart(late)])
    const said = this.#said.splice(0)
    if (said.length > 0) this.#push('user', said)
  }

  #takeResult(block: JsonObject, field: string, results: Map<string, readonly ChatPart[]>): void {
    const id = textIn(block, 'tool_use_id', field)
    if (!this.#open.has(id) || results.has(id)) throw invalid(field, 'must be the only result of a tool_use in the message before it')
    results.set(id, resultParts(block, field, this.#changes))
    noteBlock(block, this.#changes)
  }

  /** @returns the images of the result, which the role `tool` cannot have */
  #pushResult(id: string, result: readonly ChatPart[]): ChatPart[] {
    this.#open.delete(id)
    this.#turns.push({ role: 'tool', parts: result.filter((part) => part.type === 'text'), thoughts: [], calls: [], callID: id })
    const images = result.filter((part) => part.type === 'image_url')
    return images.length === 0 ? [] : [textPart(`Image in the result of the tool call ${id}:`), ...images]
  }

  #assistant(blocks: readonly JsonObject[], field: string): void {
    if (this.#said.length > 0 || this.#turns.at(-1)?.role !== 'assistant') this.#checkAnswered()
    const texts: TextPart[] = []
    const thoughts: string[] = []
    const calls: ToolCall[] = []
    blocks.forEach((block, index) => {
      const at = `${field}.${index}`
      noteBlock(block, this.#changes)
      if (block.type === 'text') texts.push(textPart(textIn(block, 'text', at)))
      else if (block.type === 'thinking') thoughts.push(textIn(block, 'thinking', at))
      else if (block.type === 'tool_use') calls.push(this.#call(block, at))
      else if (block.type === 'redacted_thinking') this.#changes.drop('redacted_thinking')
      else throw unsupported(at, `has a block of type ${shownType(block)}, which a chat completion cannot express`)
    })
    const sent = this.#sentThoughts(thoughts)
    if (texts.every(({ text }) => text === '') && calls.length + sent.length === 0) return
    this.#push('assistant', texts, { thoughts: sent, calls })
  }

  /** @returns none for a server that takes no reasoning of earlier turns */
  #sentThoughts(thoughts: readonly string[]): string[] {
    const said = thoughts.filter((thought) => thought !== '')
    if (said.length === 0 || this.#traits.reasoning !== undefined) return said
    this.#changes.drop('messages.thinking')
    return []
  }

  #call(block: JsonObject, field: string): ToolCall {
    const id = textIn(block, 'id', field)
    if (this.#open.has(id)) throw invalid(`${field}.id`, 'must be unique in its message')
    this.#open.set(id, field)
    const input = block.input === undefined || block.input === null ? {} : asObject(block.input)
    if (input === undefined) throw invalid(`${field}.input`, 'must be an object')
    return { id, type: 'function', function: { name: textIn(block, 'name', field), arguments: JSON.stringify(input) } }
  }

  /** A call without a result is refused: no server accepts it, and a made-up result would mislead the model. */
  #checkAnswered(): void {
    for (const field of this.#open.values()) throw invalid(field, 'is a tool_use without a tool_result in the next message')
  }

  #push(
    role: Turn['role'],
    parts: readonly ChatPart[],
    { thoughts = [], calls = [] }: Partial<Pick<Readonly<Turn>, 'thoughts' | 'calls'>> = {},
  ): void {
    const turn = this.#turnOf(role)
    const said = parts.filter((part) => part.type !== 'text' || part.text !== '')
    if (turn.parts.length > 0 && said.length > 0) turn.parts.push(textPart('')) // an empty line between messages
    for (const part of said) turn.parts.push(part)
    for (const thought of thoughts) turn.thoughts.push(thought)
    for (const call of calls) turn.calls.push(call)
  }

  /** Adjacent messages of one role become one, because many templates require that roles alternate. */
  #turnOf(role: Turn['role']): Turn {
    const last = this.#turns.at(-1)
    if (last?.role === role) return last
    const turn: Turn = { role, parts: [], thoughts: [], calls: [] }
    this.#turns.push(turn)
    return turn
  }

  #message({ role, parts, thoughts, calls, callID }: Turn): ChatMessage {
    const { reasoning } = this.#traits
    return {
      role,
      ...(callID !== undefined && { tool_call_id: callID }),
      content: parts.length === 0 && calls.length > 0 ? null : contentOf(parts),
      ...(reasoning !== undefined && thoughts.length > 0 && { [reasoning]: thoughts.join('\n') }),
      ...(calls.length > 0 && { tool_calls: calls }),
    }
  }
}

/** The parts of a tool result. A block that is neither text nor image is shown to the model as its JSON. */
function resultParts(block: JsonObject, field: string, changes: Changes): readonly ChatPart[] {
  const isEmpty = block.content === undefined || block.content === null
  const parts = isEmpty
    ? []
    : blocksOf(block.content, `${field}.content`).map((inner, index) => resultPart(inner, `${field}.content.${index}`, changes))
  return block.is_error === true ? asError(parts) : parts
}

/** `Error: ` stands in the line of the first text. */
function asError([first, ...rest]: readonly ChatPart[]): readonly ChatPart[] {
  if (first === undefined) return [textPart('Error: ')]
  return first.type === 'text' ? [textPart(`Error: ${first.text}`), ...rest] : [textPart('Error: '), first, ...rest]
}

function resultPart(block: JsonObject, field: string, changes: Changes): ChatPart {
  noteBlock(block, changes)
  if (block.type === 'text') return textPart(textIn(block, 'text', field))
  if (block.type === 'image') return imagePart(block, field)
  if (block.type === 'document' || block.type === 'search_result') return userPart(block, field, changes)
  return textPart(JSON.stringify(block))
}
