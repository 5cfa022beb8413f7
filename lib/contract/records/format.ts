/**
 * Versions and features of all durable texts: records, entries, acknowledgements, and the layout of the projection. This file alone
 * lists the versions that a build reads and writes (decision 9).
 */
import { z } from 'zod'

/** The need of a key with limits or a blocking budget: a reader without the feature would admit calls that they refuse. */
export const LIMITS_FEATURE = 'limits'
/** The need of a key with an account: a reader without the feature would admit calls beyond the account. */
export const ACCOUNTS_FEATURE = 'accounts'
/** The need of a prepaid account: a reader without the feature would admit calls beyond its balance. */
export const BALANCES_FEATURE = 'balances'
/** The need of a key with a proof: a reader without the feature would admit the key by its hash alone. */
export const PROOFS_FEATURE = 'proofs'

/**
 * `reads`: versions that this build reads, and can write. `writes`: the highest version that it writes. `features`: the needs that it
 * supports.
 */
export const FORMAT: { readonly reads: readonly number[]; readonly writes: number; readonly features: readonly string[] } = {
  reads: [1],
  writes: 1,
  features: [LIMITS_FEATURE, ACCOUNTS_FEATURE, PROOFS_FEATURE, BALANCES_FEATURE],
}

const LONGEST_REASON = 200

/** Layout of the projection itself: key names, fields of meta and of log entries. A reader refuses another layout. */
export const PROJECTION_SCHEMA = 1

/** Fields at the head of a text, before `rev`. */
export interface FormatHead {
  readonly v: number
  /** Features without which a reader must not use this text. */
  readonly needs?: readonly string[]
}

/** A text of another build that this build must not use: `version 2`, `needs limits2`. It is not damaged and stays as it is. */
export class UnknownVersion extends Error {
  override readonly name = 'UnknownVersion'
}

/**
 * A text whose needs this build does not support, such as limits. The last good text admits what this one refuses, so no reader may go on
 * with that one: calls of the object are refused until the reader is updated.
 */
class UnmetNeeds extends UnknownVersion {}

/** Whether a text that cannot be read has needs that this build does not support. */
export function hasUnmetNeeds(text: string): boolean {
  try {
    parseFormat(text)
    return false
  } catch (error) {
    return error instanceof UnmetNeeds
  }
}

/**
 * Reads a text whose needs this build does not support, as if it had none: the reader refuses the calls of the object.
 * @returns undefined for any other text, and if the need has changed the fields too
 */
export function readWithoutNeeds<T>(text: string, read: (text: string) => T): T | undefined {
  if (!hasUnmetNeeds(text)) return undefined
  try {
    return read(JSON.stringify({ ...(JSON.parse(text) as object), needs: [] }))
  } catch {
    return undefined
  }
}

/** The oldest version that this build writes: for readers that do not announce their versions. */
export function oldestVersion(): number {
  return Math.min(...FORMAT.reads)
}

/** Builds the head of a text. */
export function formatHead(version: number, needs: readonly string[] = []): FormatHead {
  return needs.length > 0 ? { v: version, needs } : { v: version }
}

/**
 * Checks the head of a parsed text first, because the rest of another version may have any shape.
 * @returns the same value
 * @throws UnknownVersion for another version, or for a need that this build does not support; TypeError for a value without a version,
 * which is damaged
 */
export function checkFormat(value: unknown): object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('not a versioned object')
  const { v, needs = [] } = value as { v?: unknown; needs?: unknown }
  assertVersion(v)
  assertNeeds(needs)
  return value
}

function assertVersion(v: unknown): void {
  if (typeof v !== 'number' || !Number.isSafeInteger(v) || v < 1) throw new TypeError('no version')
  if (!FORMAT.reads.includes(v)) throw new UnknownVersion(`version ${v}`)
}

function assertNeeds(needs: unknown): void {
  if (!Array.isArray(needs)) throw new TypeError('needs is not a list')
  const lacking = needs.map(String).filter((need) => !FORMAT.features.includes(need))
  if (lacking.length > 0) throw new UnmetNeeds(`needs ${lacking.join(', ').slice(0, LONGEST_REASON)}`)
}

/** Parses a text and checks its head. @throws SyntaxError if it is not JSON; else as `checkFormat` */
export function parseFormat(text: string): object {
  return checkFormat(JSON.parse(text))
}

/** Fields of every record's body. Cluster-scoped kinds have no namespace. */
export const recordFields: { readonly uid: z.ZodString; readonly name: z.ZodString } = {
  uid: z.string().min(1).max(128),
  name: z.string().min(1).max(253),
}
/** The namespace of a record, for kinds that have one. */
export const namespaceField: z.ZodString = z.string().min(1).max(253)
/** A time, ms since 1970. */
export const timeField: z.ZodInt = z.int().nonnegative()
const revisionField = z.int().nonnegative()

/** The uid of a record of any version. */
export const withUid: z.ZodObject<{ uid: z.ZodString }> = z.object({ uid: recordFields.uid })

/** Reads the uid in a record's text of any version. @returns undefined for a damaged text */
export function uidIn(text: string): string | undefined {
  try {
    return withUid.safeParse(JSON.parse(text)).data?.uid
  } catch {
    return undefined // damage, which the caller reports
  }
}

type DeepReadonly<T> = T extends string | number | boolean | null | undefined
  ? T
  : T extends ReadonlyArray<infer Item>
    ? ReadonlyArray<DeepReadonly<Item>>
    : { readonly [Field in keyof T]: DeepReadonly<T[Field]> }

/** Plain data of a schema. */
export type DataOf<S extends z.ZodType> = DeepReadonly<z.output<S>>

/** A record in memory: the data of its schema, with the version and the revision that its text has at its head. */
export type RecordOf<S extends z.ZodType> = DataOf<S> & { readonly version: number; readonly revision: number }

/** How one kind of record is written and read. */
export interface RecordCodec<R> {
  /**
   * Decodes a record. Unknown fields are ignored; `needs` names fields that must not be ignored.
   * @throws UnknownVersion if another build wrote it; SyntaxError, TypeError or ZodError if it is damaged. The caller keeps its last good
   * value in any case
   */
  readonly decode: (text: string) => R
  /**
   * Encodes a record with its fields in the order of the schema, so that equal records have equal texts. Version and revision come first,
   * so that the projection can write the revision without parsing.
   * @param version version to write, whatever `record.version` is
   * @throws ZodError with the field, for a record that no reader could read
   */
  readonly encode: (record: R, version?: number) => string
}

/** @param needsOf features without which a reader must not use a record; they follow from its fields */
export function recordCodec<S extends z.ZodType<object>>(
  body: S,
  needsOf: (record: RecordOf<S>) => readonly string[] = () => [],
): RecordCodec<RecordOf<S>> {
  return {
    decode(text) {
      const { v: version, needs: _needs, rev, ...fields } = parseFormat(text) as FormatHead & { readonly rev?: unknown }
      return { version, revision: revisionField.parse(rev), ...body.parse(fields) } as RecordOf<S>
    },
    encode(record, version = FORMAT.writes) {
      const { version: _version, revision, ...fields } = record
      return JSON.stringify({ ...formatHead(version, needsOf(record)), rev: revisionField.parse(revision), ...body.parse(fields) })
    },
  }
}
