/** The durable spend of one subject, as one text in a sharded Secret. Texts have short field names; only this file knows them. */
import { z } from 'zod'
import { FORMAT, formatHead, parseFormat } from '../../gateway/shared/format.ts'
import { MAX_AMOUNT } from '../../gateway/shared/ledger-layout.ts'
import { recordCodec } from '../secret-shards/record-codec.ts'
import type { ShardCodec } from '../secret-shards/shard-codec.ts'
import type { WindowField } from './ledger-store.ts'

/** A time in which spend may have been lost. ms since 1970. */
export interface Interval {
  readonly fromMs: number
  readonly toMs: number
}

/** What one subject has spent. Shared: never change one, commit a new one. */
export interface SpendEntry {
  /** uid of the ApiKey. */
  readonly uid: string
  /** By window; micro-units or tokens, above 0. Sorted by name. */
  readonly spent: ReadonlyMap<WindowField, number>
  /** When the ledger last showed another spend than before, ms since 1970. */
  readonly atMs: number
  /** The last time the ledger had lost data; undefined: never. */
  readonly uncertain: Interval | undefined
}

const ms = z.int().nonnegative()
const wireEntry = z.object({
  uid: z.string().min(1).max(128),
  s: z.record(z.string().min(1), z.int().min(0).max(MAX_AMOUNT)),
  at: ms,
  un: z.tuple([ms, ms]).optional(),
})
const wireUid = z.object({ uid: z.string() })

/** How the Secrets `hg-spend-*` store entries. Only operators read them, so the header needs no other version than theirs. */
export const spendCodec: ShardCodec<SpendEntry> = recordCodec<SpendEntry>(
  {
    idOf: ({ uid }) => uid,
    idIn: (text) => wireUid.safeParse(JSON.parse(text)).data?.uid,
    read: readSpendEntry,
    write: writeSpendEntry,
  },
  () => FORMAT.writes,
)

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
