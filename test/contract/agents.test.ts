/** The cases and the scripted model of `make agents`, which run nothing here. */
import { expect, test } from 'vitest'
import type { AgentOutcome } from '../clients/agent-case.ts'
import { AGENT_CASES, cellOf } from '../clients/agent-cases.ts'
import {
  chatFormat,
  COMPACTED_END,
  GREETING,
  isTooLong,
  LOOP,
  LOOP_END,
  LOOP_WORDS,
  messagesFormat,
  nextMove,
  responsesFormat,
} from '../clients/scripted-replies.ts'

const outcome = (fields: Partial<AgentOutcome>): AgentOutcome => ({
  agent: 'opencode',
  shown: '',
  seconds: 1,
  code: 0,
  wire: [],
  seen: [],
  turns: [],
  output: '',
  number: 42,
  files: {},
  ...fields,
})
const caseNamed = (part: string): (typeof AGENT_CASES)[number] => {
  const found = AGENT_CASES.find(({ name }) => name.includes(part))
  if (found === undefined) throw new RangeError(`no case ${part}`)
  return found
}
const wrong = (part: string, fields: Partial<AgentOutcome>): string | undefined => caseNamed(part).wrong(outcome(fields))
const call = { method: 'POST', path: '/v1/messages', messages: [] }
const count = { method: 'POST', path: '/v1/messages/count_tokens', messages: [] }

test('a refusal must show its text, and must not reach the model server', () => {
  const shown = 'API Error: 402 Budget exhausted: budget "life"'
  expect(wrong('402, budget used up', { shown })).toBeUndefined()
  expect(wrong('402, budget used up', { shown: 'Something went wrong' })).toContain('is not shown')
  expect(wrong('402, budget used up', { shown, seen: [call] })).toContain('reached the model server')
  const [agent, refused] = ['Claude Code', { ...call, status: 402 }]
  expect(wrong('402, budget used up', { agent, shown, wire: [refused] })).toBeUndefined()
  expect(wrong('402, budget used up', { agent, shown, wire: [refused, refused] })).toBe('2 requests were refused')
})

test('/context must count tokens, and must not call the model', () => {
  const shown = '## Context Usage'
  expect(wrong('/context', { shown, seen: [count] })).toBeUndefined()
  expect(wrong('/context', { shown, seen: [count, call] })).toBe('the model was called')
  expect(wrong('/context', { shown })).toBe('nothing was counted')
})

test('a tool loop must show what the tool has read', () => {
  expect(wrong('tool loop', { shown: 'The tool printed number: 42.' })).toBeUndefined()
  expect(wrong('tool loop', { shown: 'The tool printed number: 43.' })).toContain('is not shown')
})

test('a limit per minute must refuse, and the agent must wait', () => {
  const limited = { ...call, status: 429 }
  expect(wrong('429', { wire: [limited], seen: [call] })).toBeUndefined()
  expect(wrong('429', { wire: [limited], code: undefined }), 'it still waits').toBeUndefined()
  expect(wrong('429', { wire: [limited], code: 1 })).toContain('gave up')
  expect(wrong('429', { seen: [call] })).toBe('no request was refused')
  expect(wrong('429', { agent: 'Claude Code', wire: [limited, limited, limited], seen: [call] })).toBe('3 requests were refused')
})

test('after a broken stream the agent must show the words of the gateway, or an answer that it asked for again', () => {
  const wire = [{ ...call, status: 200 }]
  expect(wrong('breaks', { wire, shown: 'ERROR: Backend error: the connection to it was lost' })).toBeUndefined()
  expect(wrong('breaks', { wire, shown: GREETING })).toBeUndefined()
  expect(wrong('breaks', { wire, shown: 'ERROR: stream disconnected' })).toContain('is not shown')
  expect(wrong('breaks', { shown: 'Connection reset by server' }), 'without a gateway').toBeUndefined()
})

test('a cell has the requests by status, the time, and the text without the marks of a table', () => {
  const wire = [429, 429, 200].map((status) => ({ ...call, status }))
  const cell = cellOf(outcome({ wire, seconds: 61.6, shown: 'a | b' }), caseNamed('429'), false)
  expect(cell).toBe('2 × messages 429, 1 × messages 200; 62 s; “a \\| b”')
  expect(cellOf(outcome({ code: undefined, seconds: 90 }), caseNamed('429'), false)).toBe('no request; stopped after 90 s')
})

