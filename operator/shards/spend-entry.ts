/** Encodes the durable spend of one subject as one text in a sharded Secret. Only this file knows the short field names of the text. */
import { z } from 'zod'
import { FORMAT, formatHead, parseFormat } from '#contract/records/format.ts'
import { MAX_AMOUNT } from '#contract/ledger/ledger-layout.ts'
import { BY_UID, recordCodec, type ShardCodec } from './shard-codec.ts'

/** A period in which spend may have been lost, ms since 1970. */
export interface Interval {
  readonly fromMs: number
  readonly toMs: number
}

/** The spend of one subject. Entries are shared: never change an entry, commit a new one. */
export interface SpendEntry {
  readonly uid: string
  /** Micro-units or tokens by name of the window, above 0. Sorted by name. */
  readonly spent: ReadonlyMap<string, number>
  /** Time of the last changed spend in the ledger, ms since 1970. */
  readonly atMs: number
  /** The last period for which the ledger had lost data; undefined = never. */
  readonly uncertain: Interval | undefined
}

const ms = z.int().nonnegative()
const wireEntry = z.object({
  uid: z.string().min(1).max(128),
  s: z.record(z.string().min(1), z.int().min(0).max(MAX_AMOUNT)),
  at: ms,
  un: z.tuple([ms, ms]).optional(),
})

/** The codec of the Secrets `hg-spend-*`. Only operators read them, so the header needs only the operator's version. */
export const spendCodec: ShardCodec<SpendEntry> = recordCodec<SpendEntry>(
  { ...BY_UID, read: readSpendEntry, write: writeSpendEntry, merge: mergeSpend },
  () => FORMAT.writes,
)

/** The highest spend that either entry has in each window, and the later loss. Spend never shrinks within a window. */
function mergeSpend(a: SpendEntry, b: SpendEntry): SpendEntry {
  const spent = new Map(a.spent)
  for (const [field, amount] of b.spent) spent.set(field, Math.max(spent.get(field) ?? 0, amount))
  const sorted = [...spent].toSorted(([one], [other]) => (one < other ? -1 : 1))
  const uncertain = (a.uncertain?.toMs ?? 0) > (b.uncertain?.toMs ?? 0) ? a.uncertain : b.uncertain
  return { uid: a.uid, spent: new Map(sorted), atMs: Math.max(a.atMs, b.atMs), uncertain }
}

/** @throws UnknownVersion for a text of another build; any other error means damage */
export function readSpendEntry(text: string): SpendEntry {
  const { uid, s, at, un } = wireEntry.parse(parseFormat(text))
  return { uid, spent: new Map(Object.entries(s)), atMs: at, uncertain: un && { fromMs: un[0], toMs: un[1] } }
}

/** @returns text without a line break */
export function writeSpendEntry({ uid, spent, atMs, uncertain }: SpendEntry): string {
  const un = uncertain && [uncertain.fromMs, uncertain.toMs]
  return JSON.stringify({ ...formatHead(FORMAT.writes), uid, s: Object.fromEntries(spent), at: atMs, un })
}
