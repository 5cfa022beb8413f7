/**
 * The revision log and what surrounds it: the data that operator and gateways exchange about the projection.
 * Writer: `operator/projection`. Reader: `gateway/auth`. Nothing in here does I/O.
 */
import { z } from 'zod'

/** Layout of the projection itself (key names, log fields); a reader refuses another one. */
export const PROJECTION_SCHEMA = 1

/** Which table a record belongs to. */
export type RecordKind = 'key' | 'model'
/** Every kind, in the order in which a full load reads them. */
export const RECORD_KINDS = ['key', 'model'] as const satisfies readonly RecordKind[]

/** Identity and position of one Redis data set. `epoch` changes when the data were rebuilt; `rev` counts changes. */
export interface ProjectionMeta {
  readonly schema: number
  readonly epoch: string
  readonly rev: number
  readonly fence: number
}

/** One change. `text` is the record, absent for `del`. */
export interface LogEntry {
  readonly rev: number
  readonly kind: RecordKind
  readonly op: 'put' | 'del'
  readonly id: string
  readonly text?: string
}

/** Health of one backend as one gateway process sees it. */
const backendHealth = z.strictObject({ up: z.int().nonnegative(), total: z.int().nonnegative() })

const acknowledgement = z.object({
  epoch: z.string(),
  rev: z.int().nonnegative(),
  source: z.enum(['Redis', 'Keyring', 'None']),
  ready: z.boolean(),
  version: z.string(),
  schemas: z.array(z.int()),
  bad: z.array(z.string()).max(64), // uids whose newest record this process could not read
  backends: z.record(z.string(), backendHealth), // "<model uid>/<backend name>"; only those that are not wholly up
})

/** What one gateway process says about itself in each heartbeat: the revision that it has applied, and what it could not use. */
export type Acknowledgement = z.infer<typeof acknowledgement>

/** Reads a heartbeat. @returns undefined for text that is none (a newer gateway, a foreign writer) */
export function decodeAcknowledgement(text: string): Acknowledgement | undefined {
  try {
    return acknowledgement.parse(JSON.parse(text))
  } catch {
    return undefined // counted as "has not acknowledged" by the caller, which is the safe reading
  }
}

/** Writes a heartbeat. */
export function encodeAcknowledgement(ack: Acknowledgement): string {
  return JSON.stringify(ack)
}

/** Most uids of unreadable records that a heartbeat names. */
export const MAX_BAD_RECORDS = 64
/** A process counts as live for this long after its last heartbeat, by the clock of the store. */
export const LIVE_FOR_MS = 5_000
/** A process says that it lives this often, ms. */
export const HEARTBEAT_EVERY_MS = 1_000

/** Writes the revision into a record text; encoders put `rev` second, so only the head of the text is looked at. */
export function stampRevision(text: string, rev: number): string {
  return text.replace(/"rev":\d+/, `"rev":${rev}`)
}
