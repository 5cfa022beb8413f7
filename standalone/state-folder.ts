/**
 * The folder `.headgate/`, in place of etcd. Only this user may read it (0700, files 0600).
 *
 * ```
 * objects/<plural>/<namespace>/<name>.json      whole objects; the namespace folder of cluster-scoped ones is "-"
 * secrets/<namespace>/<name>/<DATAKEY>          one file per entry of a Secret, with its plain bytes
 * secrets/<namespace>/<name>/..object.json      the rest of the Secret
 * spend.json                                    spend of budgets
 * run.json                                      address of the last `make run`
 * lock.sqlite, lock                             the lock of the program that uses the folder, and its process id
 * ```
 * Only its entry file holds the value of a Secret. Every file is replaced by rename, and a new Secret appears with all its entries at once:
 * a crash at any moment leaves the old or the new state. Writes are not synced to the disk; a power cut may lose the last seconds.
 * An unreadable file does not count as absent but ends the start, since a missing Secret would be taken for a deleted one.
 */
import { randomBytes } from 'node:crypto'
import { accessSync, chmodSync, constants, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Misconfigured } from '#platform/lifecycle.ts'
import type { KubeObject, ObjectRef, Resource } from '#kube/port.ts'
import type { ApiKind } from '#api/kind.ts'
import { API_KINDS } from '#api/kinds.ts'
import { leases, namespaces, secrets, type Secret } from '#kube/resources.ts'
import { fileSystemError } from './folder-scan.ts'
import { type FolderLock, lockFolder } from './folder-lock.ts'
import type { StoreChange, StoredObject } from './object-store.ts'

/** Folder of the state of `make run`, below the folder where it was started. */
export const STATE_FOLDER = '.headgate'

const OBJECT_FILE = '..object.json' // no data key of a Secret begins with two dots
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
const DATA_KEY = /^(?!\.\.)(?!\.$)[-._a-zA-Z0-9]{1,253}$/
const TEMPORARY = '.tmp-'

/** Reads and writes `.headgate/`. Synchronous on purpose: a write returns when its file is replaced, and objects are few and small. */
export class StateFolder {
  readonly #root: string
  /** Kinds that survive a restart, beside Secrets. Events and kinds without manifests are only in memory. */
  readonly #kept: readonly Resource[]
  readonly #lock: FolderLock

  /**
   * Opens the folder for this process alone.
   * @param kinds Headgate's own kinds, all of which survive a restart
   * @throws Misconfigured if another process has the folder, or it cannot be written
   */
  constructor(root: string, kinds: readonly ApiKind[] = API_KINDS) {
    this.#root = root
    this.#kept = [namespaces, ...kinds.map(({ resource }) => resource), leases]
    try {
      privateFolder(root)
      chmodSync(root, 0o700) // an existing folder may be open to others
      this.#lock = lockFolder(root)
    } catch (error) {
      if (error instanceof Misconfigured) throw error
      throw new Misconfigured(
        `${root}: cannot be used (${messageOf(error)}); make the folder writable for this user, or start in another folder`,
        {
          cause: error,
        },
      )
    }
  }

