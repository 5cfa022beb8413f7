/** Claude Code with llama-server: a loop with tools, and conversations that outgrow the context. */
import type { AgentCase, AgentOutcome } from './agent-case.ts'
import { FORCED, SMALL, SMALL_TRANSLATED } from './agent-world.ts'
import { claudeCodeTalking } from './agents.ts'
import { claudeEvents } from './claude-events.ts'
import type { ForcedTurn } from './forced-model.ts'
import { FORCED_END, FORCED_FILES, FORCED_TURNS } from './forced-turns.ts'

const LLAMA_SECONDS = 600
const ONLY_CLAUDE = { only: ['Claude Code'], as: claudeCodeTalking }

/** A server finds all of the prompt before in its cache but for the last tokens, which it may read again. */
const READ_AGAIN_TOKENS = 8

function wrongTurns({ files, turns, shown, output }: AgentOutcome): string | undefined {
  const wrong = Object.entries(FORCED_FILES).find(([name, text]) => files[name] !== text)
  if (wrong !== undefined) return `${wrong[0]} has ${JSON.stringify(files[wrong[0]])}`
  if (shown !== FORCED_END) return `"${FORCED_END}" is not shown`
  if (turns.length !== FORCED_TURNS.length + 1) return `${turns.length} turns`
  const pairs = turns.slice(1).map((turn, index) => wrongPair(turns[index], turn))
  const broken = pairs.findIndex((pair) => pair !== undefined)
  return broken < 0 ? wrongUsage(turns, output) : `turn ${broken + 2}: ${pairs[broken]}`
}

function wrongPair(before: ForcedTurn | undefined, turn: ForcedTurn): string | undefined {
  if (before === undefined || !turn.prompt.startsWith(before.prompt)) return 'the prompt does not begin with the one before'
  const { cached } = turn.usage
  const least = before.usage.input - READ_AGAIN_TOKENS
  return cached >= least ? undefined : `${cached} tokens came from the cache, and ${before.usage.input} were in the prompt before`
}

/** Claude Code adds up what the translated answers report. */
function wrongUsage(turns: readonly ForcedTurn[], output: string): string | undefined {
  const { usage } = claudeEvents(output).answers.at(-1) ?? {}
  const sum = (of: (turn: ForcedTurn) => number): number => turns.reduce((total, turn) => total + of(turn), 0)
  const expected = {
    input_tokens: sum((turn) => turn.usage.input - turn.usage.cached),
    cache_read_input_tokens: sum((turn) => turn.usage.cached),
    output_tokens: sum((turn) => turn.usage.output),
  }
  const [told, truth] = [usage, expected].map((one) => JSON.stringify(one))
  return told === truth ? undefined : `Claude Code counts ${told}, and the server ${truth}`
}

/** Long enough that some of them fill what the context has beside Claude Code's own prompt. */
const LONG_PROMPT_WORDS = 1_500
const longPrompt = (number: number): string => `Say hello. Note ${number}: ${'boat '.repeat(LONG_PROMPT_WORDS)}`

/** The conversation is summarised after the refusal of a prompt, and every later prompt has an answer. */
const overflow = (name: string, model: string): AgentCase => ({
  ...{
    name,
    key: 'good',
    model,
    prompt: longPrompt(1),
    more: [2, 3, 4, 5].map(longPrompt),
    deadlineSeconds: LLAMA_SECONDS,
    ...ONLY_CLAUDE,
  },
  wrong({ wire, output }) {
    const { answers, compactions } = claudeEvents(output)
    if (!wire.some(({ status }) => status === 400)) return 'no prompt was too long'
    if (compactions === 0) return 'nothing was summarised'
    return answers.length === 5 && answers.every(({ is_error: isError }) => !isError) ? undefined : 'a prompt has no answer'
  },
})

export const CLAUDE_LLAMA_CASES: readonly AgentCase[] = [
  {
    ...{ name: 'ten turns, llama-server, translated', key: 'good', model: FORCED, prompt: 'Keep the books of the boats.' },
    ...{ deadlineSeconds: LLAMA_SECONDS, ...ONLY_CLAUDE, wrong: wrongTurns },
  },
  overflow('a full context, llama-server', SMALL),
  overflow('a full context, llama-server, translated', SMALL_TRANSLATED),
]
