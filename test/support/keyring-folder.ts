/** A mounted folder as a kubelet keeps it: every change is a new folder behind the link `..data`, so that a reader sees the old state or the new one whole. */
import { mkdtempSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** One such folder; the caller removes it. */
export class KeyringFolder {
  readonly path: string
  /** The links beside `..data` that a pod sees, one for each first step of a path. */
  #linked: ReadonlySet<string> = new Set()
  #generation = 0

  constructor(path = mkdtempSync(join(tmpdir(), 'headgate-keyring-'))) {
    this.path = path
    mkdirSync(path, { recursive: true })
  }

  /**
   * Replaces the whole content in the kubelet's order: write the new folder, swap the link in one rename, then add and remove the links of
   * names, then delete the old folder. @param files path below the folder → bytes
   */
  publish(files: Readonly<Record<string, Uint8Array | string>>): void {
    const now = `..data-${++this.#generation}`
    mkdirSync(join(this.path, now))
    for (const [name, bytes] of Object.entries(files)) {
      mkdirSync(dirname(join(this.path, now, name)), { recursive: true })
      writeFileSync(join(this.path, now, name), bytes, { mode: 0o440 })
    }
    symlinkSync(now, join(this.path, '..data_tmp'))
    renameSync(join(this.path, '..data_tmp'), join(this.path, '..data'))
    const names = new Set(Object.keys(files).map((name) => name.split('/', 1)[0] ?? name))
    for (const name of [...names].filter((one) => !this.#linked.has(one))) symlinkSync(join('..data', name), join(this.path, name))
    for (const name of [...this.#linked].filter((one) => !names.has(one))) rmSync(join(this.path, name))
    this.#linked = names
    rmSync(join(this.path, `..data-${this.#generation - 1}`), { recursive: true, force: true })
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}
