/** Encodes a value that an ApiKey with `source.type: Hash` has had, as one text in a sharded Secret: its hash, without the value. */
import { z } from 'zod'
import { FORMAT, formatHead, namespaceField, parseFormat } from '#contract/records/format.ts'
import { KEY_HASH_PATTERN, type KeyHash } from '#contract/values/credential.ts'
import { recordCodec, type ShardCodec } from './shard-codec.ts'

export interface UsedValue {
  readonly namespace: string
  readonly hash: KeyHash
  readonly isRevoked: boolean
}

const wire = z.object({
  ns: namespaceField,
  hash: z.string().regex(KEY_HASH_PATTERN) as unknown as z.ZodType<KeyHash>,
  revoked: z.literal(true).optional(),
})

/** The codec of the Secrets `hg-values-*`. Only operators read them. */
export const usedValueCodec: ShardCodec<UsedValue> = recordCodec<UsedValue>(
  {
    read: (text) => {
      const { ns: namespace, hash, revoked = false } = wire.parse(parseFormat(text))
      return { namespace, hash, isRevoked: revoked }
    },
    write: ({ namespace, hash, isRevoked }) =>
      JSON.stringify({ ...formatHead(FORMAT.writes), ...wire.parse({ ns: namespace, hash, ...(isRevoked && { revoked: true }) }) }),
    merge: (mine, theirs) => (mine.isRevoked ? mine : theirs),
    idOf: usedValueId,
    idIn,
  },
  () => FORMAT.writes,
)

/** No namespace has a slash. */
export function usedValueId({ namespace, hash }: Pick<UsedValue, 'namespace' | 'hash'>): string {
  return `${namespace}/${hash}`
}

function idIn(text: string): string | undefined {
  try {
    const found = wire.safeParse(JSON.parse(text)).data
    return found && usedValueId({ namespace: found.ns, hash: found.hash })
  } catch {
    return undefined // damage, which the caller reports
  }
}
