/** The cases that each agent runs through the gateway, and what must be seen. */
import type { AgentCase, AgentOutcome } from './agent-case.ts'
import { type KeyName, SCRIPTED, TRANSLATED, type WireRequest } from './agent-world.ts'
import { CLAUDE_LLAMA_CASES } from './claude-llama-cases.ts'
import { LLAMA } from './llama-servers.ts'
import { CUT_MODEL } from './scripted-model.ts'
import { COMPACTED_END, FULL_MODEL, FULL_TRANSLATED_MODEL, GREETING, LOOP, LOOP_END, LOOP_WORDS, TOOL_WORD } from './scripted-replies.ts'

const HELLO = 'Say hello in one short sentence.'
const COUNT_PATH = '/v1/messages/count_tokens'
/** The gateway's words, in the frame that ends a broken stream. */
const LOST_STREAM = 'Backend error: the connection to it was lost'
const QUICK_SECONDS = 90
/** Longer than the `Retry-After` of a limit per minute. */
const MINUTE_SECONDS = 180
/** opencode asks seven times, with longer and longer pauses, before it gives up. */
const RETRIES_SECONDS = 120
/** Agents send long prompts, and the model server has one thread. */
const LLAMA_SECONDS = 400

const says =
  (text: string) =>
  ({ shown }: AgentOutcome): string | undefined =>
    shown.includes(text) ? undefined : `"${text}" is not shown`

/** Refused before any model call, and the person reads why. Claude Code reads `x-should-retry`, and asks once. */
const refused =
  (text: string) =>
  (outcome: AgentOutcome): string | undefined => {
    if (outcome.seen.length > 0) return 'a refused request reached the model server'
    if (outcome.agent === 'Claude Code' && outcome.wire.length !== 1) return `${outcome.wire.length} requests were refused`
    return says(text)(outcome)
  }

const refusal = (name: string, key: KeyName, text: string, model = SCRIPTED): AgentCase => ({
  name,
  key,
  model,
  prompt: HELLO,
  deadlineSeconds: QUICK_SECONDS,
  wrong: refused(text),
})

/** The true wait may be a little longer than what an agent is told, so it may be refused twice. */
const MOST_REFUSALS = 2

const limitedCase = (name: string, model: string): AgentCase => ({
  name,
  key: 'limited',
  model,
  prompt: HELLO,
  deadlineSeconds: MINUTE_SECONDS,
  wrong: ({ agent, wire, seen, code }) => {
    const refusals = wire.filter(({ status }) => status === 429).length
    if (refusals === 0) return 'no request was refused'
    if (agent === 'Claude Code' && refusals > MOST_REFUSALS) return `${refusals} requests were refused`
    return seen.length > 0 || code === undefined ? undefined : 'the agent gave up before the minute had passed'
  },
})

/** What each turn of the loop must have left on the disk. */
const LOOP_FILES: Readonly<Record<string, string>> = {
  'turns.txt': [1, 2, 3, 4, 6, 7, 8, 9, 10].map((turn) => `turn ${turn}\n`).join(''),
  'left.txt': 'left\n',
  'right.txt': 'right\n',
}

/** Ten turns, the files on the disk, and prompts that each begin with the one before, so that a server finds them in its cache. */
function wrongLoop({ files, seen, shown }: AgentOutcome): string | undefined {
  const wrong = Object.entries(LOOP_FILES).find(([name, text]) => files[name] !== text)
  if (wrong !== undefined) return `${wrong[0]} has ${JSON.stringify(files[wrong[0]])}`
  if (!shown.includes(LOOP_END)) return `"${LOOP_END}" is not shown`
  const turns = seen.filter(({ messages }) => messages.some((message) => message.includes('"tool_calls"')))
  if (turns.length < LOOP.length) return `${turns.length} requests have calls`
  const broken = turns.findIndex(({ messages }, turn) => turn > 0 && !beginsWith(messages, turns[turn - 1]?.messages ?? []))
  return broken < 0 ? undefined : `the prompt of turn ${broken + 1} does not begin with the one before`
}

const beginsWith = (messages: readonly string[], earlier: readonly string[]): boolean =>
  earlier.every((message, index) => messages[index] === message)

/** An overflow is answered by the status 400, and the agent has the conversation summarised and goes on. */
const overflow = (name: string, model: string): AgentCase => ({
  ...{ name, key: 'good', model, prompt: `Make ${LOOP_WORDS} with commands.`, deadlineSeconds: MINUTE_SECONDS, only: ['Claude Code'] },
  wrong: (outcome) => (outcome.wire.some(({ status }) => status === 400) ? says(COMPACTED_END)(outcome) : 'no request was too long'),
})

