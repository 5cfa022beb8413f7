/**
 * The revision log and related data that operator and gateways exchange about the projection. Writer: `operator/projection`. Reader:
 * `gateway/projection`. Nothing in this file does I/O.
 */
import { z } from 'zod'
import { type DataOf, FORMAT, formatHead, oldestVersion, parseFormat } from './format.ts'

/** Identity and position of one Redis data set. `epoch` changes when the data were rebuilt; `revision` counts changes. */
export interface ProjectionMeta {
  readonly schema: number
  readonly epoch: string
  readonly revision: number
  readonly fence: number
  /** Installation that writes it. '': none, and the next writer adopts it. */
  readonly installation: string
}

/** A change. The record is fetched by its id and is then at least as new as the entry. */
export interface LogEntry {
  readonly revision: number
  /** A RecordKind, or a kind that only a newer build knows: readers skip its entries. */
  readonly kind: string
  readonly op: 'put' | 'del'
  readonly id: string
}

/** Health of a backend as one gateway process sees it. */
const backendHealth = z.object({ up: z.int().nonnegative(), total: z.int().nonnegative() })

/** Maximum number of unreadable uids in an acknowledgement. A list of this length may be incomplete, so it proves nothing. */
export const MAX_UNREADABLE_RECORDS = 64
/** Maximum number of backends in an acknowledgement. */
const MAX_REPORTED_BACKENDS = 200
/** A longer acknowledgement is dropped by the operator. */
export const MAX_ACKNOWLEDGEMENT_BYTES = 65_536

/**
 * Report of a gateway process in each heartbeat: the revision that it has applied, and the records that it could not use. A newer gateway may
 * report more, or in other words: only a field that proves something makes the whole acknowledgement unreadable.
 */
const acknowledgement = z
  .object({
    epoch: z.string(),
    rev: z.int().nonnegative(),
    source: z.enum(['Redis', 'Keyring', 'None']).catch('None'),
    ready: z.boolean(),
    /** Version of its program. */
    version: z.string().catch(''),
    /** Versions of texts that it reads. */
    schemas: z.array(z.int()),
    features: z.array(z.string()).catch([]),
    /** Uids of records whose newest text it could not read. */
    bad: z.array(z.string()).max(MAX_UNREADABLE_RECORDS),
    /** By `<model uid>/<backend name>`; only backends that are not fully healthy. */
    backends: z.record(z.string(), backendHealth).catch({}),
  })
  .transform(({ rev: revision, bad: unreadable, ...same }) => ({ ...same, revision, unreadable }))

export type Acknowledgement = DataOf<typeof acknowledgement>

/** Reads an acknowledgement. @returns undefined for any other text (of another version, damaged, of another program) */
export function decodeAcknowledgement(text: string): Acknowledgement | undefined {
  try {
    return acknowledgement.parse(parseFormat(text))
  } catch {
    return undefined // the caller counts it as "has not acknowledged", which is the safe side
  }
}

/**
 * Writes an acknowledgement in the oldest version of this build, because operators do not announce the versions that they read. Lists are
 * cut to the length that a reader accepts.
 */
export function encodeAcknowledgement(ack: Acknowledgement): string {
  const { epoch, revision: rev, source, ready, version, schemas, features } = ack
  const bad = ack.unreadable.slice(0, MAX_UNREADABLE_RECORDS)
  const backends = Object.fromEntries(Object.entries(ack.backends).slice(0, MAX_REPORTED_BACKENDS))
  return JSON.stringify({ ...formatHead(oldestVersion()), epoch, rev, source, ready, version, schemas, features, bad, backends })
}

/**
 * Chooses the version to write: the highest one that the writer can write and every live process reads. A process with an unreadable
 * acknowledgement, or no process at all, counts as a reader of the oldest version.
 */
export function lowestCommonVersion(acks: ReadonlyArray<Pick<Acknowledgement, 'schemas'> | undefined>): number {
  const writable = FORMAT.reads.filter((version) => version <= FORMAT.writes).toSorted((a, b) => b - a)
  const common = acks.length === 0 ? undefined : writable.find((version) => acks.every((ack) => ack?.schemas.includes(version)))
  return common ?? oldestVersion()
}

/** A process counts as live for this long after its last heartbeat, ms, by the clock of the store. */
export const LIVE_FOR_MS = 5_000
/** Interval of heartbeats, ms. */
export const HEARTBEAT_EVERY_MS = 1_000

/** Writes the revision into a record text. Encoders write `rev` directly after the head, so the first one is the right one. */
export function stampRevision(text: string, revision: number): string {
  return text.replace(/"rev":\d+/, `"rev":${revision}`)
}

/** Reads the revision of a record text of any version; undefined if it has none. */
export function revisionOf(text: string): number | undefined {
  const digits = /"rev":(\d{1,15})/.exec(text)?.[1]
  return digits === undefined ? undefined : Number(digits)
}
