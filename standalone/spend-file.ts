/** The file that keeps the spend of budgets over a restart. Rates restart at zero, because they only cover a minute. */
import { z } from 'zod'
import { Misconfigured } from '#platform/lifecycle.ts'

/** Spend of one subject, by field of the ledger: micro-units or tokens. */
export type SpendByField = Readonly<Record<string, number>>

/** Spend by uid of the ApiKey. */
export interface SavedSpend {
  /** ms since 1970. */
  readonly savedMs: number
  /** Whether the program ended in order after this write, so that no spend is missing. */
  readonly isFinal: boolean
  readonly spent: Readonly<Record<string, SpendByField>>
}

const saved = z.object({
  v: z.literal(1),
  savedMs: z.int().nonnegative(),
  isFinal: z.boolean(),
  spent: z.record(z.string(), z.record(z.string(), z.int().nonnegative())),
})

/** @throws Misconfigured for a damaged text: a guess would give money back, or take it */
export function readSpend(text: string | undefined, path: string): SavedSpend | undefined {
  if (text === undefined) return undefined
  const parsed = saved.safeParse(jsonOrUndefined(text))
  if (parsed.success) return parsed.data
  throw new Misconfigured(`${path}: cannot be read; restore the file, or delete it if budgets may restart at zero`)
}

/** The text for `readSpend`. */
export function spendText({ savedMs, isFinal, spent }: SavedSpend): string {
  return JSON.stringify({ v: 1, savedMs, isFinal, spent })
}

/** The line about a resumed file. @param everyMs between two writes of the file */
export function resumedLine({ savedMs, isFinal }: SavedSpend, everyMs: number): string {
  const at = new Date(savedMs).toTimeString().slice(0, 8)
  return `Budgets are resumed from ${at}${isFinal ? '' : `, up to ${everyMs / 1_000} s lost`}.\n\n`
}

function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // damaged: the caller reports it
  }
}
