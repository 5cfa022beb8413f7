/** Reads the mounted folder with keyring shards, records and backend credentials, as the kubelet writes it. */
import { createHash } from 'node:crypto'
import { readdir, readFile, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { breathe } from '#platform/clock.ts'
import { hasUnmetNeeds, parseFormat, readWithoutNeeds, uidIn, UnknownVersion } from '#contract/records/format.ts'
import { type KeyringEntry, readKeyringEntry } from '#contract/records/keyring-entry.ts'
import { ACCOUNTS_FOLDER, KEYRING_FOLDER, MODELS_FOLDER, UPSTREAM_FILE_PREFIX } from '#contract/records/mounted-folder.ts'
import { unpackShard } from '#contract/records/shard-text.ts'

/** Whether an entry changes what its reader knows from the projection. */
type IsNeeded = (entry: KeyringEntry) => boolean

export interface KeyringContent {
  /** The entries of every shard that could be read now or before; undefined if there was never one. Perhaps only those that the reader needs. */
  readonly entries: readonly KeyringEntry[] | undefined
  /** Encoded ModelRecords; undefined if there is no readable file. */
  readonly models: readonly string[] | undefined
  /** Encoded records of accounts and plans. */
  readonly accounts: readonly string[]
  /** Backend credentials by their SHA-256, hex. Never log a value. */
  readonly credentials: ReadonlyMap<string, string>
  /** Number of keyring entries and whole shards of another operator version that this gateway cannot read. */
  readonly unreadable: number
  /** Whether a file could not be read: what it says may be read later, without any change of the folder. */
  readonly isPartial: boolean
  /** One sentence per unusable file: its name, the error, the remedy. */
  readonly problems: readonly string[]
}

const CURRENT = '..data' // the kubelet replaces this link, so that all files change at once
const SHARD_NAME = new RegExp(`^(?:${KEYRING_FOLDER}|${MODELS_FOLDER}|${ACCOUNTS_FOLDER})/\\d+-\\d+$`)

/** A record that its table decodes. */
const RECORD_TEXT: ShardEntryFormat<string> = {
  read: (text) => {
    parseFormat(text)
    return text
  },
  refused: (text) => text,
  idOf: (text) => uidIn(text) ?? '',
  idIn: uidIn,
}

/** The entry of a key whose needs this version does not support, without values: the former entry would admit calls that this one refuses. */
function refusedEntry(text: string): KeyringEntry | undefined {
  const entry = readWithoutNeeds(text, readKeyringEntry)
  return entry && { ...entry, verifiers: [] }
}

/** A file that is absent, damaged or of another version removes nothing: the last good content of its shard stays in use. */
export class KeyringFiles {
  readonly #dir: string
  readonly #keyring = new ShardFiles<KeyringEntry>({ read: readKeyringEntry, refused: refusedEntry, idOf: ({ uid }) => uid, idIn: uidIn })
  readonly #models = new ShardFiles<string>(RECORD_TEXT)
  readonly #accounts = new ShardFiles<string>(RECORD_TEXT)
  #base: string
  #isPartial = false

  /** @param dir mount path of the projected volume; it need not exist yet */
  constructor(dir: string) {
    this.#dir = dir
    this.#base = dir
  }

  /** Signature of the content: it differs whenever the content may differ, and is '' for no content. */
  async signature(): Promise<string> {
    const target = await this.#generation()
    if (target !== undefined) return target
    const names = await this.#names(this.#dir)
    const stats = await Promise.all(names.map(async (name) => [name, await unlessAbsent(stat(join(this.#dir, name)))] as const))
    return stats.map(([name, seen]) => `${name}:${seen?.mtimeMs ?? ''}:${seen?.size ?? ''}`).join(' ')
  }

  /**
   * Reads all files of one generation, again if the kubelet replaces them meanwhile.
   * @param isNeeded leaves out entries of which it says no. A shard with the bytes of its last reading is not unpacked again, so that the former
   * answers still count. Without it all entries are read, and no former answer counts any more
   * @throws when the folder cannot be read
   */
  async read(isNeeded?: IsNeeded): Promise<KeyringContent> {
    for (;;) {
      const target = await this.#generation()
      this.#base = target === undefined ? this.#dir : join(this.#dir, target)
      const content = await this.#readBase(isNeeded)
      if ((await this.#generation()) === target) return content
    }
  }

  #generation(): Promise<string | undefined> {
    return unlessAbsent(readlink(join(this.#dir, CURRENT)))
  }

  async #readBase(isNeeded: IsNeeded | undefined): Promise<KeyringContent> {
    const problems: string[] = []
    this.#isPartial = false
    const names = await this.#names(this.#base)
    const credentials = new Map<string, string>()
    for (const name of names.filter((entry) => entry.startsWith(UPSTREAM_FILE_PREFIX))) {
      const bytes = await this.#bytes(name, problems)
      const sum = bytes && createHash('sha256').update(bytes).digest('hex')
      if (bytes && sum !== undefined && name === `${UPSTREAM_FILE_PREFIX}${sum}`) credentials.set(sum, bytes.toString('utf8'))
      else if (bytes) problems.push(`keyring file ${name} is damaged; it is left out: see the log of the operator`)
    }
    const within = (folder: string): readonly string[] => names.filter((name) => name.startsWith(`${folder}/`))
    const entries = await this.#shards(this.#keyring, within(KEYRING_FOLDER), problems, isNeeded)
    const models = await this.#shards(this.#models, within(MODELS_FOLDER), problems)
    const accounts = (await this.#shards(this.#accounts, within(ACCOUNTS_FOLDER), problems)) ?? []
    return { entries, models, accounts, credentials, unreadable: this.#keyring.unreadable, isPartial: this.#isPartial, problems }
  }

  async #shards<T>(
    files: ShardFiles<T>,
    names: readonly string[],
    problems: string[],
    isNeeded?: (entry: T) => boolean,
  ): Promise<readonly T[] | undefined> {
    const found: Array<readonly T[]> = []
    for (const name of new Set([...names, ...files.lastGood.keys()])) {
      const bytes = names.includes(name) ? await this.#bytes(name, problems) : undefined
      const values = await files.read(name, bytes, problems, isNeeded)
      if (values) found.push(values)
      await breathe() // unpacking one shard takes milliseconds
    }
    return found.length > 0 ? found.flat() : undefined
  }

  async #bytes(name: string, problems: string[]): Promise<Buffer | undefined> {
    try {
      return await unlessAbsent(readFile(join(this.#base, name)))
    } catch (error) {
      this.#isPartial = true
      problems.push(`keyring file ${name} cannot be read (${codeOf(error)}); check the rights of the mounted volume`)
      return undefined
    }
  }

  async #names(base: string): Promise<readonly string[]> {
    const names = (await unlessAbsent(readdir(base, { recursive: true }))) ?? []
    return names.filter((name) => SHARD_NAME.test(name) || name.startsWith(UPSTREAM_FILE_PREFIX)).toSorted()
  }
}

/** Reads a file or link. Absence is normal: every source of the volume is optional, and the kubelet removes the former generation. */
async function unlessAbsent<T>(pending: Promise<T>): Promise<T | undefined> {
  try {
    return await pending
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EINVAL'].includes(codeOf(error))) return undefined // EINVAL: `..data` is not a link
    throw error
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown'
}

/** Number of entries that are parsed before requests get their turn. */
const PARSED_AT_ONCE = 100

interface ShardEntryFormat<T> {
  /** @throws UnknownVersion for an entry of another version; any other error means damage */
  read(text: string): T
  /** Reads an entry whose needs this version does not support, in order to refuse its calls. @returns undefined if the entry cannot be read */
  refused(text: string): T | undefined
  idOf(value: T): string
  /** Reads the id of a text of any version. */
  idIn(text: string): string | undefined
}

interface Parsed<T> {
  readonly values: readonly T[]
  /** Ids of entries of another version. */
  readonly foreign: readonly string[]
  /** Entries of another version that need features which this version lacks, by id. */
  readonly refused: ReadonlyMap<string, T>
}

/** Shard files of one kind with their last good content: a file that is absent, damaged or of another version removes nothing. */
class ShardFiles<T> {
  readonly #format: ShardEntryFormat<T>
  /** By file: gzipped, which is far smaller. */
  readonly lastGood = new Map<string, Buffer>()
  /** Last good values of entries that are now of another version, by id. */
  readonly #kept = new Map<string, T>()
  readonly #foreign = new Map<string, number>()
  /** Needed values of the last good content, by file: those of 100,000 keys would take too much memory. */
  readonly #needed = new Map<string, readonly T[]>()

  constructor(format: ShardEntryFormat<T>) {
    this.#format = format
  }

  get unreadable(): number {
    return [...this.#foreign.values()].reduce((sum, count) => sum + count, 0)
  }

  /**
   * Reads a file.
   * @param bytes undefined if the file is absent
   * @param problems receives one sentence per problem: file, error, remedy
   * @param isNeeded of a value; undefined: all are
   * @returns undefined if the file never had good content
   */
  async read(
    name: string,
    bytes: Buffer | undefined,
    problems: string[],
    isNeeded?: (value: T) => boolean,
  ): Promise<readonly T[] | undefined> {
    const former = this.lastGood.get(name)
    const needed = isNeeded && this.#neededOf(name, bytes)
    if (needed) return needed
    this.#needed.delete(name)
    try {
      if (bytes) return await this.#take(name, bytes, problems, isNeeded)
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

  /** The needed values of a file that has the bytes of its last good content still. @returns undefined if they are not known */
  #neededOf(name: string, bytes: Buffer | undefined): readonly T[] | undefined {
    return bytes && this.lastGood.get(name)?.equals(bytes) ? this.#needed.get(name) : undefined
  }

  async #take(name: string, bytes: Buffer, problems: string[], isNeeded?: (value: T) => boolean): Promise<readonly T[]> {
    const { values, foreign, refused } = await this.#parse(bytes)
    this.#foreign.set(name, foreign.length)
    if (foreign.length > 0) {
      await this.#keep(name, foreign)
      problems.push(
        `${foreign.length} entries of keyring file ${name} were written by another version of the operator; their last good state stays in use, or their calls are refused: update the gateway`,
      )
    }
    for (const value of values) this.#kept.delete(this.#format.idOf(value))
    this.lastGood.set(name, bytes)
    if (isNeeded && foreign.length === 0) {
      const needed = values.filter(isNeeded)
      this.#needed.set(name, needed)
      return needed
    }
    return [...values, ...foreign.flatMap((id) => refused.get(id) ?? this.#kept.get(id) ?? [])]
  }

  /** Keeps the last good values of entries that cannot be read any more. */
  async #keep(name: string, foreign: readonly string[]): Promise<void> {
    const former = this.lastGood.get(name)
    if (!former || foreign.every((id) => this.#kept.has(id))) return
    for (const value of (await this.#parse(former)).values) {
      const id = this.#format.idOf(value)
      if (foreign.includes(id)) this.#kept.set(id, value)
    }
  }

  async #parse(bytes: Buffer): Promise<Parsed<T>> {
    const values: T[] = []
    const refused = new Map<string, T>()
    const foreign: string[] = []
    for (const [index, text] of (await unpackShard(bytes)).entries()) {
      if (index % PARSED_AT_ONCE === PARSED_AT_ONCE - 1) await breathe()
      try {
        values.push(this.#format.read(text))
      } catch (error) {
        if (!(error instanceof UnknownVersion)) throw error // half of a shard would miss revocations
        const id = this.#format.idIn(text) ?? ''
        const value = hasUnmetNeeds(text) ? this.#format.refused(text) : undefined
        foreign.push(id)
        if (value !== undefined) refused.set(id, value)
      }
    }
    return { values, foreign, refused }
  }
}
