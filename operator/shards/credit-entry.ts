/** Encodes one Credit as one text in a sharded Secret: it counts from then on, once and for ever, whatever happens to the object. */
import { z } from 'zod'
import { FORMAT, formatHead, parseFormat } from '#contract/records/format.ts'
import { type SignedMicros, signedMicrosOf } from '#contract/values/signed-micros.ts'
import { recordCodec, type ShardCodec } from './shard-codec.ts'

/** A Credit in the books. Entries never change: the first one with an id counts. */
export interface CreditEntry {
  /** Name of the Credit: the id of the payment. */
  readonly id: string
  /** Name of the account. */
  readonly account: string
  readonly micros: SignedMicros
  /** For example TopUp. */
  readonly type: string
  /** RFC 3339; '' if unknown. */
  readonly time: string
  /** '' without one. */
  readonly reference: string
}

const withId = z.object({ id: z.string().min(1).max(253) })
const wireCredit = withId.extend({
  acct: z.string().min(1).max(253),
  m: z.custom<SignedMicros>((value) => signedMicrosOf(value) !== undefined, 'not an amount'),
  type: z.string().min(1).max(32),
  t: z.string().max(64).optional(),
  ref: z.string().max(128).optional(),
})

/** The codec of the Secrets `hg-credits-*`. Only operators read them. */
export const creditCodec: ShardCodec<CreditEntry> = recordCodec<CreditEntry>(
  {
    read: readCredit,
    write: (entry, former) => former ?? writeCredit(entry),
    merge: (_mine, theirs) => theirs,
    idOf: ({ id }) => id,
    idIn,
  },
  () => FORMAT.writes,
  { staysPacked: true },
)

/** @throws UnknownVersion for a text of another build; any other error means damage */
export function readCredit(text: string): CreditEntry {
  const { id, acct, m, type, t = '', ref = '' } = wireCredit.parse(parseFormat(text))
  return { id, account: acct, micros: m, type, time: t, reference: ref }
}

/** @returns text without a line break @throws ZodError for an entry that no reader could read */
export function writeCredit({ id, account, micros, type, time, reference }: CreditEntry): string {
  const body = { id, acct: account, m: micros, type, ...(time !== '' && { t: time }), ...(reference !== '' && { ref: reference }) }
  return JSON.stringify({ ...formatHead(FORMAT.writes), ...wireCredit.parse(body) })
}

function idIn(text: string): string | undefined {
  try {
    return withId.safeParse(JSON.parse(text)).data?.id
  } catch {
    return undefined // damage, which the caller reports
  }
}
