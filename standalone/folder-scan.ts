/** Which files of a folder are manifests, and their bytes. Opens regular files only: a pipe would block for ever. */
import { constants, type Dirent, type Stats } from 'node:fs'
import { open, readdir, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { UnreadableFile } from './manifest-text.ts'

const MANIFEST_NAME = /^[^.].*\.(ya?ml|json)$/
/** Names that a person may take for names of manifests. */
const NEARLY_MANIFEST_NAME = /\.(ya?ml|json)(\.txt)?$/i
/** The parser needs seconds for larger files. Kubernetes bounds an object at 1.5 MiB. */
const MAX_FILE_BYTES = 16 * 1024 * 1024
/** Stands for the state of a file that cannot be examined. */
const UNKNOWN_STATE = 'unknown'

/** The content of a folder. */
export interface FolderScan {
  /** Path relative to the folder → a text that changes when the file does. */
  readonly files: ReadonlyMap<string, string>
  /** Skipped files that a person may expect to be read, by path. */
  readonly notes: ReadonlyMap<string, string>
}

/** The manifest files below a folder. Skips hidden files and folders. @throws the error of the file system */
export async function scanFolder(root: string): Promise<FolderScan> {
  const files = new Map<string, string>()
  const notes = new Map<string, string>()
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const path = relative(root, join(entry.parentPath, entry.name))
    if (path.split('/').some((part) => part.startsWith('.'))) continue
    const stats = await statsOf(join(root, path), entry)
    const note = noteOn(entry, stats)
    if (note !== undefined) notes.set(path, note)
    else if (stats !== undefined && MANIFEST_NAME.test(entry.name)) files.set(path, signatureOf(stats))
  }
  return { files, notes }
}

/**
 * Reads one file.
 * @returns undefined if the file changed during the read: it is not finished, and the next scan sees another signature. `changedMs`: time of
 * the last change, ms since 1970, by the clock of the file system
 * @throws UnreadableFile
 */
export async function readUnchanged(
  file: string,
  signature: string,
): Promise<{ readonly bytes: Uint8Array; readonly changedMs: number } | undefined> {
  try {
    refuseUnreadable(await stat(file))
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK) // it may have become another kind of file
    refuseUnreadable(await handle.stat())
    const bytes = await handle.readFile()
    const stats = await stat(file)
    return signatureOf(stats) === signature ? { bytes, changedMs: Math.max(stats.mtimeMs, stats.ctimeMs) } : undefined
  } catch (error) {
    if (error instanceof UnreadableFile) throw error
    throw new UnreadableFile(...fileSystemError(error))
  }
}

/** Reason and remedy of an error of the file system. */
export function fileSystemError(error: unknown): [reason: string, remedy: string] {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
  return REASONS[code] ?? [`cannot be read (${code})`, 'check the disk']
}

const REASONS: Readonly<Record<string, [string, string]>> = {
  EACCES: ['may not be read by this user', 'make it readable for this user'],
  EPERM: ['may not be read by this user', 'make it readable for this user'],
  ENOENT: ['does not exist, or is a link to a file that does not exist', 'create it, or remove the link'],
  ENOTDIR: ['is not a folder, or is below a file', 'correct the path'],
  ELOOP: ['is a link that leads back to itself', 'correct the link'],
  EIO: ['cannot be read from its disk', 'check the disk'],
}

/** @returns undefined for a file that cannot be a manifest or was just deleted; UNKNOWN_STATE for a broken link */
async function statsOf(file: string, entry: Dirent): Promise<Stats | typeof UNKNOWN_STATE | undefined> {
  if (!entry.isSymbolicLink() && !NEARLY_MANIFEST_NAME.test(entry.name)) return undefined
  try {
    return await stat(file)
  } catch (error) {
    const isDeleted = error instanceof Error && 'code' in error && error.code === 'ENOENT' && !entry.isSymbolicLink()
    return isDeleted ? undefined : UNKNOWN_STATE
  }
}

function noteOn(entry: Dirent, stats: Stats | typeof UNKNOWN_STATE | undefined): string | undefined {
  if (stats === undefined) return undefined
  const isFolder = stats !== UNKNOWN_STATE && stats.isDirectory()
  if (isFolder && entry.isSymbolicLink())
    return 'is a link to a folder, which is not followed; move the folder here, or set MANIFESTS to it'
  if (isFolder) return 'is a folder, and only the manifests in it are read; rename it if it should be a file'
  if (MANIFEST_NAME.test(entry.name) || !NEARLY_MANIFEST_NAME.test(entry.name)) return undefined
  return `is not read because of its name; rename it to ${entry.name.replace(/\.txt$/i, '').toLowerCase()}`
}

function signatureOf(stats: Stats | typeof UNKNOWN_STATE): string {
  if (stats === UNKNOWN_STATE) return stats
  const { ino, size, mtimeMs, ctimeMs } = stats
  return `${ino}:${size}:${mtimeMs}:${ctimeMs}`
}

function refuseUnreadable(stats: Stats): void {
  if (!stats.isFile()) throw new UnreadableFile(`is ${kindOf(stats)} and not a regular file`, 'write the manifest to a regular file')
  if (stats.size > MAX_FILE_BYTES)
    throw new UnreadableFile(`has ${stats.size} bytes`, `split it into files of at most ${MAX_FILE_BYTES} bytes`)
}

function kindOf(stats: Stats): string {
  if (stats.isFIFO()) return 'a named pipe'
  if (stats.isSocket()) return 'a socket'
  if (stats.isDirectory()) return 'a folder'
  return 'a device'
}