/** Claude Code, mostly with a model server that speaks chat completions alone. */
const CLAUDE_CODE_CASES: readonly AgentCase[] = [
  {
    ...{ name: 'ten turns, translated', key: 'good', model: TRANSLATED, prompt: `Make ${LOOP_WORDS} with commands.` },
    ...{ deadlineSeconds: MINUTE_SECONDS, only: ['Claude Code'], wrong: wrongLoop },
  },
  overflow('a context that is full', FULL_MODEL),
  overflow('a context that is full, translated', FULL_TRANSLATED_MODEL),
  {
    ...refusal('401, key suspended, translated', 'suspended', 'Authentication Error: API key suspended', TRANSLATED),
    only: ['Claude Code'],
  },
  { ...refusal('403, model not allowed, translated', 'narrow', 'key not allowed to access model', TRANSLATED), only: ['Claude Code'] },
  { ...refusal('402, budget used up, translated', 'spent', 'Budget exhausted', TRANSLATED), only: ['Claude Code'] },
  { ...limitedCase('429, requests per minute, translated', TRANSLATED), only: ['Claude Code'] },
]

export const AGENT_CASES: readonly AgentCase[] = [
  ...CLAUDE_CODE_CASES,
  ...CLAUDE_LLAMA_CASES,
  {
    name: 'a prompt',
    key: 'good',
    model: SCRIPTED,
    prompt: HELLO,
    deadlineSeconds: QUICK_SECONDS,
    alsoDirect: true,
    wrong: says(GREETING),
  },
  {
    name: 'a tool loop',
    key: 'good',
    model: SCRIPTED,
    prompt: `Read the file ${TOOL_WORD} with a command.`,
    deadlineSeconds: QUICK_SECONDS,
    alsoDirect: true,
    wrong: (outcome) => says(`number: ${outcome.number}`)(outcome),
  },
  {
    name: '`/context`',
    key: 'good',
    model: SCRIPTED,
    prompt: '/context',
    deadlineSeconds: QUICK_SECONDS,
    only: ['Claude Code'],
    alsoDirect: true,
    wrong: ({ seen, shown }) => {
      if (seen.some(({ path }) => path !== COUNT_PATH)) return 'the model was called'
      return seen.length > 0 && shown.includes('Context Usage') ? undefined : 'nothing was counted'
    },
  },
  {
    name: 'a prompt, llama-server',
    key: 'good',
    model: LLAMA,
    prompt: HELLO,
    deadlineSeconds: LLAMA_SECONDS,
    alsoDirect: true,
    wrong: ({ code, shown }) => (code === 0 && shown !== '' ? undefined : `no answer, exit code ${code}`),
  },
  refusal('401, key suspended', 'suspended', 'Authentication Error: API key suspended'),
  refusal('403, model not allowed', 'narrow', 'key not allowed to access model'),
  refusal('402, budget used up', 'spent', 'Budget exhausted'),
  refusal('402, larger than the rest of the budget', 'small', 'This call does not fit the budget'),
  limitedCase('429, requests per minute', SCRIPTED),
  {
    name: 'a stream that breaks',
    key: 'good',
    model: CUT_MODEL,
    prompt: HELLO,
    deadlineSeconds: RETRIES_SECONDS,
    alsoDirect: true,
    wrong: ({ wire, shown }) => {
      const isAnswered = shown.includes(GREETING) || shown.includes(LOST_STREAM) // Claude Code asks again without a stream
      return wire.length === 0 || isAnswered ? undefined : `"${LOST_STREAM}" is not shown`
    },
  },
]

const LONGEST_TEXT = 220

/** A cell of the table: requests by status, time and text. llama-server counts no requests, and its words are random. */
export function cellOf({ wire, seen, seconds, code, shown }: AgentOutcome, { model }: AgentCase, isDirect: boolean): string {
  const requests = isDirect ? seen.map(({ path }) => path.replace('/v1/', '')) : wire.map(oneRequest)
  const text = shown.length > LONGEST_TEXT ? `${shown.slice(0, LONGEST_TEXT)} …` : shown
  const end = code === undefined ? `stopped after ${seconds.toFixed(0)} s` : `${seconds.toFixed(0)} s`
  const quoted = model === LLAMA ? 'an answer' : `“${text.replaceAll('|', '\\|')}”`
  const parts = [...(isDirect && model === LLAMA ? [] : [counted(requests)]), end, ...(text === '' ? [] : [quoted])]
  return parts.join('; ')
}

const oneRequest = ({ path, status }: WireRequest): string => `${path.replace('/v1/', '')} ${status}`

/** `3 × messages 200, 1 × messages 402`. */
function counted(names: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts.size === 0 ? 'no request' : Array.from(counts, ([name, count]) => `${count} × ${name}`).join(', ')
}
