/** The file that keeps what budgets have spent over a restart. Rates begin anew: a minute is over before anybody notices. */
import { z } from 'zod'
import { Misconfigured } from '../gateway/process/lifecycle.ts'

/** Spend of one subject, by field of the ledger: micro-units or tokens. */
export type SpendByField = Readonly<Record<string, number>>

/** What was spent, by uid of the ApiKey. */
export interface SavedSpend {
  /** ms since 1970. */
  readonly savedMs: number
  /** The program has ended in order afterwards, so nothing is missing. */
  readonly isFinal: boolean
  readonly spent: Readonly<Record<string, SpendByField>>
}

const saved = z.object({
  v: z.literal(1),
  savedMs: z.int().nonnegative(),
  isFinal: z.boolean(),
  spent: z.record(z.string(), z.record(z.string(), z.int().nonnegative())),
})

/** @throws Misconfigured for a text that is damaged: a guess would give money back, or take it */
export function readSpend(text: string | undefined, path: string): SavedSpend | undefined {
  if (text === undefined) return undefined
  const parsed = saved.safeParse(jsonOrUndefined(text))
  if (parsed.success) return parsed.data
  throw new Misconfigured(`${path}: cannot be read; restore the file, or delete it if budgets may begin anew`)
}

/** The text for `readSpend`. */
export function spendText({ savedMs, isFinal, spent }: SavedSpend): string {
  return JSON.stringify({ v: 1, savedMs, isFinal, spent })
}

/** What a person is told about it. @param everyMs between two writes of the file */
export function resumedLine({ savedMs, isFinal }: SavedSpend, everyMs: number): string {
  const at = new Date(savedMs).toTimeString().slice(0, 8)
  return `Budgets are resumed from ${at}${isFinal ? '' : `, up to ${everyMs / 1_000} s lost`}.\n\n`
}

function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // damaged: told by the caller
  }
}
