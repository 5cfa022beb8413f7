/**
 * What a random model is made to say, turn by turn. Pure.
 *
 * The server is given one tool whose schema admits one input, so its own grammar leaves the model no other call. A grammar of the server never ends
 * a list of calls, so a second call is part of the pattern of the first one's last string, and a bias ends the list.
 */

/** A call of a tool that Claude Code offers. The last part of the input is a string. */
interface ForcedCall {
  readonly tool: string
  readonly input: Readonly<Record<string, string>>
}

export const FORCED_END = 'All forced turns are done.'

const write = (file_path: string, content: string): ForcedCall => ({ tool: 'Write', input: { file_path, content } })
const read = (file_path: string): ForcedCall => ({ tool: 'Read', input: { file_path } })
const edit = (file_path: string, old_string: string, new_string: string): ForcedCall => ({
  ...{ tool: 'Edit', input: { file_path, old_string, new_string } },
})
const bash = (command: string, description: string): ForcedCall => ({ tool: 'Bash', input: { command, description } })

/** The calls of each turn: ten turns, and two calls in the fifth. */
export const FORCED_TURNS: ReadonlyArray<readonly ForcedCall[]> = [
  [write('boats.txt', 'sloop\nketch\n')],
  [read('boats.txt')],
  [edit('boats.txt', 'ketch', 'yawl "Ebbe & Flut"')],
  [bash('printf "one\\n" > counts.txt', 'Begins the counts')],
  [bash('echo left > left.txt', 'Writes left'), bash('echo right > right.txt', 'Writes right')],
  [bash('cat left.txt right.txt >> counts.txt', 'Adds both')],
  [read('counts.txt')],
  [edit('counts.txt', 'one', 'two')],
  [write('日記.txt', 'Grachtengürtel 🚤\n')],
  [bash('wc -l < boats.txt >> counts.txt', 'Counts the boats')],
]

/** What the turns must have left on the disk. */
export const FORCED_FILES: Readonly<Record<string, string>> = {
  'boats.txt': 'sloop\nyawl "Ebbe & Flut"\n',
  'counts.txt': 'two\nleft\nright\n2\n',
  'left.txt': 'left\n',
  'right.txt': 'right\n',
  '日記.txt': 'Grachtengürtel 🚤\n',
}

interface Message {
  readonly role: string
  readonly tool_calls?: readonly unknown[] | undefined
}

/** The fields of a chat completion that say which turn it is. */
export interface ChatRequest {
  readonly messages: readonly Message[]
  readonly tools?: unknown
}

/**
 * The fields that replace those of a request. The template of the server gets the tools of the client as `offered_tools`, so the prompt has them.
 * Each message of the assistant with calls is a turn that has passed.
 */
export function forcedFields({ messages, tools }: ChatRequest): Readonly<Record<string, unknown>> {
  const passed = messages.filter(({ tool_calls: calls }) => (calls ?? []).length > 0).length
  const prompt = { chat_template_kwargs: { offered_tools: tools ?? [] } }
  const [first, ...others] = FORCED_TURNS[passed] ?? []
  if (first === undefined) return { ...prompt, tools: undefined, tool_choice: undefined, grammar: TEXT_GRAMMAR }
  const parameters = { type: 'object', properties: propertiesOf(first, others), required: Object.keys(first.input) }
  return {
    ...prompt,
    tools: [{ type: 'function', function: { name: first.tool, parameters } }],
    tool_choice: 'required',
    parallel_tool_calls: others.length > 0,
    max_tokens: MOST_TOKENS,
    logit_bias: BIAS,
  }
}

/** A turn has about 300 tokens. */
const MOST_TOKENS = 3_000
/**
 * No comma is chosen, so that the list of calls ends. The id of a call may be any number or text: it is made of letters, because a short number would
 * come twice, and it ends after some of them.
 */
const BIAS = [...Array.from(',-0123456789', (character) => [character, -100]), ['"', 2.5]]

/** The markers of the template around a text. */
const TEXT_GRAMMAR = `root ::= "<|START_TEXT|>${FORCED_END}<|END_TEXT|>"`

function propertiesOf({ input }: ForcedCall, others: readonly ForcedCall[]): Readonly<Record<string, object>> {
  const properties = Object.fromEntries(Object.entries(input).map(([name, value]) => [name, { type: 'string', enum: [value] }]))
  const last = Object.entries(input).at(-1)
  if (others.length === 0 || last === undefined) return properties
  return { ...properties, [last[0]]: { type: 'string', pattern: patternOf(`${inside(last[1])}${others.map(besideText).join('')}`) } }
}

/** Ends the call before it and begins one more, without its last `"}}`, which the call before it has. */
const besideText = ({ tool, input }: ForcedCall, index: number): string =>
  `"}}, {"tool_call_id": "beside-${index}", "tool_name": ${JSON.stringify(tool)}, "parameters": ${JSON.stringify(input).slice(0, -2)}`

/** A text as inside of a JSON string. */
const inside = (text: string): string => JSON.stringify(text).slice(1, -1)

const patternOf = (text: string): string => `^${text.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')}$`
