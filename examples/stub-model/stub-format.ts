/** What all formats of the stub model share: the parts of a request that it reads, and the content of one answer. */
import { z } from 'zod'

const request = z.looseObject({
  model: z.string().default('stub'),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: z.number().nullish(),
  max_completion_tokens: z.number().nullish(),
  max_output_tokens: z.number().nullish(),
  messages: z.unknown().optional(),
  prompt: z.unknown().optional(),
  input: z.unknown().optional(),
  query: z.unknown().optional(),
  documents: z.array(z.unknown()).default([]),
  top_n: z.number().nullish(),
  encoding_format: z.string().nullish(),
  /** Length of the sound file of a form. */
  fileBytes: z.number().default(0),
})

/** The part of a request that the stub reads. */
export type StubRequest = z.infer<typeof request>

/** The content of one answer. */
export interface StubAnswer {
  readonly id: string
  readonly createdSeconds: number
  readonly request: StubRequest
  readonly words: readonly string[]
  readonly inputTokens: number
  /** Whether the words were cut to the requested number of tokens. */
  readonly truncated: boolean
  readonly usage: boolean
}

/** The wire format of one route. */
export interface StubFormat {
  inputTokens(request: StubRequest): number
  /** Whether a stream reports usage only to a request with `stream_options`. */
  readonly hasUsageOption?: boolean
  /** The body of a plain answer. Absent: every answer is sound, which is sent in pieces. */
  readonly plain?: (answer: StubAnswer) => string
  /** The pieces of a stream. Absent: the route has no streams. */
  readonly pieces?: (answer: StubAnswer) => ReadonlyArray<string | Buffer>
  failure(status: number): string
}

/** Reads JSON, or the form of a sound file. @returns undefined for a body that is not a request */
export async function parseStubRequest(body: Buffer, contentType = ''): Promise<StubRequest | undefined> {
  try {
    return request.parse(contentType.startsWith('multipart/') ? await formFields(body, contentType) : JSON.parse(body.toString('utf8')))
  } catch {
    return undefined
  }
}

async function formFields(body: Buffer, contentType: string): Promise<object> {
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': contentType } }).formData()
  const { file, stream, max_completion_tokens: cap, ...texts } = Object.fromEntries(form)
  const fileBytes = file instanceof File ? file.size : 0
  return { ...texts, fileBytes, stream: stream === 'true', max_completion_tokens: cap === undefined ? undefined : Number(cap) }
}

/** The text of the last message, or of the last prompt. */
export function lastText({ messages, prompt, input, query }: StubRequest): string {
  const asked = messages ?? prompt ?? input ?? query
  return textOf(Array.isArray(asked) ? asked.at(-1) : asked)
}

/** Text stands in `content`, in `text`, or in a list of both. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.map(textOf).join(' ')
  if (typeof value !== 'object' || value === null) return ''
  return textOf('content' in value ? value.content : 'text' in value ? value.text : '')
}

/** Words of an answer; a word is a token, so the cap of a request cuts it. @param count number of words, undefined = an echo */
export function answerWords(from: StubRequest, count: number | undefined): { words: readonly string[]; truncated: boolean } {
  const echo = `This is the stub model; it has no mind of its own. You said: ${lastText(from)}`.trim().split(/\s+/)
  const all = count === undefined ? echo : Array.from({ length: count }, (_, index) => `word${index + 1}`)
  const limit = from.max_output_tokens ?? from.max_completion_tokens ?? from.max_tokens ?? all.length
  return { words: all.slice(0, limit), truncated: limit < all.length }
}

/** Tokens of a prompt: its words, at least one. */
export function wordsOf(prompt: unknown): number {
  return JSON.stringify(prompt ?? '').split(/\s+/).length
}

/** The words as pieces of a text. */
export function spaced(words: readonly string[]): readonly string[] {
  return words.map((word, index) => (index === 0 ? word : ` ${word}`))
}

/** Pieces of a stream whose events have names. */
export function namedEvents(events: ReadonlyArray<{ readonly type: string }>): string[] {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
}

/** Pieces of a stream whose events have no names. */
export function unnamedEvents(events: readonly object[]): string[] {
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`)
}

/** An error of OpenAI's API. */
export function openaiFailure(status: number): string {
  return JSON.stringify({ error: { message: `stub model answers ${status} as asked`, type: 'stub_error', param: null, code: null } })
}
