/**
 * Encodes the closed days of one subject as one text in a sharded Secret. Only this file knows the text. In memory an entry is its text: the
 * counters of ten thousand keys as objects would fill the operator's heap.
 */
import { z } from 'zod'
import { FORMAT, formatHead, parseFormat } from '#contract/records/format.ts'
import type { UsageCounters } from '#contract/ledger/ledger-call.ts'
import { decodeUsage, encodeUsage } from '#contract/usage/ledger-usage.ts'
import { recordCodec } from '../shards/record-codec.ts'
import type { ShardCodec } from '../shards/shard-codec.ts'

/** A UTC day: whole days since 1970. */
export type UsageDay = number

/** Usage counters by day, the oldest day first. */
export type UsageDays = ReadonlyMap<UsageDay, readonly UsageCounters[]>

/** The kept days of one subject. Entries are shared: never change an entry, make a new one. */
export interface UsageEntry {
  /** uid of the ApiKey. */
  readonly uid: string
  /** The last folded day, kept or dropped: no day counts twice. */
  readonly newest: UsageDay
  /** The first kept day; undefined if no day is kept. */
  readonly oldest: UsageDay | undefined
  /** The text in the Secret. `usageDaysOf` decodes it. */
  readonly text: string
}

const day = z.int().nonnegative()
/** `m`: models. `d`: by day, rows of the index of a model and its counters. */
const wireEntry = z.object({
  uid: z.string().min(1).max(128),
  to: day,
  m: z.array(z.string().min(1)),
  d: z.record(z.string().regex(/^\d{1,8}$/), z.string()),
})
type WireEntry = z.infer<typeof wireEntry>
const wireUid = z.object({ uid: z.string() })

/** The codec of the Secrets. Only operators read them, so the header needs only the operator's version. */
export const usageCodec: ShardCodec<UsageEntry> = recordCodec<UsageEntry>(
  {
    idOf: ({ uid }) => uid,
    idIn: (text) => wireUid.safeParse(JSON.parse(text)).data?.uid,
    read: readUsageEntry,
    write: ({ text }) => text,
  },
  () => FORMAT.writes,
)

/** @throws UnknownVersion for a text of another build; any other error means damage */
export function readUsageEntry(text: string): UsageEntry {
  const wire = wireEntry.parse(parseFormat(text))
  const [oldest] = daysOf(wire).keys()
  return { uid: wire.uid, newest: wire.to, oldest, text }
}

/** @throws TypeError for an entry that is not from `readUsageEntry` */
export function usageDaysOf({ text }: UsageEntry): UsageDays {
  return daysOf(wireEntry.parse(JSON.parse(text)))
}

/** @param newest the last folded day */
export function usageEntryOf(uid: string, newest: UsageDay, days: UsageDays): UsageEntry {
  const models = [...new Set([...days.values()].flat().map(({ model }) => model))].toSorted()
  const places = new Map(models.map((model, at) => [model, at]))
  const sorted = [...days].toSorted(([a], [b]) => a - b)
  const d = Object.fromEntries(
    sorted.map(([at, counters]) => [at, counters.map((one) => `${places.get(one.model)} ${encodeUsage(one)}`).join(',')]),
  )
  const text = JSON.stringify({ ...formatHead(FORMAT.writes), uid, to: newest, m: models, d })
  return { uid, newest, oldest: sorted[0]?.[0], text }
}

/** Decodes the days. Objects list integer keys in ascending order, so the oldest day comes first. */
function daysOf({ m, d }: WireEntry): UsageDays {
  return new Map(Object.entries(d).map(([at, rows]) => [Number(at), rows.split(',').map((row) => countersOf(row, m))]))
}

function countersOf(row: string, models: readonly string[]): UsageCounters {
  const end = row.indexOf(' ')
  const model = models[Number(row.slice(0, end))]
  const counters = model === undefined ? undefined : decodeUsage(model, row.slice(end + 1))
  if (counters === undefined) throw new TypeError('a row of usage that is none')
  return counters
}
