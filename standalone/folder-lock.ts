/**
 * The lock of a state folder. SQLite takes a lock of the file system, which the kernel frees however the process ends, so no code has to
 * compare process ids. The lock also works between containers that share the folder on one machine.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Misconfigured } from '#platform/lifecycle.ts'

/** An empty file that carries the lock. */
const LOCK_FILE = 'lock.sqlite'
/** Process id of the holder, only for the message. */
const HOLDER_FILE = 'lock'
const SQLITE_BUSY = 5

/** Held locks. Without a reference, the garbage collector would close the database and free the lock. */
const held = new Set<DatabaseSync>()

/** A held lock. */
export interface FolderLock {
  release(): void
}

/** @throws Misconfigured while another process has the folder; the error of SQLite if the file cannot be locked */
export function lockFolder(folder: string): FolderLock {
  const database = new DatabaseSync(join(folder, LOCK_FILE), { timeout: 0 })
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (!isBusy(error)) throw error
    throw new Misconfigured(`${folder} is in use by another Headgate${holderOf(folder)}; stop that one, or start in another folder`, {
      cause: error,
    })
  }
  writeFileSync(join(folder, HOLDER_FILE), String(process.pid), { mode: 0o600 })
  held.add(database)
  return {
    release: () => {
      held.delete(database)
      rmSync(join(folder, HOLDER_FILE), { force: true })
      database.close()
    },
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
}

function holderOf(folder: string): string {
  try {
    const process = readFileSync(join(folder, HOLDER_FILE), 'utf8')
    return /^\d{1,10}$/.test(process) ? ` (process ${process})` : ''
  } catch {
    return '' // the holder has the lock and has not written its id yet
  }
}
