import { describe, expect, test } from 'vitest'
import { UnknownVersion } from '#contract/records/format.ts'
import { unpackShard } from '#contract/records/shard-text.ts'
import type { PackedEntries } from './packed-entries.ts'
import { recordCodec, type ShardCodec, type StoredEntry } from './shard-codec.ts'

interface Note {
  readonly id: string
  readonly text: string
}

const codec: ShardCodec<Note> = recordCodec<Note>(
  {
    read: (text) => {
      const { v, id, t } = JSON.parse(text) as { v: number; id: string; t: string }
      if (v !== 1) throw new UnknownVersion(`version ${v}`)
      return { id, text: t }
    },
    write: ({ id, text }) => JSON.stringify({ v: 1, id, t: text }),
    idOf: ({ id }) => id,
    idIn: (text) => (JSON.parse(text) as { id: string }).id,
  },
  () => 1,
  { staysPacked: true },
)
const PLACE = { shards: 4, shard: 2 }
const note = (id: string, text = `text of ${id} `.repeat(8)): Note => ({ id, text })
const stored = (entry: Note): StoredEntry<Note> => ({ id: entry.id, text: codec.write(entry, undefined), entry })
const notes = (count: number): Note[] => Array.from({ length: count }, (_, n) => note(`note-${n}`))
const keyed = (entries: readonly Note[]): Map<string, StoredEntry<Note>> => new Map(entries.map((entry) => [entry.id, stored(entry)]))
const packed = async (entries: readonly Note[]): Promise<PackedEntries<Note>> => (await codec.pack?.(keyed(entries))) ?? expect.fail()
const listed = (entries: PackedEntries<Note>): Array<Note | undefined> => [...entries.values()].map(({ entry }) => entry)

/** The Secret of some entries, read again. */
async function reread(entries: PackedEntries<Note>): Promise<Array<Note | undefined>> {
  const data = await codec.encode(PLACE, entries.values())
  expect(await unpackShard(Buffer.from(data['records'] ?? '', 'base64'))).toHaveLength(entries.size)
  return (await codec.decode(data)).entries.map(({ entry }) => entry)
}

describe('entries that stay packed', () => {
  test('are read as they were given, alone and in order', async () => {
    const entries = await packed(notes(1_000))
    expect([entries.size, entries.blocks.length > 2]).toEqual([1_000, true])
    expect(entries.get('note-777')).toMatchObject(stored(note('note-777')))
    expect([entries.get('note-1000'), entries.has('note-0'), entries.has('note-1000')]).toEqual([undefined, true, false])
    expect(listed(entries)).toEqual(notes(1_000))
    expect([...entries.keys()]).toEqual(notes(1_000).map(({ id }) => id))
    expect(await reread(entries)).toEqual(notes(1_000))
  })

  test('take the memory of their blocks and no more', async () => {
    const { blocks } = await packed(notes(1_000))
    expect(blocks.map(({ buffer }) => buffer.byteLength)).toEqual(blocks.map(({ byteLength }) => byteLength))
  })

  test('take new entries at their end, and changed ones in their place', async () => {
    const before = await packed(notes(1_000))
    const after = await before.edited(keyed([note('new-1'), note('note-3', 'changed'), note('new-2')]))
    const wanted = [...notes(1_000).with(3, note('note-3', 'changed')), note('new-1'), note('new-2')]
    expect(listed(after)).toEqual(wanted)
    expect(await reread(after)).toEqual(wanted)
    expect(listed(before), 'an edit changes nothing in place').toEqual(notes(1_000))
  })

  test('compress only the blocks that an edit touches', async () => {
    const before = await packed(notes(2_000))
    const after = await before.edited(keyed([note('new')]))
    const same = before.blocks.filter((block, at) => after.blocks[at] === block)
    expect(same).toHaveLength(before.blocks.length - 1)
  })

  test('grow one by one without small blocks', async () => {
    let entries = await packed([])
    for (const one of notes(400)) entries = await entries.edited(keyed([one]))
    expect(listed(entries)).toEqual(notes(400))
    expect(entries.blocks.length).toBe((await packed(notes(400))).blocks.length)
  })

  test('can be removed', async () => {
    const entries = await (await packed(notes(500))).edited(new Map([['note-7', undefined]]))
    expect([entries.size, entries.get('note-7')]).toEqual([499, undefined])
    expect(await reread(entries)).toEqual(notes(500).toSpliced(7, 1))
  })

  test('of another build keep their text, and are known without a search', async () => {
    const foreign: StoredEntry<Note> = { id: 'later', text: '{"v":2,"id":"later"}', entry: undefined, why: 'version 2' }
    const entries = await (await packed(notes(3))).edited(new Map([['later', foreign]]))
    expect([...entries.foreign]).toEqual([foreign])
    expect([entries.get('later')?.why, entries.get('note-1')?.why]).toEqual(['version 2', undefined])
    const data = await codec.encode(PLACE, (await entries.edited(keyed([note('new')]))).values())
    const { entries: again } = await codec.decode(data)
    expect(again.find(({ id }) => id === 'later')).toEqual(foreign)
  })
})
