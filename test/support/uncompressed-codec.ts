/** The codec of a set of Secrets without compression, so that a manual clock is enough and thousands of schedules take seconds. */
import type { ShardCodec } from '../../operator/shards/shard-codec.ts'

const KEY = 'records'

/** @param read the text of an entry */
export function uncompressed<Entry>(codec: ShardCodec<Entry>, read: (text: string) => Entry): ShardCodec<Entry> {
  const { write, idOf, merge } = codec
  return {
    ...{ write, idOf },
    ...(merge && { merge }),
    encode: (_, entries) => {
      const text = Array.from(entries, (stored) => stored.text).join('\n')
      return Promise.resolve({ [KEY]: Buffer.from(text).toString('base64') })
    },
    decode: (data) => {
      const texts = Buffer.from(data[KEY] ?? '', 'base64')
        .toString()
        .split('\n')
      const entries = texts.filter((text) => text !== '').map((text) => ({ text, entry: read(text) }))
      return Promise.resolve({ entries: entries.map(({ text, entry }) => ({ id: idOf(entry), text, entry })), damaged: 0 })
    },
  }
}
