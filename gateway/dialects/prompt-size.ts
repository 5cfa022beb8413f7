/** Estimates the tokens of a prompt from its parsed body: text by its characters, images and documents by a fixed number. */
import { asObject, type JsonObject } from './json-body.ts'
import { TextWeight } from './text-weight.ts'

/** Size of a prompt: integers. */
export interface PromptSize {
  /** At least 1. */
  readonly tokens: number
  /** The part of `tokens` that stands for images, documents and sounds. */
  readonly mediaTokens: number
  /** The part of `tokens` that stands for tools and other JSON; absent: none. */
  readonly toolTokens?: number
  /** Upper bound: a token has at least one byte of the body. */
  readonly maxTokens: number
  /** Whether the server adds an earlier conversation to the prompt, of which the body has no trace. */
  readonly hasHistory?: boolean
}

/** What the gateway knows of a prompt without a tokenizer; not below the truth, as far as can be known. */
export interface CountEstimate {
  readonly tokens: number
  /** The estimate for images, documents and sounds. A tokenizer of text does not count them. */
  readonly mediaTokens: number
}

const MESSAGE_TOKENS = 4
const TOOL_TOKENS = 10
/** Tokens for an image, a document or a sound. The true number depends on the model and on pixels, pages or seconds. */
const MEDIA_TOKENS = 1_000
/** For the upper bound, this many characters of a medium in the body count as one token: a page of a document has about 2,000 tokens and 100 KB. */
const MEDIA_CHARACTERS_PER_TOKEN = 50
/** Maximum number of tokens that a chat template adds to a prompt without a trace in the body. */
const TEMPLATE_TOKENS = 64

/** Depth to which values are read. Deeper requests are refused before; answers of a backend may have any depth. */
const MAX_DEPTH = 256

/** Types of content blocks other than text: OpenAI's, vLLM's, Anthropic's. */
const MEDIA_TYPES: ReadonlySet<unknown> = new Set([
  'image',
  'image_url',
  'input_image',
  'document',
  'file',
  'input_file',
  'input_audio',
  'audio_url',
  'video_url',
])
/** Fields of such blocks that contain or name their bytes. */
const MEDIA_BYTES: ReadonlySet<string> = new Set([
  'data',
  'url',
  'image_url',
  'audio_url',
  'video_url',
  'file_data',
  'file_id',
  'media_type',
])
/** Fields of messages and blocks that no template shows to the model. */
const UNSEEN: ReadonlySet<string> = new Set([
  'role',
  'type',
  'id',
  'tool_call_id',
  'tool_use_id',
  'cache_control',
  'index',
  'signature',
  'logprobs',
  'finish_reason',
])
/** Top-level fields besides `messages` that the model reads, as text or as JSON. */
const TEXT_FIELDS = ['system', 'prompt', 'suffix', 'input', 'instructions', 'query', 'documents', 'texts']
const JSON_FIELDS = ['tools', 'functions', 'response_format', 'output_config']

/** @param body of any dialect, with bounded nesting @param bodyBytes length of its text */
export function promptSize(body: JsonObject, bodyBytes: number): PromptSize {
  const count = new PromptCount()
  count.messages(body.messages)
  for (const field of TEXT_FIELDS) count.text(body[field])
  for (const field of JSON_FIELDS) count.tools(body[field])
  const tokens = Math.max(1, count.weight.tokens)
  const mediaTokens = count.media * MEDIA_TOKENS
  const mediaMax = mediaTokens + Math.ceil(count.mediaBytes / MEDIA_CHARACTERS_PER_TOKEN)
  const maxTokens = Math.max(tokens, bodyBytes - count.mediaBytes + mediaMax + TEMPLATE_TOKENS)
  return { tokens, mediaTokens, maxTokens, ...(count.toolTokens > 0 && { toolTokens: count.toolTokens }) }
}

/** Estimates the tokens of a plain answer of any dialect; 0 if it has no text. */
export function answerTokens({ choices, content, output, text }: JsonObject): number {
  const count = new PromptCount()
  count.text(choices ?? content ?? output ?? text)
  return count.weight.tokens
}

class PromptCount {
  readonly weight = new TextWeight()
  media = 0
  toolTokens = 0
  /** Characters that name or contain their bytes; the body is at least as long. */
  mediaBytes = 0

  messages(messages: unknown): void {
    if (!Array.isArray(messages)) return
    this.weight.addTokens(messages.length * MESSAGE_TOKENS)
    for (const message of messages) this.text(message)
  }

  tools(tools: unknown): void {
    if (tools === undefined) return
    const before = this.weight.tokens
    if (Array.isArray(tools)) this.weight.addTokens(tools.length * TOOL_TOKENS)
    this.#json(tools)
    this.toolTokens += this.weight.tokens - before
  }

  text(value: unknown, depth = 0): void {
    if (typeof value === 'string') return this.weight.add(value)
    if (depth > MAX_DEPTH) return
    if (Array.isArray(value)) return this.#list(value, depth)
    const block = asObject(value)
    if (block === undefined) return
    if (!MEDIA_TYPES.has(block.type)) return this.#textBlock(block, depth)
    this.media++
    this.weight.addTokens(MEDIA_TOKENS)
    this.#mediaPart(block, depth)
  }

  /** Prompts may be lists of tokens, or of lists of tokens. */
  #list(values: readonly unknown[], depth: number): void {
    if (typeof values[0] === 'number') return this.weight.addTokens(values.length)
    for (const value of values) this.text(value, depth + 1)
  }

  #textBlock(block: JsonObject, depth: number): void {
    const isToolUse = block.type === 'tool_use'
    for (const name in block) {
      if (isToolUse && name === 'input') this.#json(block[name], depth + 1)
      else if (!UNSEEN.has(name)) this.text(block[name], depth + 1)
    }
  }

  /** Counts the fields of a block other than text. Titles and texts of a document count, its bytes do not. */
  #mediaPart(part: JsonObject, depth: number): void {
    if (depth > MAX_DEPTH) return
    for (const name in part) {
      const value = part[name]
      const inner = asObject(value)
      if (inner !== undefined && inner.type !== 'text') this.#mediaPart(inner, depth + 1)
      else if (typeof value === 'string' && MEDIA_BYTES.has(name)) this.mediaBytes += value.length
      else if (!UNSEEN.has(name)) this.text(value, depth + 1)
    }
  }

  /** Counts a value that the model sees as JSON, with names and punctuation. */
  #json(value: unknown, depth = 0): void {
    this.weight.addTokens(1)
    if (typeof value === 'string') return this.weight.add(value)
    if (typeof value === 'number') return this.weight.add(String(value))
    if (depth > MAX_DEPTH) return
    if (Array.isArray(value)) return value.forEach((entry) => this.#json(entry, depth + 1))
    const object = asObject(value)
    if (object === undefined) return
    for (const name in object) {
      this.weight.add(name)
      this.#json(object[name], depth + 1)
    }
  }
}
