/** Reads what `make run` keeps in its folder `.headgate/`, below the folder where it was started. Changes nothing. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { Unusable } from '../command-line.ts'

export const STATE_FOLDER = '.headgate'

/** The state of `make run`. Every method throws Unusable for a state that is missing or cannot be read. */
export interface LocalState {
  /** Where the usage of accounts is served. @throws Unusable if `make run` has ended too */
  usageURL(): Promise<string>
  /** The folder of manifests that it reads, also after its end. */
  manifests(): Promise<string>
  /** An object without a namespace, also after `make run` has ended; undefined: there is none of this name. */
  object(plural: string, name: string): Promise<unknown>
}

const run = z.object({ usageURL: z.string(), manifests: z.string(), endedMs: z.number().optional() })

export class StateFile implements LocalState {
  readonly #path: string

  /** @param folder usually `.headgate` */
  constructor(folder: string = STATE_FOLDER) {
    this.#path = join(folder, 'state.db')
  }

  async usageURL(): Promise<string> {
    const found = await this.#run()
    if (found !== undefined && found.endedMs === undefined) return found.usageURL
    throw new Unusable('`make run` is not running in this folder; start it, or use --url')
  }

  async manifests(): Promise<string> {
    const found = await this.#run()
    if (found !== undefined) return found.manifests
    throw new Unusable('`make run` has not been started in this folder; start it')
  }

  async object(plural: string, name: string): Promise<unknown> {
    return await this.#read("SELECT object AS text FROM objects WHERE plural = ? AND namespace = '' AND name = ?", plural, name)
  }

  /** The last run; undefined if there is none, or another version wrote it. */
  async #run(): Promise<z.output<typeof run> | undefined> {
    return run.safeParse(await this.#read('SELECT value AS text FROM facts WHERE name = ?', 'run')).data
  }

  /** The JSON of the first row; undefined without one. */
  async #read(sql: string, ...values: readonly string[]): Promise<unknown> {
    if (!existsSync(this.#path)) throw new Unusable(`${this.#path} is missing; use --local in the folder where \`make run\` was started`)
    try {
      const { DatabaseSync } = await import('node:sqlite') // not needed in a cluster, and an older Node warns of it
      using database = new DatabaseSync(this.#path, { readOnly: true })
      const row = database.prepare(sql).get(...values)
      return row === undefined ? undefined : JSON.parse(String(row['text']))
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      throw new Unusable(`${this.#path} cannot be read (${why}); use --local as the user who ran \`make run\``)
    }
  }
}
