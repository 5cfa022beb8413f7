/** What a client rebuilds from the events of a Messages stream. */
import type { MessageEvent } from './message-grammar.ts'
import type { Said } from './recorded-streams.ts'

/** A call as it was streamed. */
export interface RebuiltCall {
  readonly name: string
  /** The joined pieces of the arguments. */
  json: string
}

export interface Rebuilt {
  readonly thinking: string
  readonly text: string
  readonly calls: readonly RebuiltCall[]
  /** Types of the events that end a stream. */
  readonly ends: readonly string[]
}

/** @param events of a checked stream, so that each delta belongs to the block that was opened last */
export function rebuilt(events: readonly MessageEvent[]): Rebuilt {
  const joined = (field: 'thinking' | 'text'): string => events.map(({ delta }) => delta?.[field] ?? '').join('')
  const ends = events.map(({ type }) => type).filter((type) => type === 'message_stop' || type === 'error')
  return { thinking: joined('thinking'), text: joined('text'), calls: callsIn(events), ends }
}

function callsIn(events: readonly MessageEvent[]): RebuiltCall[] {
  const calls: RebuiltCall[] = []
  for (const { content_block: block, delta } of events) {
    if (block?.type === 'tool_use') calls.push({ name: block.name ?? '', json: '' })
    const last = calls.at(-1)
    if (last) last.json += delta?.partial_json ?? ''
  }
  return calls
}

/** @returns what a complete stream says; undefined arguments are those that no parser accepts */
export function saidIn(events: readonly MessageEvent[]): Said {
  const { thinking, text, calls } = rebuilt(events)
  const last = events.find(({ type }) => type === 'message_delta')
  return {
    ...{ thinking, text, calls: calls.map(({ name, json }) => ({ name, input: parsed(json) })) },
    stopReason: last?.delta?.stop_reason ?? '',
    stopSequence: last?.delta?.stop_sequence ?? null,
    usage: { ...last?.usage },
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
