/** The answers of the scripted model server as text, in the three formats that coding agents speak. */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'

const tool = z.looseObject({ name: z.string().optional(), function: z.looseObject({ name: z.string() }).optional() })
const request = z.looseObject({
  model: z.string(),
  stream: z.boolean().nullish(),
  tools: z.array(tool).nullish(),
  messages: z.array(z.looseObject({})).nullish(),
  input: z.union([z.string(), z.array(z.looseObject({}))]).nullish(),
})

export type AgentRequest = z.infer<typeof request>

/** @returns undefined for a body that is not a request */
export function parseAgentRequest(body: string): AgentRequest | undefined {
  try {
    return request.parse(JSON.parse(body))
  } catch {
    return undefined
  }
}

/** What the model does: says something, or runs a command by one of the tools that the agent offers; `beside`: more calls in the same turn. */
export type Move = { readonly say: string } | (ToolMove & { readonly beside?: readonly ToolMove[] })

interface ToolMove {
  readonly tool: string
  readonly input: Readonly<Record<string, unknown>>
}

/** A prompt with this word makes the model run `cat number.txt`. Its next answer repeats the output. */
export const TOOL_WORD = 'number.txt'
export const GREETING = 'Good morning from the scripted model.'
const COMMAND = `cat ${TOOL_WORD}`

/** A prompt with these words makes the model run the commands of `LOOP`, one turn after another. */
export const LOOP_WORDS = 'ten turns'
const step = (turn: number): string => `echo turn ${turn} >> turns.txt`
/** Commands by turn; the fifth turn has two calls. */
export const LOOP: ReadonlyArray<readonly string[]> = [
  ...[1, 2, 3, 4].map((turn) => [step(turn)]),
  ['echo left > left.txt', 'echo right > right.txt'],
  ...[6, 7, 8, 9, 10].map((turn) => [step(turn)]),
]
export const LOOP_END = 'All turns are done.'

/** Models whose context is full after some turns, and again free when the agent has had the conversation summarised. */
export const FULL_MODEL = 'full'
export const FULL_TRANSLATED_MODEL = 'full-translated'
const FULL_MODELS: ReadonlySet<string> = new Set([FULL_MODEL, FULL_TRANSLATED_MODEL])
/** A conversation of so many messages is too long for them. */
const MOST_MESSAGES = 7
const SUMMARY = 'Summary of the scripted model: some turns are done.'
export const COMPACTED_END = 'The conversation goes on after its summary.'

/** Arguments by the names that agents give to their tool for commands. */
const COMMAND_TOOLS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  Bash: { command: COMMAND, description: 'Read the number' }, // Claude Code
  bash: { command: COMMAND, description: 'Read the number' }, // opencode
  shell: { command: ['bash', '-lc', COMMAND] }, // Codex, by version
  shell_command: { command: COMMAND },
  exec_command: { cmd: COMMAND },
}
const RESULT = /^number: \d+$/m

/** Decides by the text of the conversation. Agents send long prompts of their own, so the words are found anywhere. */
export function nextMove(request: AgentRequest): Move {
  const talk = talkIn(request.input ?? request.messages)
  if (asksForSummary(request)) return { say: SUMMARY }
  return talk.includes(SUMMARY) ? { say: COMPACTED_END } : commandMove(talk, request)
}

function commandMove(talk: string, { tools, messages }: AgentRequest): Move {
  const found = commandTool(tools)
  if (talk.includes(LOOP_WORDS) && found === 'Bash') return loopMove(found, messages ?? [])
  if (!talk.includes(TOOL_WORD) || found === undefined) return { say: GREETING }
  const result = RESULT.exec(talk)?.[0]
  return result === undefined ? { tool: found, input: COMMAND_TOOLS[found] ?? {} } : { say: `The tool printed ${result}.` }
}

/** Whether the context of the model is full. The agent then asks for a summary, which has room. */
export function isTooLong(request: AgentRequest): boolean {
  return FULL_MODELS.has(request.model) && (request.messages ?? []).length > MOST_MESSAGES && !asksForSummary(request)
}

function asksForSummary({ model, messages }: AgentRequest): boolean {
  return FULL_MODELS.has(model) && /detailed summary/i.test(JSON.stringify(messages?.at(-1) ?? ''))
}

/** The conversation as lines of text. */
function talkIn(turns: unknown): string {
  return JSON.stringify(turns ?? [])
    .replaceAll('\\n', '\n')
    .replaceAll('"', '\n')
}

/** An assistant message with calls, in both formats. */
const CALLS = /"tool_calls":\[|"type":"tool_use"/

function commandTool(tools: AgentRequest['tools']): string | undefined {
  return (tools ?? []).map((one) => one.function?.name ?? one.name ?? '').find((name) => name in COMMAND_TOOLS)
}

/** Returns the next turn of the loop. Each assistant message with a call is a turn that has passed. */
function loopMove(tool: string, messages: readonly object[]): Move {
  const passed = messages.filter((message) => CALLS.test(JSON.stringify(message))).length
  const [first, ...others] = (LOOP[passed] ?? []).map((command) => ({ tool, input: { command, description: `Turn ${passed + 1}` } }))
  return first === undefined ? { say: LOOP_END } : { ...first, beside: others }
}

const INPUT_TOKENS = 1_000
const OUTPUT_TOKENS = 20

/** A format: the body of a plain answer, and the pieces of a stream. */
export interface AgentFormat {
  plain(model: string, move: Move): string
  pieces(model: string, move: Move): readonly string[]
}

const words = (text: string): readonly string[] => text.split(/(?<= )/)
const named = (events: ReadonlyArray<{ readonly type: string; readonly [field: string]: unknown }>): string[] =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)

