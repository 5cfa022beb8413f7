/**
 * The entries of one shard, compressed in memory: for sets of very many small entries. An entry takes its id, one number and its share of a
 * block. To read an entry, its block is unpacked; the last unpacked block is kept. Reads in the order of the Secret unpack each block once.
 */
import { BLOCK_CHARACTERS, packBlock, unpackBlock } from './block-packer.ts'
import type { StoredEntry } from './shard-codec.ts'

/** The entries of a Secret by id, in the order of the Secret. Never changed: an edit makes another one. */
export type StoredEntries<Entry> = ReadonlyMap<string, StoredEntry<Entry>> | PackedEntries<Entry>

/** New entries by id; undefined = the entry is removed. */
export type Edits<Entry> = ReadonlyMap<string, StoredEntry<Entry> | undefined>

/** Bound of the texts of a block, for places: each text has at least nine characters, since it begins with its version. */
const TEXTS_PER_BLOCK = 4_096

type Read<Entry> = (text: string) => StoredEntry<Entry> | undefined

interface Content<Entry> {
  readonly blocks: readonly Uint8Array[]
  /** Number of the block · `TEXTS_PER_BLOCK` + position in the block, by id. */
  readonly places: ReadonlyMap<string, number>
  /** Entries of other builds. */
  readonly foreign: ReadonlyMap<string, StoredEntry<Entry>>
}

export class PackedEntries<Entry> implements Iterable<StoredEntry<Entry>> {
  readonly #read: Read<Entry>
  readonly #content: Content<Entry>
  #open: { readonly block: number; readonly texts: readonly string[] } | undefined

  /** @param read reads the text of an entry, which was read before without an error */
  constructor(read: Read<Entry>, content: Content<Entry> = { blocks: [], places: new Map(), foreign: new Map() }) {
    this.#read = read
    this.#content = content
  }

  get size(): number {
    return this.#content.places.size
  }

  /** Compressed, in order. */
  get blocks(): readonly Uint8Array[] {
    return this.#content.blocks
  }

  get foreign(): Iterable<StoredEntry<Entry>> {
    return this.#content.foreign.values()
  }

  has(id: string): boolean {
    return this.#content.places.has(id)
  }

  /** The entry unpacks its block when its text is read. */
  get(id: string): StoredEntry<Entry> | undefined {
    const { places, foreign } = this.#content
    const place = places.get(id)
    if (place === undefined) return undefined
    return foreign.get(id) ?? new PackedEntry(id, () => this.#textAt(place), this.#read)
  }

  keys(): Iterable<string> {
    return this.#content.places.keys()
  }

  /** @returns itself, so that a codec finds the blocks */
  values(): Iterable<StoredEntry<Entry>> {
    return this
  }

  *[Symbol.iterator](): IterableIterator<StoredEntry<Entry>> {
    for (const place of this.#content.places.values()) {
      const stored = this.#read(this.#textAt(place))
      if (stored) yield stored
    }
  }

  /** Compresses only the blocks of changed entries, and the last one for new entries. A removal compresses all blocks. */
  async edited(edits: Edits<Entry>): Promise<PackedEntries<Entry>> {
    const present = [...edits].flatMap(([id, stored]) => (stored === undefined ? [] : [[id, stored] as const]))
    if (present.length < edits.size) return await this.#without(edits)
    const { blocks, places, foreign } = this.#content
    const texts = new EditedBlocks(blocks.length, (block) => this.#textsOf(block))
    const next = { places: new Map(places), foreign: new Map(foreign) }
    for (const [id, stored] of present) {
      const place = places.get(id)
      if (place === undefined) next.places.set(id, texts.add(stored.text))
      else texts.replace(place, stored.text)
      if (stored.entry === undefined) next.foreign.set(id, stored)
    }
    return new PackedEntries(this.#read, { ...next, blocks: await texts.packed(blocks) })
  }

  #without(edits: Edits<Entry>): Promise<PackedEntries<Entry>> {
    const kept = new Map<string, StoredEntry<Entry>>()
    for (const id of new Set([...this.keys(), ...edits.keys()])) {
      const stored = edits.has(id) ? edits.get(id) : this.get(id)
      if (stored) kept.set(id, stored)
    }
    return new PackedEntries(this.#read).edited(kept)
  }

  #textAt(place: number): string {
    return this.#textsOf(Math.floor(place / TEXTS_PER_BLOCK))[place % TEXTS_PER_BLOCK] ?? ''
  }

  #textsOf(block: number): readonly string[] {
    if (this.#open?.block === block) return this.#open.texts
    const bytes = this.#content.blocks[block]
    const texts = bytes === undefined ? [] : unpackBlock(bytes)
    this.#open = { block, texts }
    return texts
  }
}

class PackedEntry<Entry> implements StoredEntry<Entry> {
  readonly id: string
  readonly #text: () => string
  readonly #read: Read<Entry>

  constructor(id: string, text: () => string, read: Read<Entry>) {
    this.id = id
    this.#text = text
    this.#read = read
  }

  get text(): string {
    return this.#text()
  }

  get entry(): Entry | undefined {
    return this.#read(this.text)?.entry
  }
}

/** The texts of the blocks that an edit touches. */
class EditedBlocks {
  readonly #unpacked: (block: number) => readonly string[]
  readonly #texts = new Map<number, string[]>()
  /** The block that takes new texts; undefined before the first one. */
  #last: { readonly block: number; room: number } | undefined

  constructor(blocks: number, unpacked: (block: number) => readonly string[]) {
    this.#unpacked = unpacked
    if (blocks > 0) this.#last = { block: blocks - 1, room: Number.NaN }
  }

  /** @returns the place of the text */
  add(text: string): number {
    const last = this.#withRoom()
    const texts = this.#textsOf(last.block)
    last.room -= text.length
    return last.block * TEXTS_PER_BLOCK + texts.push(text) - 1
  }

  replace(place: number, text: string): void {
    this.#textsOf(Math.floor(place / TEXTS_PER_BLOCK))[place % TEXTS_PER_BLOCK] = text
  }

  /** @param former the blocks before the edit */
  async packed(former: readonly Uint8Array[]): Promise<readonly Uint8Array[]> {
    const blocks = [...former]
    await Promise.all(
      [...this.#texts].map(async ([block, texts]) => {
        blocks[block] = new Uint8Array(await packBlock(texts)) // a copy of its own size: a Buffer may keep the memory of others
      }),
    )
    return blocks
  }

  #withRoom(): { readonly block: number; room: number } {
    if (this.#last !== undefined && Number.isNaN(this.#last.room))
      this.#last.room = BLOCK_CHARACTERS - this.#textsOf(this.#last.block).reduce((sum, { length }) => sum + length, 0)
    if (this.#last === undefined || this.#last.room <= 0) this.#last = { block: (this.#last?.block ?? -1) + 1, room: BLOCK_CHARACTERS }
    return this.#last
  }

  #textsOf(block: number): string[] {
    const known = this.#texts.get(block)
    if (known) return known
    const texts = [...this.#unpacked(block)]
    this.#texts.set(block, texts)
    return texts
  }
}
