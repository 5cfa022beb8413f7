/** What Claude Code says of its conversation in `--output-format stream-json`. Pure. */
import { z } from 'zod'

const usage = z.object({ input_tokens: z.number(), cache_read_input_tokens: z.number(), output_tokens: z.number() })
const event = z.discriminatedUnion('type', [
  z.object({ type: z.literal('result'), is_error: z.boolean(), result: z.string().optional(), usage }),
  z.object({ type: z.literal('system'), subtype: z.string() }),
])

/** The end of the work for one prompt, with the tokens that all its calls have reported. */
export type ClaudeAnswer = Extract<z.infer<typeof event>, { readonly type: 'result' }>

export interface ClaudeEvents {
  /** One for each prompt. */
  readonly answers: readonly ClaudeAnswer[]
  /** How often the conversation was summarised. */
  readonly compactions: number
}

export function claudeEvents(output: string): ClaudeEvents {
  const events = output.split('\n').flatMap((line) => {
    const { data } = event.safeParse(parsed(line))
    return data === undefined ? [] : [data]
  })
  return {
    answers: events.filter((one) => one.type === 'result'),
    compactions: events.filter((one) => one.type === 'system' && one.subtype === 'compact_boundary').length,
  }
}

/** @returns undefined for a line that is not JSON */
export function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
