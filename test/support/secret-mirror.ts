/** Does what a kubelet does for the gateway pods: keeps a folder equal to the Secrets that gateways mount. */
import { ACCOUNTS_FOLDER, KEYRING_FOLDER, MODELS_FOLDER, RECORDS_KEY, UPSTREAM_FILE_PREFIX } from '#contract/records/mounted-folder.ts'
import { KeyringFolder } from './keyring-folder.ts'
import { objectPath, type KubeAdmin } from './kube-admin.ts'
import { waitFor } from './wait-for.ts'

const SHARD_SECRET = /^hg-(keyring|models|accounts|upstream)-(\d+-\d+)$/

/** Changes within this time are one new state; a kubelet takes a minute, ms. */
const EVERY_MS = 20

export class SecretMirror {
  readonly #mounted: KeyringFolder
  readonly #files = new Map<string, Map<string, Buffer>>()
  readonly #abort = new AbortController()
  #paused = false
  #dirty = false

  /** @param folder becomes KEYRING_DIR of the gateways */
  constructor(folder: string) {
    this.#mounted = new KeyringFolder(folder)
    this.#publish()
  }

  get folder(): string {
    return this.#mounted.path
  }

  follow(kube: KubeAdmin, namespace: string): void {
    void kube.watch(objectPath('v1', 'Secret', namespace), this.#abort.signal, ({ type, object }) => {
      const { name } = object.metadata
      const data = (object.data ?? {}) as Record<string, string>
      if (type === 'DELETED') this.#files.delete(name)
      else this.#files.set(name, filesOf(name, data))
      this.#changed()
    })
  }

  /** A kubelet may be a minute behind: between pause and resume the folder stays as it is. */
  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#publishIfDue()
  }

  /** Resolves when `holds` accepts the observed files, and the folder has them unless the mirror is paused. */
  async until(what: string, holds: (files: ReadonlyMap<string, Buffer>) => boolean): Promise<void> {
    await waitFor(what, () => holds(this.files()) && (this.#paused || !this.#dirty))
  }

  /** Path below the folder → bytes. */
  files(): ReadonlyMap<string, Buffer> {
    return new Map([...this.#files.values()].flatMap((files) => [...files]))
  }

  stop(): void {
    this.#abort.abort()
  }

  #changed(): void {
    if (!this.#dirty) setTimeout(() => this.#publishIfDue(), EVERY_MS).unref()
    this.#dirty = true
  }

  #publishIfDue(): void {
    if (this.#dirty && !this.#paused && !this.#abort.signal.aborted) this.#publish()
  }

  #publish(): void {
    this.#dirty = false
    this.#mounted.publish(Object.fromEntries(this.files()))
  }
}

const FOLDERS: Readonly<Record<string, string>> = { keyring: KEYRING_FOLDER, models: MODELS_FOLDER, accounts: ACCOUNTS_FOLDER }

function filesOf(secret: string, data: Readonly<Record<string, string>>): Map<string, Buffer> {
  const [, set, shard = ''] = SHARD_SECRET.exec(secret) ?? []
  const bytes = (key: string) => Buffer.from(data[key] ?? '', 'base64')
  if (set === undefined) return new Map()
  if (set !== 'upstream') return RECORDS_KEY in data ? new Map([[`${FOLDERS[set]}/${shard}`, bytes(RECORDS_KEY)]]) : new Map()
  const names = Object.keys(data).filter((key) => key.startsWith(UPSTREAM_FILE_PREFIX))
  return new Map(names.map((key) => [key, bytes(key)]))
}
