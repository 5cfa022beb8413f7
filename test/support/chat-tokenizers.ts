/** Renders chat completions to prompts by the templates of published models, written from memory, and counts their tokens with real tokenizers. */
import { getEncoding, type Tiktoken } from 'js-tiktoken'

interface Called {
  readonly function: { readonly name: string; readonly arguments: string }
}
interface ChatMessage {
  readonly role: string
  readonly content?: unknown
  readonly tool_calls?: readonly Called[]
}

/** What a chat completion has of a prompt. */
export interface ChatPrompt {
  readonly messages: readonly ChatMessage[]
  readonly tools?: readonly object[] | undefined
}

const textOf = (content: unknown): string =>
  typeof content === 'string' ? content : Array.isArray(content) ? content.map((part: { text?: string }) => part.text ?? '').join('') : ''

/** As the template of Qwen2.5-Instruct. */
function qwen({ messages, tools = [] }: ChatPrompt): string {
  const [first] = messages
  const system = first?.role === 'system' ? textOf(first.content) : 'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.'
  const signatures = tools.map((tool) => `\n${JSON.stringify(tool)}`).join('')
  const offer =
    tools.length === 0
      ? ''
      : `\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>${signatures}\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>`
  const turns = messages
    .filter(({ role }) => role !== 'system')
    .map(({ role, content, tool_calls: calls = [] }) => {
      const called = calls.map(
        ({ function: { name, arguments: input } }) => `\n<tool_call>\n{"name": "${name}", "arguments": ${input}}\n</tool_call>`,
      )
      const text = role === 'tool' ? `\n<tool_response>\n${textOf(content)}\n</tool_response>` : `\n${textOf(content)}`
      return `<|im_start|>${role === 'tool' ? 'user' : role}${text}${called.join('')}<|im_end|>\n`
    })
  return `<|im_start|>system\n${system}${offer}<|im_end|>\n${turns.join('')}<|im_start|>assistant\n`
}

/** As the template of Llama-3.1-Instruct, which indents the schemas of tools. */
function llama({ messages, tools = [] }: ChatPrompt): string {
  const header = (role: string): string => `<|start_header_id|>${role}<|end_header_id|>\n\n`
  const [first] = messages
  const system = first?.role === 'system' ? textOf(first.content) : ''
  const dated = `${tools.length > 0 ? 'Environment: ipython\n' : ''}Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n`
  const signatures = tools.map((tool) => `${JSON.stringify(tool, null, 4)}\n\n`).join('')
  const offer =
    tools.length === 0
      ? ''
      : `Given the following functions, please respond with a JSON for a function call with its proper arguments that best answers the given prompt.\n\nRespond in the format {"name": function name, "parameters": dictionary of argument name and its value}.Do not use variables.\n\n${signatures}`
  const turns = messages
    .filter(({ role }) => role !== 'system')
    .map(({ role, content, tool_calls: calls = [] }, index) => {
      const called = calls.map(({ function: { name, arguments: input } }) => `{"name": "${name}", "parameters": ${input}}`)
      return `${header(role === 'tool' ? 'ipython' : role)}${index === 0 ? offer : ''}${textOf(content)}${called.join('')}<|eot_id|>`
    })
  return `<|begin_of_text|>${header('system')}${dated}${system}<|eot_id|>${turns.join('')}${header('assistant')}`
}

export const rendered: (prompt: ChatPrompt) => string = qwen

const SPECIAL = /<\|[a-z_]+\|>/g

class ChatTokenizer {
  readonly #encoding: Tiktoken
  readonly #render: (prompt: ChatPrompt) => string

  constructor(encoding: 'o200k_base' | 'cl100k_base', render: (prompt: ChatPrompt) => string) {
    this.#encoding = getEncoding(encoding)
    this.#render = render
  }

  /** The tokens of the whole prompt; a marker of the template is one. */
  count(prompt: ChatPrompt): number {
    const text = this.#render(prompt)
    const parts = text.split(SPECIAL)
    return parts.reduce((sum, part) => sum + this.#encoding.encode(part, [], []).length, parts.length - 1)
  }
}

/**
 * The tokenizers are real: that of gpt-oss and GPT-4o with the template of Qwen, and that of GPT-4, from which those of Qwen and Llama 3 are
 * derived, with the template of Llama. The first finds the fewest tokens, the second the most.
 */
export const chatTokenizers = (): ReadonlyArray<readonly [name: string, tokenizer: ChatTokenizer]> => [
  ['o200k_base', new ChatTokenizer('o200k_base', qwen)],
  ['cl100k_base', new ChatTokenizer('cl100k_base', llama)],
]
