import { type KeyringEntry, keyringEntryUid, readKeyringEntry, writeKeyringEntry } from '#contract/records/keyring-entry.ts'
import { recordCodec } from './record-codec.ts'
import type { ShardCodec } from './shard-codec.ts'

/** How keyring Secrets store entries. @param version of the header */
export function keyringCodec(version: () => number): ShardCodec<KeyringEntry> {
  return recordCodec<KeyringEntry>(
    {
      idOf: ({ uid }) => uid,
      idIn: keyringEntryUid,
      read: readKeyringEntry,
      write: (entry, former) => writeKeyringEntry(entry, former === undefined ? undefined : readKeyringEntry(former)),
    },
    version,
  )
}
