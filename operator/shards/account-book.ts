/** Encodes the books of one account as one text in a sharded Secret. They belong to the name of the account, and outlive the object. */
import { z } from 'zod'
import { FORMAT, formatHead, parseFormat } from '#contract/records/format.ts'
import { recordCodec, type ShardCodec } from './shard-codec.ts'

/** The books of one account. Entries are shared: never change an entry, commit a new one. */
export interface AccountBook {
  /** Name of the account. */
  readonly name: string
  /** uid of the Account that the books belong to. */
  readonly owner: string
  /** How often the owner has changed. */
  readonly changes: number
}

const withName = z.object({ name: z.string().min(1).max(253) })
const wireBook = withName.extend({ owner: z.string().min(1).max(128), k: z.int().nonnegative() })

/** The codec of the Secrets `hg-balances-*`. Only operators read them, so the header needs only the operator's version. */
export function bookCodec(): ShardCodec<AccountBook> {
  return recordCodec<AccountBook>(
    { read: readBook, write: writeBook, merge: mergeBooks, idOf: ({ name }) => name, idIn: nameIn },
    () => FORMAT.writes,
  )
}

/** The books of two leaders are merged, never compared: the later owner counts. */
export function mergeBooks(mine: AccountBook, theirs: AccountBook): AccountBook {
  return mine.changes > theirs.changes ? mine : theirs
}

/** @throws UnknownVersion for a text of another build; any other error means damage */
export function readBook(text: string): AccountBook {
  const { name, owner, k } = wireBook.parse(parseFormat(text))
  return { name, owner, changes: k }
}

/** @returns text without a line break */
export function writeBook({ name, owner, changes }: AccountBook): string {
  return JSON.stringify({ ...formatHead(FORMAT.writes), ...wireBook.parse({ name, owner, k: changes }) })
}

function nameIn(text: string): string | undefined {
  try {
    return withName.safeParse(JSON.parse(text)).data?.name
  } catch {
    return undefined // damage, which the caller reports
  }
}
