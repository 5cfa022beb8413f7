/** A codec for tests of sets of Secrets: readable text without compression, so that a manual clock is enough. */
import { hash } from 'node:crypto'
import { UnknownVersion } from '#contract/records/format.ts'
import type { ShardCodec, StoredEntry } from '../../operator/shards/shard-codec.ts'

export interface Note {
  readonly id: string
  readonly text: string
}

export const NOTES_KEY = 'notes'

/** Written by a build that knows more: `decode` gives no entry for it. */
export const foreignNote = (id: string, text: string): string => `v2 ${id} ${text}`

/** The data of a shard, as another process has written it. @param head `v1`; another one is of another version */
export function notesData(lines: readonly string[], head = 'v1'): Record<string, string> {
  return { [NOTES_KEY]: Buffer.from([head, ...lines].join('\n')).toString('base64') }
}

export function notesIn(data: Readonly<Record<string, string>> | undefined): readonly string[] {
  return Buffer.from(data?.[NOTES_KEY] ?? '', 'base64')
    .toString()
    .split('\n')
}

export const plainCodec: ShardCodec<Note> = {
  idOf: ({ id }) => id,
  write({ id, text }, former) {
    if (former?.startsWith('v2')) throw new UnknownVersion('version 2') // as codecs that keep unknown fields of the former text
    if (text.includes('\n')) throw new RangeError('a note is one text line')
    return `v1 ${id} ${text}`
  },
  encode: (_, entries) => Promise.resolve(notesData(Array.from(entries, ({ text }) => text))),
  decode(data) {
    const [head = '', ...lines] = notesIn(data)
    if (head === 'v2') return Promise.reject(new UnknownVersion('version 2'))
    if (head !== 'v1') return Promise.reject(new SyntaxError('no notes'))
    const entries = lines.map(decodeNote).filter((note) => note !== undefined)
    return Promise.resolve({ entries, damaged: lines.length - entries.length })
  },
}

function decodeNote(line: string): StoredEntry<Note> | undefined {
  const [version, id = '', ...words] = line.split(' ')
  if (version === 'v2') return { id, text: line, entry: undefined, why: 'version 2' }
  return version === 'v1' ? { id, text: line, entry: { id, text: words.join(' ') } } : undefined
}

/** Ids that fall into one shard, for any number of shards up to 2^16. */
export function idsOfShard(shard: number, shards: number, count: number): string[] {
  const found: string[] = []
  for (let n = 0; found.length < count; n++) {
    const first = Number.parseInt(hash('sha256', `id-${n}`, 'hex').slice(0, 8), 16)
    if (Math.floor((first / 2 ** 32) * shards) === shard) found.push(`id-${n}`)
  }
  return found
}
