/** `.headgate/run.json`: where the last `make run` listens and what it follows, for `make status`. Holds no secret. */
import { z } from 'zod'

/** One run. */
export interface RunRecord {
  readonly pid: number
  readonly baseURL: string
  readonly manifests: string
  /** ms since 1970. */
  readonly startedMs: number
  /** Absent while it runs, and after a crash. */
  readonly endedMs?: number | undefined
}

/** Name in the state folder. */
export const RUN_RECORD = 'run.json'

const schema = z.object({
  pid: z.int().positive(),
  baseURL: z.string(),
  manifests: z.string(),
  startedMs: z.int().nonnegative(),
  endedMs: z.int().nonnegative().optional(),
})

/** @returns undefined for a text that is not a record: it only informs, so nothing depends on it */
export function readRunRecord(text: string | undefined): RunRecord | undefined {
  if (text === undefined) return undefined
  try {
    const parsed = schema.safeParse(JSON.parse(text))
    return parsed.success ? parsed.data : undefined
  } catch {
    return undefined // damaged
  }
}

/** The text for `readRunRecord`. */
export function runRecordText(record: RunRecord): string {
  return `${JSON.stringify(record)}\n`
}