  /** Folder of the entries of a Secret. */
  secretFolder(ref: ObjectRef): string {
    return join(this.#root, 'secrets', checked(ref.namespace, NAME), checked(ref.name, NAME))
  }

  /** Path of one entry of a Secret, for messages: relative if the root is. */
  entryPath(ref: ObjectRef, dataKey: string): string {
    return join(this.secretFolder(ref), checked(dataKey, DATA_KEY))
  }

  /** Everything stored. @throws Misconfigured if a file cannot be read, because a guess about keys would be unsafe */
  load(): readonly StoredObject[] {
    const root = join(this.#root, 'objects')
    const present = entries(root)
    const objects = this.#kept.flatMap((resource) => {
      const files = present.includes(resource.plural) ? walk(join(root, resource.plural)).filter((file) => file.endsWith('.json')) : []
      return files.map((file) => ({ resource, object: readObject(file) }))
    })
    return [...objects, ...this.#loadSecrets()]
  }

  /** Writes one change of the ObjectStore. @throws the error of the file system, or RangeError for an invalid file name */
  persist({ resource, ref, before, after }: StoreChange): void {
    if (resource.plural === secrets.plural) return this.#persistSecret(ref, before, after)
    if (!this.#kept.some((kept) => kept.plural === resource.plural)) return
    const folder = join(this.#root, 'objects', resource.plural, ref.namespace === '' ? '-' : checked(ref.namespace, NAME))
    const file = join(folder, `${checked(ref.name, NAME)}.json`)
    if (after === undefined) return rmSync(file, { force: true })
    privateFolder(folder)
    replaceFile(file, JSON.stringify(after))
  }

  /** A text file in the folder that is replaced as a whole. */
  textFile(name: string): { readonly path: string; read(): string | undefined; write(text: string): void } {
    const path = join(this.#root, checked(name, NAME))
    return {
      path,
      read: () => readIfPresent(path),
      write: (text) => replaceFile(path, text),
    }
  }

  /** Lets another process use the folder. */
  close(): void {
    this.#lock.release()
  }

  #persistSecret(ref: ObjectRef, before: Secret | undefined, after: Secret | undefined): void {
    const folder = this.secretFolder(ref)
    if (after === undefined) return removeFolder(folder)
    for (const key of Object.keys(after.data ?? {})) checked(key, DATA_KEY)
    if (before !== undefined) return writeSecret(folder, before.data ?? {}, after)
    const whole = temporaryBeside(folder)
    writeSecret(whole, {}, after)
    removeFolder(folder) // a person may have put files there
    renameSync(whole, folder)
  }

  #loadSecrets(): readonly StoredObject[] {
    const root = join(this.#root, 'secrets')
    const folders = entries(root).flatMap((namespace) => entries(join(root, namespace)).map((name) => join(root, namespace, name)))
    return folders.flatMap((folder) => {
      const names = namesIn(folder)
      if (!names.includes(OBJECT_FILE)) return [] // removed in part, or foreign
      const files = names.filter((name) => DATA_KEY.test(name) && !name.startsWith(TEMPORARY))
      const data = Object.fromEntries(files.map((name) => [name, readEntry(join(folder, name)).toString('base64')]))
      const object: Secret = { ...readObject(join(folder, OBJECT_FILE)), data }
      return [{ resource: secrets, object }]
    })
  }
}

/** Writes the differences to the present entries. @param present data in the folder */
function writeSecret(folder: string, present: NonNullable<Secret['data']>, { data = {}, ...rest }: Secret): void {
  privateFolder(folder)
  for (const [key, value] of Object.entries(data)) {
    if (present[key] !== value) replaceFile(join(folder, key), Buffer.from(value, 'base64'))
  }
  for (const key of Object.keys(present)) if (!(key in data)) rmSync(join(folder, key), { force: true })
  replaceFile(join(folder, OBJECT_FILE), JSON.stringify(rest))
}

function readObject(file: string): KubeObject {
  const text = readEntry(file).toString('utf8')
  try {
    return JSON.parse(text) as KubeObject // written by persist
  } catch (error) {
    throw new Misconfigured(`${file}: is damaged; restore the file, or delete it if its object may be created again`, { cause: error })
  }
}

function readEntry(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    throw unreadable(file, error)
  }
}

function readIfPresent(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw unreadable(file, error)
  }
}

/** Names in a folder; [] without a folder. @throws Misconfigured for a folder that this user may not read and change */
function namesIn(folder: string): readonly string[] {
  try {
    const names = readdirSync(folder)
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    return names
  } catch (error) {
    if (isAbsent(error)) return []
    throw unreadable(folder, error)
  }
}

function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

function unreadable(path: string, error: unknown): Misconfigured {
  const isDenied = error instanceof Error && 'code' in error && ['EACCES', 'EPERM', 'EROFS'].includes(String(error.code))
  const reason = isDenied ? 'may not be read and changed by this user' : fileSystemError(error)[0]
  const remedy = `give this user all rights on ${path} (chown, chmod u+rwX), or start in another folder; nothing was changed or deleted`
  return new Misconfigured(`${path}: ${reason}; ${remedy}`, { cause: error })
}

function replaceFile(file: string, content: string | Uint8Array): void {
  const temporary = temporaryBeside(file)
  writeFileSync(temporary, content, { mode: 0o600 })
  renameSync(temporary, file)
}

function removeFolder(folder: string): void {
  const temporary = temporaryBeside(folder)
  try {
    renameSync(folder, temporary) // deleted at once, not entry by entry
  } catch (error) {
    if (isAbsent(error)) return
    throw error
  }
  rmSync(temporary, { recursive: true, force: true })
}

function privateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
}

function temporaryBeside(path: string): string {
  return join(path, '..', `${TEMPORARY}${randomBytes(6).toString('hex')}`)
}

function walk(folder: string): readonly string[] {
  return entries(folder).flatMap((space) => entries(join(folder, space)).map((name) => join(folder, space, name)))
}

/** Visible entries. Removes leftovers of a crash. */
function entries(folder: string): readonly string[] {
  return namesIn(folder).filter((name) => {
    if (name.startsWith(TEMPORARY)) rmSync(join(folder, name), { recursive: true, force: true })
    return !name.startsWith('.')
  })
}

/** Checks a part of a path from an object's name, so that no name leaves the folder. */
function checked(part: string, pattern: RegExp): string {
  if (!pattern.test(part)) throw new RangeError(`${JSON.stringify(part)} is not a valid name`)
  return part
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
