import { breathe } from '#platform/clock.ts'
import { UnknownVersion } from '#contract/records/format.ts'
import { unpackShard } from '#contract/records/shard-text.ts'

/** Number of entries that are parsed before requests get their turn. */
const PARSED_AT_ONCE = 100

interface ShardEntryFormat<T> {
  /** @throws UnknownVersion for an entry of another version; any other error means damage */
  read(text: string): T
  idOf(value: T): string
  /** Reads the id of a text of any version. */
  idIn(text: string): string | undefined
}

/** Shard files of one kind with their last good content: a file that is absent, damaged or of another version removes nothing. */
export class ShardFiles<T> {
  readonly #format: ShardEntryFormat<T>
  readonly #lastGood = new Map<string, Buffer>() // gzipped, which is far smaller
  /** Last good values of entries that are now of another version, by id. */
  readonly #kept = new Map<string, T>()

  readonly #foreign = new Map<string, number>()

  constructor(format: ShardEntryFormat<T>) {
    this.#format = format
  }

  get unreadable(): number {
    return [...this.#foreign.values()].reduce((sum, count) => sum + count, 0)
  }

  get known(): Iterable<string> {
    return this.#lastGood.keys()
  }

  /**
   * Reads a file.
   * @param bytes undefined if the file is absent
   * @param problems receives one sentence per problem: file, error, remedy
   * @returns undefined if the file never had good content
   */
  async read(name: string, bytes: Buffer | undefined, problems: string[]): Promise<readonly T[] | undefined> {
    const former = this.#lastGood.get(name)
    try {
      if (bytes) return await this.#take(name, bytes, problems)
    } catch (error) {
      if (error instanceof UnknownVersion) this.#foreign.set(name, 1)
      const fallback = former ? 'its last good content stays in use' : 'it is left out'
      problems.push(
        error instanceof UnknownVersion
          ? `keyring file ${name} was written by another version of the operator (${error.message}); ${fallback}: update the gateway`
          : `keyring file ${name} is damaged; ${fallback}: see the log of the operator`,
      )
    }
    return former && (await this.#parse(former)).values
  }

  async #take(name: string, bytes: Buffer, problems: string[]): Promise<readonly T[]> {
    const { values, foreign } = await this.#parse(bytes)
    this.#foreign.set(name, foreign.length)
    if (foreign.length > 0) {
      await this.#keep(name, foreign)
      problems.push(
        `${foreign.length} entries of keyring file ${name} were written by another version of the operator; their last good state stays in use: update the gateway`,
      )
    }
    for (const value of values) this.#kept.delete(this.#format.idOf(value))
    this.#lastGood.set(name, bytes)
    return this.#withKept(values, foreign)
  }

  /** Keeps the last good values of entries that cannot be read any more. */
  async #keep(name: string, foreign: readonly string[]): Promise<void> {
    const former = this.#lastGood.get(name)
    if (!former || foreign.every((id) => this.#kept.has(id))) return
    for (const value of (await this.#parse(former)).values) {
      const id = this.#format.idOf(value)
      if (foreign.includes(id)) this.#kept.set(id, value)
    }
  }

  #withKept(values: readonly T[], foreign: readonly string[]): readonly T[] {
    return [...values, ...foreign.flatMap((id) => this.#kept.get(id) ?? [])]
  }

  async #parse(bytes: Buffer): Promise<{ readonly values: readonly T[]; readonly foreign: readonly string[] }> {
    const values: T[] = []
    const foreign: string[] = []
    for (const [index, text] of (await unpackShard(bytes)).entries()) {
      if (index % PARSED_AT_ONCE === PARSED_AT_ONCE - 1) await breathe()
      try {
        values.push(this.#format.read(text))
      } catch (error) {
        if (!(error instanceof UnknownVersion)) throw error // half of a shard would miss revocations
        foreign.push(this.#format.idIn(text) ?? '')
      }
    }
    return { values, foreign }
  }
}
