/** Encodes the usage of one account as one text in a sharded Secret. Only this file knows the short field names of the text. */
import { z } from 'zod'
import { FORMAT, formatHead, parseFormat } from '#contract/records/format.ts'
import { type UsageCounts, usageCounts } from '#contract/usage/usage-report.ts'
import { recordCodec, type ShardCodec } from './shard-codec.ts'

/** Counts by uid of the key, then by name of the model. The row with the uid '' and the model '' holds the calls that found no room. */
export type UsageRows = ReadonlyMap<string, ReadonlyMap<string, UsageCounts>>
/** Rows by day or by month. */
export type UsagePeriods = ReadonlyMap<number, UsageRows>
/** `namespace/name` of keys by uid. */
export type KeyNames = ReadonlyMap<string, string>

/** The open days. Entries are shared: never change an entry, commit a new one. */
export interface OpenUsage {
  /** Name of the account. */
  readonly name: string
  /** Number of the last take of the store that is in here. */
  readonly takes: number
  /** When the store was last read with a change, ms since 1970, by the clock of the store. */
  readonly readMs: number
  /** Days for which the store has lost data. */
  readonly incomplete: readonly number[]
  readonly keys: KeyNames
  readonly days: UsagePeriods
}

/** The closed days of 35 days, and the months before. */
export interface ClosedUsage {
  readonly name: string
  /** The last closed day; -1: there is none. */
  readonly through: number
  readonly incomplete: readonly number[]
  readonly keys: KeyNames
  readonly days: UsagePeriods
  readonly months: UsagePeriods
}

const withName = z.object({ name: z.string().min(1).max(253) })
const day = z.int().nonnegative()
const periods = z.record(z.string().regex(/^\d+$/), z.record(z.string(), z.record(z.string(), usageCounts)))
const common = { inc: z.array(day).optional(), keys: z.record(z.string(), z.string()), d: periods }
const wireOpen = withName.extend({ ...common, n: z.int().nonnegative(), at: z.int().nonnegative() })
const wireClosed = withName.extend({ ...common, to: z.int().min(-1), m: periods })

/** The history of one account, as text: decoded for a question alone, since the rows of all accounts would fill the memory. */
export interface HistoryEntry {
  readonly name: string
  /** The last closed day; -1: there is none. */
  readonly through: number
  readonly text: string
}

/** The codec of the Secrets `hg-usage-*`. Only operators read them. */
export const usageCodec: ShardCodec<OpenUsage> = recordCodec<OpenUsage>(
  { read: readOpenUsage, write: writeOpenUsage, merge: later, idOf: ({ name }) => name, idIn: nameIn },
  () => FORMAT.writes,
)

/** The codec of the Secrets `hg-history-*`. */
export const historyCodec: ShardCodec<HistoryEntry> = recordCodec<HistoryEntry>(
  {
    read: (text) => ({
      ...withName
        .extend({ to: z.int().min(-1) })
        .transform(({ name, to }) => ({ name, through: to }))
        .parse(parseFormat(text)),
      text,
    }),
    write: ({ text }) => text,
    merge: (mine, theirs) => (mine.through > theirs.through ? mine : theirs),
    idOf: ({ name }) => name,
    idIn: nameIn,
  },
  () => FORMAT.writes,
)

/** Of two leaders, the one that has taken more counts: what it took is no longer in the store. */
function later(mine: OpenUsage, theirs: OpenUsage): OpenUsage {
  return mine.takes > theirs.takes ? mine : theirs
}

/** @throws UnknownVersion for a text of another build; any other error means damage */
export function readOpenUsage(text: string): OpenUsage {
  const { name, n, at, inc = [], keys, d } = wireOpen.parse(parseFormat(text))
  return { name, takes: n, readMs: at, incomplete: inc, keys: new Map(Object.entries(keys)), days: periodsIn(d) }
}

/** @returns text without a line break */
export function writeOpenUsage({ name, takes, readMs, incomplete, keys, days }: OpenUsage): string {
  return JSON.stringify({ ...formatHead(FORMAT.writes), name, n: takes, at: readMs, ...commonOf(incomplete, keys, days) })
}

/** @throws UnknownVersion for a text of another build; any other error means damage */
export function readClosedUsage({ text }: HistoryEntry): ClosedUsage {
  const { name, to, inc = [], keys, d, m } = wireClosed.parse(parseFormat(text))
  return { name, through: to, incomplete: inc, keys: new Map(Object.entries(keys)), days: periodsIn(d), months: periodsIn(m) }
}

export function historyEntry({ name, through, incomplete, keys, days, months }: ClosedUsage): HistoryEntry {
  const body = { ...formatHead(FORMAT.writes), name, to: through, ...commonOf(incomplete, keys, days), m: periodsOf(months) }
  return { name, through, text: JSON.stringify(body) }
}

function commonOf(incomplete: readonly number[], keys: KeyNames, days: UsagePeriods): object {
  return { ...(incomplete.length > 0 && { inc: incomplete }), keys: Object.fromEntries(keys), d: periodsOf(days) }
}

function periodsOf(all: UsagePeriods): z.output<typeof periods> {
  const rowsOf = (rows: UsageRows): Record<string, Record<string, number[]>> =>
    Object.fromEntries(
      [...rows].map(([key, models]) => [key, Object.fromEntries([...models].map(([model, counts]) => [model, [...counts]]))]),
    )
  return Object.fromEntries([...all].map(([period, rows]) => [String(period), rowsOf(rows)]))
}

function periodsIn(wire: z.output<typeof periods>): UsagePeriods {
  return new Map(
    Object.entries(wire).map(([period, rows]) => [
      Number(period),
      new Map(Object.entries(rows).map(([key, models]) => [key, new Map(Object.entries(models))])),
    ]),
  )
}

function nameIn(text: string): string | undefined {
  try {
    return withName.safeParse(JSON.parse(text)).data?.name
  } catch {
    return undefined // damage, which the caller reports
  }
}
