import { parseFormat } from '#contract/records/format.ts'
import { recordCodec } from './record-codec.ts'
import type { ShardCodec } from './shard-codec.ts'

/** The model record of a cold start. */
export interface ModelEntry {
  readonly uid: string
  /** Encoded ModelRecord. */
  readonly text: string
}

/** How the Secrets `hg-models-*` store entries: one ModelRecord per text line. @param version of the header */
export function modelCodec(version: () => number): ShardCodec<ModelEntry> {
  return recordCodec<ModelEntry>(
    {
      idOf: ({ uid }) => uid,
      idIn: (text) => uidIn(JSON.parse(text)),
      read(text) {
        const uid = uidIn(parseFormat(text))
        if (uid === undefined) throw new TypeError('a model record without uid')
        return { uid, text }
      },
      write: ({ text }) => text,
    },
    version,
  )
}

function uidIn(record: object): string | undefined {
  return 'uid' in record && typeof record.uid === 'string' ? record.uid : undefined
}