const chatUsage = { prompt_tokens: INPUT_TOKENS, completion_tokens: OUTPUT_TOKENS, total_tokens: INPUT_TOKENS + OUTPUT_TOKENS }
const chatHead = (model: string, object: string): object => ({ id: 'chatcmpl-scripted', object, created: 0, model })

/** OpenAI chat completions. */
export const chatFormat: AgentFormat = {
  plain(model, move) {
    const choice = { index: 0, message: { role: 'assistant', ...chatContent(move) }, finish_reason: 'say' in move ? 'stop' : 'tool_calls' }
    return JSON.stringify({ ...chatHead(model, 'chat.completion'), choices: [choice], usage: chatUsage })
  },
  pieces(model, move) {
    const head = chatHead(model, 'chat.completion.chunk')
    const chunk = (delta: object, finish_reason: string | null = null): object => ({
      ...head,
      choices: [{ index: 0, delta, finish_reason }],
    })
    const deltas = 'say' in move ? words(move.say).map((content) => ({ content })) : [chatContent(move)]
    const chunks = [
      chunk({ role: 'assistant', content: '' }),
      ...deltas.map((delta) => chunk(delta)),
      chunk({}, 'say' in move ? 'stop' : 'tool_calls'),
      { ...head, choices: [], usage: chatUsage },
    ]
    return [...chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`), 'data: [DONE]\n\n']
  },
}

function chatContent(move: Move): object {
  if ('say' in move) return { content: move.say }
  const calls = [move, ...(move.beside ?? [])].map(({ tool, input }, index) => ({
    ...{ index, id: `call_${index + 1}`, type: 'function' },
    function: { name: tool, arguments: JSON.stringify(input) },
  }))
  return { tool_calls: calls }
}

/** Anthropic messages. */
export const messagesFormat: AgentFormat = {
  plain(model, move) {
    return JSON.stringify({ ...messageHead(model), content: [messageBlock(move)], ...messageEnd(move) })
  },
  pieces(model, move) {
    const deltas =
      'say' in move
        ? words(move.say).map((text) => ({ type: 'text_delta', text }))
        : [{ type: 'input_json_delta', partial_json: JSON.stringify(move.input) }]
    const empty = 'say' in move ? { type: 'text', text: '' } : { ...messageBlock(move), input: {} }
    const { usage, ...delta } = messageEnd(move)
    return named([
      { type: 'message_start', message: { ...messageHead(model), content: [], stop_reason: null, stop_sequence: null, usage } },
      { type: 'content_block_start', index: 0, content_block: empty },
      ...deltas.map((one) => ({ type: 'content_block_delta', index: 0, delta: one })),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta, usage: { output_tokens: OUTPUT_TOKENS } },
      { type: 'message_stop' },
    ])
  },
}

/** The id is new each time, because Claude Code takes two messages of one id for one message. */
const messageHead = (model: string): object => ({ id: `msg_${randomUUID()}`, type: 'message', role: 'assistant', model })

function messageBlock(move: Move): object {
  return 'say' in move
    ? { type: 'text', text: move.say }
    : { type: 'tool_use', id: `toolu_${randomUUID()}`, name: move.tool, input: move.input }
}

function messageEnd(move: Move): { readonly usage: object; readonly stop_reason: string; readonly stop_sequence: null } {
  const usage = { input_tokens: INPUT_TOKENS, output_tokens: OUTPUT_TOKENS }
  return { stop_reason: 'say' in move ? 'end_turn' : 'tool_use', stop_sequence: null, usage }
}

/** OpenAI responses. */
export const responsesFormat: AgentFormat = {
  plain(model, move) {
    return JSON.stringify(responseOf(model, 'completed', [responseItem(move)]))
  },
  pieces(model, move) {
    const item = responseItem(move)
    const place = { output_index: 0, item_id: item['id'] }
    const text = (type: string, fields: object): { readonly type: string } => ({ type: `response.${type}`, ...place, ...fields })
    const inside =
      'say' in move
        ? [
            text('content_part.added', { content_index: 0, part: { type: 'output_text', text: '', annotations: [] } }),
            ...words(move.say).map((delta) => text('output_text.delta', { content_index: 0, delta })),
            text('output_text.done', { content_index: 0, text: move.say }),
          ]
        : [text('function_call_arguments.done', { arguments: JSON.stringify(move.input) })]
    const events = [
      { type: 'response.created', response: responseOf(model, 'in_progress', []) },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { ...item, status: 'in_progress', ...('say' in move ? { content: [] } : {}) },
      },
      ...inside,
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: responseOf(model, 'completed', [item]) },
    ]
    return named(events.map((event, sequence_number) => ({ ...event, sequence_number })))
  },
}

function responseOf(model: string, status: string, output: readonly object[]): object {
  const usage = { input_tokens: INPUT_TOKENS, output_tokens: OUTPUT_TOKENS, total_tokens: INPUT_TOKENS + OUTPUT_TOKENS }
  return { id: 'resp_scripted', object: 'response', created_at: 0, model, status, output, usage: status === 'completed' ? usage : null }
}

function responseItem(move: Move): Readonly<Record<string, unknown>> {
  if (!('say' in move))
    return {
      id: 'fc_1',
      type: 'function_call',
      status: 'completed',
      call_id: 'call_1',
      name: move.tool,
      arguments: JSON.stringify(move.input),
    }
  const content = [{ type: 'output_text', text: move.say, annotations: [] }]
  return { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content }
}
