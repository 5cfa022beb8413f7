/** The files of a test run, which are searched at its end for what may stand in none of them. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'

/** File with the issued values of the run. */
export const VALUES_FILE = 'issued-values'
/** File with the balances of the run. */
export const BALANCES_FILE = 'noted-balances'
/** Folder of the contents of Redis and of the operator's Secrets: hashes and balances may be there. No file may hold the values themselves. */
export const HASHES_ALLOWED = 'hashes-allowed'
/** etcd holds the user Secrets themselves; pki and dist are older than every value; an audit log is large, and read by a test of its own. */
const NOT_SEARCHED = new Set(['etcd', 'pki', 'dist', 'audit', VALUES_FILE, BALANCES_FILE])

/** Regular files only: a link points to a file that is found anyway, or out of the folder. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (NOT_SEARCHED.has(entry.name)) return []
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return filesBelow(path)
    return entry.isFile() ? [path] : []
  })
}

/** The content of a file, unpacked. */
export function textOf(bytes: Buffer): string {
  return (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString()
}