const tools = [{ name: 'Read' }, { name: 'Bash' }]
const prompt = { role: 'user', content: 'Read the file number.txt with a command.' }

test('the scripted model runs the command of the agent once, and then repeats its output', () => {
  const first = nextMove({ model: 'script', tools, messages: [prompt] })
  expect(first).toMatchObject({ tool: 'Bash', input: { command: 'cat number.txt' } })
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'number: 42\n' }] }
  expect(nextMove({ model: 'script', tools, messages: [prompt, result] })).toEqual({ say: 'The tool printed number: 42.' })
})

test('without a tool for commands, or without the word, it greets', () => {
  expect(nextMove({ model: 'script', messages: [prompt] })).toEqual({ say: GREETING })
  expect(nextMove({ model: 'script', tools, input: 'hello' })).toEqual({ say: GREETING })
})

test('the loop runs each command in its turn, two in the fifth, and leaves the files that the case expects', () => {
  const files: Record<string, string> = {}
  const messages: object[] = [{ role: 'user', content: `Make ${LOOP_WORDS}.` }]
  const seen = []
  for (const commands of LOOP) {
    const plain = chatFormat.plain('translated', nextMove({ model: 'translated', tools, messages: messages as [] }))
    const { tool_calls: calls } = (JSON.parse(plain) as { choices: [{ message: { tool_calls: { function: { arguments: string } }[] } }] })
      .choices[0].message
    expect(calls.map((one) => (JSON.parse(one.function.arguments) as { command: string }).command)).toEqual(commands)
    for (const command of commands) {
      const [, text = '', name = ''] = /^echo (.*) >>? (.*)$/.exec(command) ?? []
      files[name] = `${files[name] ?? ''}${text}\n`
    }
    messages.push({ role: 'assistant', content: null, tool_calls: calls })
    seen.push({ ...call, messages: messages.map((message) => JSON.stringify(message)) })
  }
  expect(nextMove({ model: 'translated', tools, messages: messages as [] })).toEqual({ say: LOOP_END })
  expect(wrong('ten turns', { files, seen, shown: LOOP_END })).toBeUndefined()
  expect(wrong('ten turns', { files: { ...files, 'left.txt': '' }, seen, shown: LOOP_END })).toContain('left.txt')
  const edited = seen.with(4, { ...call, messages: ['{"tool_calls":1}'] })
  expect(wrong('ten turns', { files, seen: edited, shown: LOOP_END })).toBe('the prompt of turn 5 does not begin with the one before')
})

test('the context of the model "full" is full after some turns, has room for a summary, and is free after it', () => {
  const turns = Array.from({ length: 8 }, (_, at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content: `Make ${LOOP_WORDS}.` }))
  const asking = { role: 'user', content: 'Your task is to create a detailed summary of the conversation so far.' }
  expect([turns.slice(0, 7), turns, [...turns, asking]].map((messages) => isTooLong({ model: 'full', messages }))).toEqual([
    false,
    true,
    false,
  ])
  expect(isTooLong({ model: 'script', messages: turns })).toBe(false)
  const summary = nextMove({ model: 'full', tools, messages: [...turns, asking] })
  if (!('say' in summary)) throw new Error('a summary is a text')
  expect(nextMove({ model: 'full', tools, messages: [{ role: 'user', content: summary.say }] })).toEqual({ say: COMPACTED_END })
  const wire = [200, 400, 200].map((status) => ({ ...call, status }))
  expect(wrong('is full, translated', { wire, shown: COMPACTED_END })).toBeUndefined()
  expect(wrong('is full, translated', { wire: wire.slice(0, 1), shown: COMPACTED_END })).toBe('no request was too long')
})

test('each answer by messages has an id of its own, because Claude Code takes two messages of one id for one', () => {
  const ids = [1, 2].map(() => (JSON.parse(messagesFormat.plain('full', { tool: 'Bash', input: {} })) as { id: string }).id)
  expect(new Set(ids).size).toBe(2)
})

test('the text of a stream of responses is the text of its last event', () => {
  const events = responsesFormat.pieces('script', { say: GREETING }).map((piece) => JSON.parse(piece.split('data: ')[1] ?? '') as Event)
  expect(events.map(({ delta }) => delta ?? '').join('')).toBe(GREETING)
  expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { output: [{ content: [{ text: GREETING }] }] } })
})

interface Event {
  readonly type: string
  readonly delta?: string
}
