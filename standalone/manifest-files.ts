/** Which files of a folder are manifests, and their text. Opens regular files only: a pipe would block for ever. */
import { isUtf8 } from 'node:buffer'
import { constants, type Dirent, type Stats } from 'node:fs'
import { open, readdir, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'

const MANIFEST_NAME = /^[^.].*\.(ya?ml|json)$/
/** Names that a person may take for names of manifests. */
const NEARLY_MANIFEST_NAME = /\.(ya?ml|json)(\.txt)?$/i
/** The parser needs seconds for larger files. Kubernetes bounds an object at 1.5 MiB. */
const MAX_FILE_BYTES = 16 * 1024 * 1024
/** Stands for the state of a file that cannot be examined. */
const UNKNOWN_STATE = 'unknown'

export interface FolderScan {
  /** Path relative to the folder → a text that changes when the file does. */
  readonly files: ReadonlyMap<string, string>
  /** Skipped files that a person may expect to be read: reason and remedy by path. */
  readonly notes: ReadonlyMap<string, string>
}

/** Why a file cannot be read as text. @param position line and column of the error, as in `:2:3` */
export type Unreadable = readonly [reason: string, remedy: string, position?: string]

/** The text of a file, and the time of its last change in ms since 1970. */
export interface ManifestText {
  readonly text: string
  readonly changedMs: number
}

/** The manifest files below a folder. Skips hidden files and folders. @throws the error of the file system */
export async function scanFolder(root: string): Promise<FolderScan> {
  const files = new Map<string, string>()
  const notes = new Map<string, string>()
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const path = relative(root, join(entry.parentPath, entry.name))
    if (path.split('/').some((part) => part.startsWith('.'))) continue
    if (!entry.isSymbolicLink() && !NEARLY_MANIFEST_NAME.test(entry.name)) continue
    const stats = await stat(join(root, path)).catch(() => undefined) // a broken link, or just deleted
    const note = noteOn(entry, stats)
    if (note !== undefined) notes.set(path, note)
    else if (MANIFEST_NAME.test(entry.name) && (stats !== undefined || entry.isSymbolicLink())) files.set(path, signatureOf(stats))
  }
  return { files, notes }
}

/** Reads one file. @returns undefined if the file has changed since the scan: the next one has another signature */
export async function readManifest(file: string, signature: string): Promise<ManifestText | Unreadable | undefined> {
  try {
    const refusal = refusalOf(await stat(file))
    if (refusal) return refusal
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
    const replaced = refusalOf(await handle.stat()) // it may have become another kind of file
    if (replaced) return replaced
    const bytes = await handle.readFile()
    const stats = await stat(file)
    if (signatureOf(stats) !== signature) return undefined
    const text = new TextDecoder().decode(bytes)
    return refusalOfText(bytes, text) ?? { text, changedMs: Math.max(stats.mtimeMs, stats.ctimeMs) }
  } catch (error) {
    return fileSystemError(error)
  }
}

/** Reason and remedy of an error of the file system. */
export function fileSystemError(error: unknown): Unreadable {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
  return REASONS[code] ?? [`cannot be read (${code})`, 'check the disk']
}

const REASONS: Readonly<Record<string, Unreadable>> = {
  EACCES: ['may not be read by this user', 'make it readable for this user'],
  EPERM: ['may not be read by this user', 'make it readable for this user'],
  ENOENT: ['does not exist, or is a link to a file that does not exist', 'create it, or remove the link'],
  ENOTDIR: ['is not a folder, or is below a file', 'correct the path'],
  ELOOP: ['is a link that leads back to itself', 'correct the link'],
}

function noteOn(entry: Dirent, stats: Stats | undefined): string | undefined {
  if (stats?.isDirectory()) {
    return entry.isSymbolicLink()
      ? 'is a link to a folder, which is not followed; move the folder here, or set MANIFESTS to it'
      : 'is a folder, and only the manifests in it are read; rename it if it should be a file'
  }
  if (MANIFEST_NAME.test(entry.name) || !NEARLY_MANIFEST_NAME.test(entry.name)) return undefined
  return `is not read because of its name; rename it to ${entry.name.replace(/\.txt$/i, '').toLowerCase()}`
}

function signatureOf(stats: Stats | undefined): string {
  return stats === undefined ? UNKNOWN_STATE : `${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`
}

function refusalOf(stats: Stats): Unreadable | undefined {
  const kind = stats.isFIFO() ? 'a named pipe' : 'a folder, a socket or a device'
  if (!stats.isFile()) return [`is ${kind} and not a regular file`, 'write the manifest to a regular file']
  if (stats.size <= MAX_FILE_BYTES) return undefined
  return [`has ${stats.size} bytes`, `split it into files of at most ${MAX_FILE_BYTES} bytes`]
}

function refusalOfText(bytes: Uint8Array, text: string): Unreadable | undefined {
  if (!isUtf8(bytes)) return ['is not UTF-8 text', 'save the file as UTF-8', positionAt(text, text.indexOf('\ufffd'))]
  const nul = text.indexOf('\0')
  return nul === -1 ? undefined : ['has a NUL character', 'remove the character, and check that the file is whole', positionAt(text, nul)]
}

function positionAt(text: string, offset: number): string {
  const lines = text.slice(0, offset).split('\n')
  return `:${lines.length}:${(lines.at(-1)?.length ?? 0) + 1}`
}
