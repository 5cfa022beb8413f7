/**
 * The folder `.headgate/`, in place of etcd. Only this user may read it (0700).
 *
 * ```
 * state.db                               objects, the spend of budgets, and the last run
 * secrets/<namespace>/<name>/<DATAKEY>   one file per entry of an issued Secret (0600), with its plain bytes
 * lock.db                                carries the lock of the program that uses the folder
 * ```
 * SQLite makes each change atomic, so a crash at any moment leaves the old or the new state. A power cut may lose the last seconds, because
 * writes are not synced to the disk. Unreadable state ends the start: a missing Secret would be taken for a deleted one.
 */
import { messageOf } from '#platform/message-of.ts'
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Misconfigured } from '#platform/lifecycle.ts'
import type { ApiKind } from '#api/kind.ts'
import { API_KINDS } from '#api/kinds.ts'
import { type KubeObject, type ObjectRef, refOf, type Resource } from '#kube/port.ts'
import { namespaces, secrets, type Secret } from '#kube/resources.ts'
import type { StoreChange, StoredObject } from './object-store.ts'

/** Folder of the state of `make run`, below the folder where it was started. Relative, because its path is printed. */
export const STATE_FOLDER = '.headgate'

/** The last run, for `make status`. */
export interface RunRecord {
  readonly pid: number
  readonly baseURL: string
  /** Where the usage of accounts is served. */
  readonly usageURL: string
  readonly manifests: string
  /** ms since 1970. */
  readonly startedMs: number
  /** Absent during the run and after a crash. */
  readonly endedMs?: number
}

/** Spend of budgets. */
export interface SavedSpend {
  /** ms since 1970. */
  readonly savedMs: number
  /** Whether the program ended in order after this write, so that no spend is missing. */
  readonly isFinal: boolean
  /** By uid of the ApiKey, then by field of the ledger: micro-units or tokens. */
  readonly spent: Readonly<Record<string, Readonly<Record<string, number>>>>
}

/** Values that are replaced as a whole, by name. `holder` is the process id of the program that uses the folder, for messages. */
interface Facts {
  readonly holder: number
  readonly run: RunRecord
  readonly spend: SavedSpend
}

const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
const DATA_KEY = /^(?!\.\.)(?!\.$)[-._a-zA-Z0-9]{1,253}$/
const SCHEMA_VERSION = 1
const SCHEMA = `
  CREATE TABLE objects (plural TEXT, namespace TEXT, name TEXT, object TEXT NOT NULL, PRIMARY KEY (plural, namespace, name)) STRICT;
  CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
  PRAGMA user_version = ${SCHEMA_VERSION};`
const SQLITE_BUSY = 5

/** Reads and writes `.headgate/`. Synchronous on purpose: a change is stored before it is visible. */
export class StateFolder {
  readonly #root: string
  /** Kinds that survive a restart. Events and kinds without manifests are only in memory. */
  readonly #kept: readonly Resource[]
  readonly #hasFiles: (resource: Resource, ref: ObjectRef) => boolean
  /** Holds the lock while it is open. */
  readonly #lock: DatabaseSync
  readonly #database: DatabaseSync

  /**
   * Opens the folder for this process alone.
   * @param kinds Headgate's own kinds, all of which survive a restart
   * @param isInternal Secrets whose entries are in the database and not in files
   * @throws Misconfigured if another process has the folder, or its state cannot be read or written
   */
  constructor(root: string, kinds: readonly ApiKind[] = API_KINDS, isInternal: (secret: ObjectRef) => boolean = () => false) {
    this.#root = root
    this.#kept = [namespaces, secrets, ...kinds.map(({ resource }) => resource)]
    this.#hasFiles = ({ plural }, ref) => plural === secrets.plural && !isInternal(ref)
    this.#lock = lockFolder(root)
    try {
      this.#database = openDatabase(root)
    } catch (error) {
      this.#lock.close()
      throw unreadable(databaseOf(root), error)
    }
    this.setFact('holder', process.pid)
  }

