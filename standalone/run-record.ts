/** `.headgate/run.json`: the address and the manifests folder of the last `make run`, for `make status`. Holds no secret. */
import { z } from 'zod'

/** One run. */
export interface RunRecord {
  readonly pid: number
  readonly baseURL: string
  readonly manifests: string
  /** ms since 1970. */
  readonly startedMs: number
  /** Absent during the run and after a crash. */
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

/** @returns undefined for any other text: a record is only information, so a damaged one is not an error */
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
