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
  plainText,
  shownType,
  textIn,
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
  readonly #out: ChatMessage[] = []
  /** Calls of the last assistant turn that have no result yet, by their position in the request. */
  readonly #open = new Map<string, string>()
  /** System messages that stand between a call and its result. They follow the result. */
  readonly #late: ChatMessage[] = []

  constructor(traits: EngineTraits, changes: Changes) {
    this.#traits = traits
    this.#changes = changes
  }

  system(system: unknown): void {
    if (system === undefined || system === null) return
    const text = this.#systemText(system, 'system', '\n\n')
    if (text !== '') this.#out.push({ role: 'system', content: text })
  }

  add(message: JsonObject, field: string): void {
    const content = `${field}.content`
    if (message.role === 'user') return this.#user(blocksOf(message.content, content), content)
    if (message.role === 'assistant') return this.#assistant(blocksOf(message.content, content), content)
    if (message.role !== 'system') throw invalid(`${field}.role`, 'must be user, assistant or system')
    const late: ChatMessage = { role: 'system', content: this.#systemText(message.content, content, '\n') }
    if (this.#open.size > 0) this.#late.push(late)
    else this.#push(late)
  }

  end(): ChatMessage[] {
    this.#checkAnswered()
    return this.#out
  }

  #systemText(system: unknown, field: string, separator: string): string {
    const blocks = blocksOf(system, field)
    if (blocks.some(({ cache_control: control }) => control !== undefined)) this.#changes.drop('cache_control')
    return blocks.map((block, index) => this.#stableText(block, `${field}.${index}`)).join(separator)
  }

  #stableText(block: JsonObject, field: string): string {
    return plainText([block], field).replace(CHANGING_SUM, '$100000')
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
    const images: ChatPart[] = []
    for (const id of [...this.#open.keys()]) {
      const result = results.get(id)
      if (result !== undefined) images.push(...this.#pushResult(id, result))
    }
    this.#checkAnswered()
    for (const late of this.#late.splice(0)) this.#push(late)
    const all = [...images, ...parts]
    if (all.length > 0) this.#push({ role: 'user', content: contentOf(all) })
  }

  #takeResult(block: JsonObject, field: string, results: Map<string, readonly ChatPart[]>): void {
    const id = textIn(block, 'tool_use_id', field)
    if (!this.#open.has(id) || results.has(id)) throw invalid(field, 'must be the only result of a tool_use in the message before it')
    results.set(id, resultParts(block, field, this.#changes))
    if (block.cache_control !== undefined) this.#changes.drop('cache_control')
  }

  /** @returns the images of the result, which the role `tool` cannot have */
  #pushResult(id: string, result: readonly ChatPart[]): ChatPart[] {
    this.#open.delete(id)
    const texts = result.filter((part) => part.type === 'text').map(({ text }) => text)
    this.#out.push({ role: 'tool', tool_call_id: id, content: texts.join('\n') })
    const images = result.filter((part) => part.type === 'image_url')
    return images.length === 0 ? [] : [textPart(`Image in the result of the tool call ${id}:`), ...images]
  }

  #assistant(blocks: readonly JsonObject[], field: string): void {
    this.#checkAnswered()
    const texts: string[] = []
    const thoughts: string[] = []
    const calls: ToolCall[] = []
    blocks.forEach((block, index) => {
      const at = `${field}.${index}`
      if (block.type === 'text') texts.push(textIn(block, 'text', at))
      else if (block.type === 'thinking') thoughts.push(textIn(block, 'thinking', at))
      else if (block.type === 'tool_use') calls.push(this.#call(block, at))
      else if (block.type === 'redacted_thinking') this.#changes.drop('redacted_thinking')
      else throw unsupported(at, `has a block of type ${shownType(block)}, which a chat completion cannot express`)
    })
    const text = texts.filter((part) => part !== '').join('\n')
    if (text === '' && calls.length === 0 && thoughts.length === 0) return
    this.#push({
      role: 'assistant',
      content: text === '' && calls.length > 0 ? null : text,
      ...this.#reasoning(thoughts),
      ...(calls.length > 0 && { tool_calls: calls }),
    })
  }

  #reasoning(thoughts: readonly string[]): Pick<ChatMessage, 'reasoning' | 'reasoning_content'> {
    const text = thoughts.filter((thought) => thought !== '').join('\n')
    if (text === '') return {}
    if (this.#traits.reasoning !== undefined) return { [this.#traits.reasoning]: text }
    this.#changes.drop('messages.thinking')
    return {}
  }

  #call(block: JsonObject, field: string): ToolCall {
    const id = textIn(block, 'id', field)
    if (this.#open.has(id)) throw invalid(`${field}.id`, 'must be unique in its message')
    this.#open.set(id, field)
    const input = JSON.stringify(asObject(block.input) ?? {})
    return { id, type: 'function', function: { name: textIn(block, 'name', field), arguments: input } }
  }

  /** A call without a result is refused: no server accepts it, and a made-up result would mislead the model. */
  #checkAnswered(): void {
    for (const field of this.#open.values()) throw invalid(field, 'is a tool_use without a tool_result in the next message')
  }

  /** Adjacent messages of one role become one, because many templates require that roles alternate. */
  #push(message: ChatMessage): void {
    const last = this.#out.at(-1)
    const isSame = last !== undefined && last.role === message.role && last.tool_calls === undefined
    if (isSame) this.#out[this.#out.length - 1] = joined(last, message)
    else this.#out.push(message)
  }
}

function joined(first: ChatMessage, second: ChatMessage): ChatMessage {
  return { ...first, ...second, content: contentOf([...partsOf(first.content), ...partsOf(second.content)], '\n\n') }
}

function partsOf(content: ChatContent | null): readonly ChatPart[] {
  if (content === null || content === '') return []
  return typeof content === 'string' ? [textPart(content)] : content
}

/** The parts of a tool result. A block that is neither text nor image is shown to the model as its JSON. */
function resultParts(block: JsonObject, field: string, changes: Changes): readonly ChatPart[] {
  const isEmpty = block.content === undefined || block.content === null
  const parts = isEmpty
    ? []
    : blocksOf(block.content, `${field}.content`).map((inner, index) => resultPart(inner, `${field}.content.${index}`, changes))
  return block.is_error === true ? [textPart('Error: '), ...parts].reduce(withPrefix, []) : parts
}

/** Joins `Error: ` with the first text, which follows it in the same line. */
function withPrefix(parts: ChatPart[], part: ChatPart, index: number): ChatPart[] {
  const [first] = parts
  if (index === 1 && part.type === 'text' && first?.type === 'text') return [textPart(first.text + part.text)]
  return [...parts, part]
}

function resultPart(block: JsonObject, field: string, changes: Changes): ChatPart {
  if (block.type === 'text') return textPart(textIn(block, 'text', field))
  if (block.type === 'image') return imagePart(block, field)
  if (block.type === 'document' || block.type === 'search_result') return userPart(block, field, changes)
  return textPart(JSON.stringify(block))
}