  /** Folder of the entries of a Secret. */
  secretFolder({ namespace, name }: ObjectRef): string {
    return join(secretsOf(this.#root), checked(namespace, NAME), checked(name, NAME))
  }

  /** Path of one entry of a Secret, for messages: relative if the root is. */
  entryPath(ref: ObjectRef, dataKey: string): string {
    return join(this.secretFolder(ref), checked(dataKey, DATA_KEY))
  }

  /** Everything stored. @throws Misconfigured if a part cannot be read, because a guess about keys would be unsafe */
  load(): readonly StoredObject[] {
    let stored: readonly StoredObject[]
    try {
      stored = readObjects(this.#database, this.#kept)
    } catch (error) {
      throw unreadable(databaseOf(this.#root), error)
    }
    return stored.flatMap(({ resource, object }) => {
      const found = this.#hasFiles(resource, refOf(object)) ? this.#withEntries(object) : object
      return found === undefined ? [] : [{ resource, object: found }]
    })
  }

  /** Writes one change of the ObjectStore. @throws an error if it cannot be stored, RangeError for an invalid file name */
  persist({ resource, ref, before, after }: StoreChange): void {
    if (!this.#kept.some(({ plural }) => plural === resource.plural)) return
    const hasFiles = this.#hasFiles(resource, ref)
    const place = [resource.plural, ref.namespace, ref.name]
    if (after === undefined) {
      if (hasFiles) rmSync(this.secretFolder(ref), { recursive: true, force: true }) // before the row: an entry without a Secret would stay for ever
      this.#database.prepare('DELETE FROM objects WHERE plural = ? AND namespace = ? AND name = ?').run(...place)
      return
    }
    if (hasFiles) this.#writeEntries(ref, before, after)
    const stored = hasFiles ? withoutValues(after) : after
    this.#database.prepare('INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)').run(...place, JSON.stringify(stored))
  }

  /** @returns undefined for a value that was never set */
  fact<Name extends keyof Facts>(name: Name): Facts[Name] | undefined {
    return readFact(this.#database, name)
  }

  setFact<Name extends keyof Facts>(name: Name, value: Facts[Name]): void {
    this.#database.prepare('INSERT OR REPLACE INTO facts VALUES (?, ?)').run(name, JSON.stringify(value))
  }

  /** Lets another process use the folder. */
  close(): void {
    this.#database.close()
    this.#lock.close()
  }

  /** Adds the values of the entries. @returns undefined if a person has removed them: the Secret counts as deleted */
  #withEntries(secret: Secret): Secret | undefined {
    const keys = Object.keys(secret.data ?? {})
    const data = keys.flatMap((key) => {
      const value = readEntry(this.entryPath(refOf(secret), key))
      return value === undefined ? [] : [[key, value] as const]
    })
    return data.length === 0 && keys.length > 0 ? undefined : { ...secret, data: Object.fromEntries(data) }
  }

  #writeEntries(ref: ObjectRef, before: Secret | undefined, { data = {} }: Secret): void {
    const folder = this.secretFolder(ref)
    const files = Object.entries(data).map(([key, value]) => [this.entryPath(ref, key), value, before?.data?.[key] !== value] as const)
    if (before === undefined) rmSync(folder, { recursive: true, force: true }) // a person may have put files there
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    for (const [file, value, isNew] of files) if (isNew) replaceFile(file, Buffer.from(value, 'base64'))
    for (const key of Object.keys(before?.data ?? {})) if (!(key in data)) rmSync(this.entryPath(ref, key), { force: true })
  }
}

/**
 * The objects of Headgate's kinds and the last run, also while `make run` runs. Changes nothing.
 * @returns undefined without a state
 * @throws Misconfigured for a state that cannot be read
 */
export function readStoredStatus(root: string): { objects: readonly StoredObject[]; run: RunRecord | undefined } | undefined {
  const path = databaseOf(root)
  try {
    using database = new DatabaseSync(path, { readOnly: true })
    const resources = API_KINDS.map(({ resource }) => resource)
    return { objects: readObjects(database, resources), run: readFact(database, 'run') }
  } catch (error) {
    if (isAbsent(path)) return undefined
    throw new Misconfigured(`${path}: ${messageOf(error)}; run \`make status\` as the user who ran \`make run\``, { cause: error })
  }
}

/** SQLite takes a lock of the file system, which the kernel frees however the process ends. It also works between containers. */
function lockFolder(root: string): DatabaseSync {
  let lock: DatabaseSync | undefined
  try {
    mkdirSync(root, { recursive: true, mode: 0o700 })
    assertOwn(root)
    chmodSync(root, 0o700) // an existing folder may be open to others
    for (const name of readdirSync(root)) assertOwn(join(root, name))
    if (lstatSync(secretsOf(root), { throwIfNoEntry: false })?.isDirectory())
      for (const path of readdirSync(secretsOf(root), { recursive: true, encoding: 'utf8' })) assertOwn(join(secretsOf(root), path))
    lock = new DatabaseSync(join(root, 'lock.db'), { timeout: 0 })
    lock.exec('BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock?.close()
    const remedy = 'stop that one, or start in another folder'
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY)
      throw new Misconfigured(`${root} is in use by another Headgate${holderOf(root)}; ${remedy}`, { cause: error })
    const reason = `cannot be used (${messageOf(error)}); make the folder writable for this user, or start in another folder`
    throw new Misconfigured(`${root}: ${reason}`, { cause: error })
  }
}

/** Refuses what another user has prepared: a link would lead writes of this user, who may be root, to any file. */
function assertOwn(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false }) // another process may remove a file of SQLite meanwhile
  if (found === undefined) return
  if (found.isSymbolicLink()) throw new Error(`${path} is a link; remove it`)
  if (process.getuid !== undefined && found.uid !== process.getuid())
    throw new Error(`${path} belongs to another user; run as that user, or remove it`)
}

function holderOf(root: string): string {
  try {
    using database = new DatabaseSync(databaseOf(root), { readOnly: true })
    const pid = readFact(database, 'holder')
    return pid === undefined ? '' : ` (process ${pid})`
  } catch {
    return '' // the holder has the lock and has not written its id yet
  }
}

/** @throws the error of SQLite, or an error about the content */
function openDatabase(root: string): DatabaseSync {
  const path = databaseOf(root)
  const database = new DatabaseSync(path)
  try {
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
    chmodSync(path, 0o600)
    const { user_version: version } = database.prepare('PRAGMA user_version').get() ?? {}
    if (version === 0) createTables(database, root)
    else if (version !== SCHEMA_VERSION) throw new Error(`it was written by another version of Headgate, as version ${String(version)}`)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** An empty database beside keys is a lost one: all keys would be issued again. */
function createTables(database: DatabaseSync, root: string): void {
  const folder = secretsOf(root)
  if (!isAbsent(folder) && readdirSync(folder).length > 0) throw new Error(`it is empty, and ${folder} has keys`)
  database.exec(`BEGIN; ${SCHEMA} COMMIT`)
}

function readObjects(database: DatabaseSync, kept: readonly Resource[]): readonly StoredObject[] {
  return kept.flatMap((resource) => {
    const rows = database.prepare('SELECT object FROM objects WHERE plural = ?').all(resource.plural)
    return rows.map(({ object }) => ({ resource, object: JSON.parse(String(object)) as KubeObject })) // written by persist
  })
}

function readFact<Name extends keyof Facts>(database: DatabaseSync, name: Name): Facts[Name] | undefined {
  const row = database.prepare('SELECT value FROM facts WHERE name = ?').get(name)
  return row && (JSON.parse(String(row['value'])) as Facts[Name]) // written by setFact
}

/** @returns base64; undefined without such a file */
function readEntry(file: string): string | undefined {
  try {
    return readFileSync(file, 'base64')
  } catch (error) {
    if (isAbsent(file)) return undefined
    throw unreadable(file, error)
  }
}

function unreadable(path: string, error: unknown): Misconfigured {
  const remedy =
    'make it readable and writable for this user, or restore it from a copy; to start again with new keys, remove the whole folder'
  return new Misconfigured(`${path}: cannot be used (${messageOf(error)}); ${remedy}; nothing was changed or deleted`, { cause: error })
}

/** Only a path that certainly does not exist is absent: one below a file, or one that this user may not see, is not. */
function isAbsent(path: string): boolean {
  try {
    statSync(path)
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT'
  }
}

/** @returns the Secret with the keys of its entries alone */
function withoutValues(secret: Secret): Secret {
  return { ...secret, data: Object.fromEntries(Object.keys(secret.data ?? {}).map((key) => [key, ''])) }
}

function replaceFile(file: string, content: Uint8Array): void {
  const temporary = join(file, '..', '..tmp') // no data key begins with two dots
  rmSync(temporary, { force: true }) // of a process that ended in between
  writeFileSync(temporary, content, { mode: 0o600, flag: 'wx' })
  renameSync(temporary, file)
}

function secretsOf(root: string): string {
  return join(root, 'secrets')
}

function databaseOf(root: string): string {
  return join(root, 'state.db')
}

/** Checks a part of a path from an object's name, so that no name leaves the folder. */
function checked(part: string, pattern: RegExp): string {
  if (!pattern.test(part)) throw new RangeError(`${JSON.stringify(part)} is not a valid name`)
  return part
}
