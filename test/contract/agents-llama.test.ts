/** The cases of `make agents` with llama-server, and what the random model is made to say. They run nothing here. */
import { expect, test } from 'vitest'
import type { AgentOutcome } from '../clients/agent-case.ts'
import { claudeEvents } from '../clients/claude-events.ts'
import { CLAUDE_LLAMA_CASES } from '../clients/claude-llama-cases.ts'
import type { ForcedTurn } from '../clients/forced-model.ts'
import { FORCED_END, FORCED_FILES, FORCED_TURNS, forcedFields } from '../clients/forced-turns.ts'

const OFFERED = [{ type: 'function', function: { name: 'Bash', parameters: {} } }]
const CALL = { role: 'assistant', tool_calls: [{ id: 'call_1' }] }
const afterTurns = (passed: number): ReturnType<typeof forcedFields> =>
  forcedFields({ messages: [{ role: 'user' }, ...Array.from({ length: passed }, () => CALL)], tools: OFFERED })

test('each turn has one tool and one input, and the prompt has the tools of the client', () => {
  for (const [passed, [first]] of FORCED_TURNS.entries()) {
    const fields = afterTurns(passed)
    expect(fields).toMatchObject({ tool_choice: 'required', chat_template_kwargs: { offered_tools: OFFERED } })
    expect(fields['tools']).toMatchObject([{ function: { name: first?.tool, parameters: { required: Object.keys(first?.input ?? {}) } } }])
    expect(fields['parallel_tool_calls']).toBe(passed === 4)
  }
})

test('the pattern of the fifth turn goes on in a second call, which ends where the first one would', () => {
  const [{ function: tool }] = afterTurns(4)['tools'] as [
    { function: { parameters: { properties: { description: { pattern: string } } } } },
  ]
  const text = tool.parameters.properties.description.pattern.slice(1, -1).replaceAll(/\\([^"])/g, '$1')
  const calls = JSON.parse(`[{"parameters": {"description": "${text}"}}]`) as { parameters: object; tool_name?: string }[]
  expect(calls.map(({ parameters }) => parameters)).toEqual([{ description: 'Writes left' }, FORCED_TURNS[4]?.[1]?.input])
  expect(calls[1]?.tool_name).toBe('Bash')
})

test('after the turns there is a text, and no tool', () => {
  const { tools, tool_choice: choice, grammar } = afterTurns(FORCED_TURNS.length)
  expect([tools, choice]).toEqual([undefined, undefined])
  expect(grammar).toContain(FORCED_END)
})

const turns = Array.from({ length: FORCED_TURNS.length + 1 }, (_, at): ForcedTurn => {
  const usage = { requests: 1, input: 1_000 + 100 * at, cached: at === 0 ? 0 : 899 + 100 * at, output: 10 }
  return { prompt: 'a prompt'.repeat(at + 1), status: 200, usage }
})
const sum = (of: (usage: ForcedTurn['usage']) => number): number => turns.reduce((total, { usage }) => total + of(usage), 0)
const counted = {
  input_tokens: sum(({ input, cached }) => input - cached),
  cache_read_input_tokens: sum(({ cached }) => cached),
  output_tokens: sum(({ output }) => output),
}
const answer = (usage: object, isError = false): string =>
  JSON.stringify({ type: 'result', is_error: isError, result: FORCED_END, usage, session_id: 'one' })
const outcome = (fields: Partial<AgentOutcome>): AgentOutcome => ({
  ...{ agent: 'Claude Code', shown: FORCED_END, seconds: 1, code: 0, wire: [], seen: [], number: 42 },
  ...{ files: FORCED_FILES, turns, output: answer(counted) },
  ...fields,
})
const wrong = (part: string, fields: Partial<AgentOutcome>): string | undefined =>
  CLAUDE_LLAMA_CASES.find(({ name }) => name.includes(part))?.wrong(outcome(fields))

test('the loop needs its files, prompts that begin with the one before, tokens from the cache, and the counts of the server', () => {
  expect(wrong('ten turns', {})).toBeUndefined()
  expect(wrong('ten turns', { files: { ...FORCED_FILES, 'left.txt': '' } })).toContain('left.txt')
  expect(wrong('ten turns', { shown: 'hello' })).toContain('is not shown')
  expect(wrong('ten turns', { turns: turns.slice(1) })).toBe('10 turns')
  const [second = turns[0]] = turns.slice(1)
  if (second === undefined) throw new Error('there are turns')
  expect(wrong('ten turns', { turns: turns.with(1, { ...second, prompt: 'another' }) })).toContain('turn 2: the prompt does not begin')
  expect(wrong('ten turns', { turns: turns.with(1, { ...second, usage: { ...second.usage, cached: 0 } }) })).toContain('from the cache')
  expect(wrong('ten turns', { output: answer({ ...counted, cache_read_input_tokens: 0 }) })).toContain('Claude Code counts')
})

test('a full context needs a refusal, a summary and an answer for each prompt', () => {
  const wire = [200, 400, 200].map((status) => ({ method: 'POST', path: '/v1/messages', status }))
  const compacted = JSON.stringify({ type: 'system', subtype: 'compact_boundary' })
  const answers = Array.from({ length: 5 }, () => answer(counted))
  expect(wrong('a full context', { wire, output: [compacted, ...answers].join('\n') })).toBeUndefined()
  expect(wrong('a full context', { output: [compacted, ...answers].join('\n') })).toBe('no prompt was too long')
  expect(wrong('a full context', { wire, output: answers.join('\n') })).toBe('nothing was summarised')
  expect(wrong('a full context', { wire, output: [compacted, answer(counted, true)].join('\n') })).toBe('a prompt has no answer')
})

test('lines of other kinds are no events', () => {
  const lines = ['not json', '{"type":"assistant","message":{}}', answer(counted)]
  expect(claudeEvents(lines.join('\n'))).toMatchObject({ answers: [{ result: FORCED_END }], compactions: 0 })
})
