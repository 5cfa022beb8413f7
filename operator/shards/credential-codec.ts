import { hash } from 'node:crypto'
import { UPSTREAM_FILE_PREFIX } from '#contract/records/mounted-folder.ts'
import type { DecodedShard, ShardCodec, ShardData, StoredEntry } from './shard-codec.ts'

/** A backend credential. Never log it. */
export interface CredentialEntry {
  /** SHA-256, hex. */
  readonly sum: string
  readonly value: string
}

const SUM = /^[0-9a-f]{64}$/

/** How the Secrets `hg-upstream-*` store entries: one data key per credential, named after its SHA-256. */
export const credentialCodec: ShardCodec<CredentialEntry> = {
  idOf: ({ sum }) => sum,
  write: ({ value }) => Buffer.from(value).toString('base64'),
  weigh: (text) => Promise.resolve(Buffer.byteLength(text, 'base64')),
  encode: (_, entries) => Promise.resolve(Object.fromEntries(Array.from(entries, dataOf))),
  decode: (data) => Promise.resolve(decode(data)),
}

function dataOf({ id = '', text }: StoredEntry<CredentialEntry>): readonly [string, string] {
  return [SUM.test(id) ? `${UPSTREAM_FILE_PREFIX}${id}` : id, text]
}

/** Another build wrote a data key of another form; such a key stays. */
function decode(data: ShardData): DecodedShard<CredentialEntry> {
  const entries = Object.entries(data).map(([key, text]): StoredEntry<CredentialEntry> => {
    const sum = key.startsWith(UPSTREAM_FILE_PREFIX) ? key.slice(UPSTREAM_FILE_PREFIX.length) : ''
    if (!SUM.test(sum)) return { id: key, text, entry: undefined, why: 'unknown data key' }
    return { id: sum, text, entry: { sum, value: Buffer.from(text, 'base64').toString('utf8') } }
  })
  const intact = entries.filter(({ entry }) => entry === undefined || hash('sha256', entry.value, 'hex') === entry.sum)
  return { entries: intact, damaged: entries.length - intact.length }
}
