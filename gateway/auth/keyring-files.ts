/** Reads the mounted folder: keyring shards, model records and upstream tokens, as the kubelet lays them down. */
import { createHash } from 'node:crypto'
import { readdir, readFile, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  decodeKeyringShard,
  decodeModelsFile,
  KEYRING_FOLDER,
  MODELS_FILE,
  UPSTREAM_FILE_PREFIX,
  type KeyringLine,
} from '../shared/keyring-line.ts'

/** Everything that the folder says at one moment. */
export interface KeyringContent {
  /** Lines of every shard that could be read, now or before; undefined when there never was one. */
  readonly lines: readonly KeyringLine[] | undefined
  /** Encoded ModelRecords; undefined without a readable file. */
  readonly models: readonly string[] | undefined
  /** By file name. */
  readonly tokens: ReadonlyMap<string, UpstreamToken>
  /** One line per damaged file: its name, what is wrong, the cure. */
  readonly faults: readonly string[]
}

/** A token for a model server. Never log it. */
export interface UpstreamToken {
  readonly token: string
  /** SHA-256, hex, of the bytes of the file. */
  readonly sum: string
}

const CURRENT = '..data' // the kubelet swaps this link, so that all files change at once
const SHARD_NAME = /^\d+-\d+$/

/**
 * The folder of the cold start. Files that are absent or damaged take nothing away: the last good bytes of a shard stay in use.
 */
export class KeyringFiles {
  readonly #dir: string
  readonly #lastGood = new Map<string, Buffer>() // gzipped: far smaller than what they unpack to
  #base: string

  /** @param dir where the projected volume is mounted; it need not exist yet */
  constructor(dir: string) {
    this.#dir = dir
    this.#base = dir
  }

  /** Text that differs whenever the content may differ; '' when there is nothing. */
  async signature(): Promise<string> {
    const target = await this.#generation()
    if (target !== undefined) return target
    const names = await this.#names(this.#dir)
    const stats = await Promise.all(names.map(async (name) => [name, await unlessAbsent(stat(join(this.#dir, name)))] as const))
    return stats.map(([name, seen]) => `${name}:${seen?.mtimeMs ?? ''}:${seen?.size ?? ''}`).join(' ')
  }

  /**
   * Reads and unpacks everything, giving way to requests between files. All of it is of one generation: when a swap takes the files
   * away meanwhile, the next generation is read instead.
   * @throws when the folder cannot be read
   */
  async read(): Promise<KeyringContent> {
    for (;;) {
      const target = await this.#generation()
      this.#base = target === undefined ? this.#dir : join(this.#dir, target)
      const content = await this.#readBase()
      if ((await this.#generation()) === target) return content
    }
  }

  #generation(): Promise<string | undefined> {
    return unlessAbsent(readlink(join(this.#dir, CURRENT)))
  }

  async #readBase(): Promise<KeyringContent> {
    const faults: string[] = []
    const names = await this.#names(this.#base)
    const tokens = new Map<string, UpstreamToken>()
    for (const name of names.filter((entry) => entry.startsWith(UPSTREAM_FILE_PREFIX))) {
      const bytes = await this.#bytes(name, faults)
      if (bytes) tokens.set(name, { token: bytes.toString('utf8').trim(), sum: createHash('sha256').update(bytes).digest('hex') })
    }
    const lines = await this.#lines(names, faults)
    const models = await this.#decode(MODELS_FILE, names.includes(MODELS_FILE), decodeModelsFile, faults)
    return { lines, models, tokens, faults }
  }

  async #lines(names: readonly string[], faults: string[]): Promise<readonly KeyringLine[] | undefined> {
    const shards = new Set(names.filter((name) => name.startsWith(`${KEYRING_FOLDER}/`)))
    const remembered = [...this.#lastGood.keys()].filter((name) => name !== MODELS_FILE)
    const lines: KeyringLine[][] = []
    for (const name of new Set([...shards, ...remembered])) {
      const shard = await this.#decode(name, shards.has(name), decodeKeyringShard, faults)
      if (shard) lines.push([...shard.lines])
      await new Promise((resolve) => setImmediate(resolve)) // unpacking one shard takes milliseconds
    }
    return lines.length > 0 ? lines.flat() : undefined
  }

  /** Decodes what is there, else the last good bytes. */
  async #decode<T>(name: string, isThere: boolean, decode: (bytes: Uint8Array) => T, faults: string[]): Promise<T | undefined> {
    const lastGood = this.#lastGood.get(name)
    const bytes = isThere ? await this.#bytes(name, faults) : undefined
    try {
      const value = bytes && decode(bytes)
      if (bytes) this.#lastGood.set(name, bytes)
      if (value !== undefined) return value
    } catch {
      faults.push(
        `keyring file ${name} is damaged; ${lastGood ? 'its last good content stays in use' : 'it is left out'}: see the events of the operator`,
      )
    }
    return lastGood && decode(lastGood)
  }

  async #bytes(name: string, faults: string[]): Promise<Buffer | undefined> {
    try {
      return await unlessAbsent(readFile(join(this.#base, name)))
    } catch (error) {
      faults.push(`keyring file ${name} cannot be read (${codeOf(error)}); check the rights of the mounted volume`)
      return undefined
    }
  }

  /** Names relative to the folder: shards with their sub-folder, the models file and the tokens. */
  async #names(base: string): Promise<readonly string[]> {
    const top = (await unlessAbsent(readdir(base))) ?? []
    const shards = (await unlessAbsent(readdir(join(base, KEYRING_FOLDER)))) ?? []
    return [
      ...shards.filter((name) => SHARD_NAME.test(name)).map((name) => `${KEYRING_FOLDER}/${name}`),
      ...top.filter((name) => name === MODELS_FILE || name.startsWith(UPSTREAM_FILE_PREFIX)),
    ].toSorted()
  }
}

/** Every source of the volume is optional, and a swap removes the former generation: absent is not a fault. */
async function unlessAbsent<T>(pending: Promise<T>): Promise<T | undefined> {
  try {
    return await pending
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EINVAL'].includes(codeOf(error))) return undefined // EINVAL: `..data` is no link
    throw error
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown'
}
