/** A mounted folder as a kubelet keeps it: every change is a new folder behind the link `..data`. */
import { mkdtempSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** One such folder; the caller removes it. */
export class KeyringFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'headgate-keyring-'))
  #generation = 0

  /** Replaces the whole content in one step. @param files path below the folder → bytes */
  publish(files: Readonly<Record<string, Uint8Array | string>>): void {
    this.#generation += 1
    const now = `..${this.#generation}`
    mkdirSync(join(this.path, now))
    for (const [name, bytes] of Object.entries(files)) {
      mkdirSync(dirname(join(this.path, now, name)), { recursive: true })
      writeFileSync(join(this.path, now, name), bytes)
    }
    symlinkSync(now, join(this.path, '..data_tmp'))
    renameSync(join(this.path, '..data_tmp'), join(this.path, '..data'))
    rmSync(join(this.path, `..${this.#generation - 1}`), { recursive: true, force: true })
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}
