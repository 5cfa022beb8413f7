import { readdir, readFile, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'

const MANIFEST_NAME = /^[^.].*\.(ya?ml|json)$/

/** The manifest files below a folder: path relative to it → what changes when the file does. Hidden files and folders are left out. */
export async function scanFolder(root: string): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  for (const entry of entries) {
    const path = relative(root, join(entry.parentPath, entry.name))
    if (!MANIFEST_NAME.test(entry.name) || path.split('/').some((part) => part.startsWith('.'))) continue
    const signature = await signatureOf(join(root, path))
    if (signature !== undefined) found.set(path, signature)
  }
  return found
}

/**
 * Reads one file.
 * @returns undefined when it changed while it was read: then it is not finished, and the next scan sees another signature
 * @throws the error of the file system when it cannot be opened
 */
export async function readUnchanged(file: string, signature: string): Promise<string | undefined> {
  const text = await readFile(file, 'utf8')
  return (await signatureOf(file)) === signature ? text : undefined
}

async function signatureOf(file: string): Promise<string | undefined> {
  try {
    const { ino, size, mtimeMs, ctimeMs } = await stat(file)
    return `${ino}:${size}:${mtimeMs}:${ctimeMs}`
  } catch {
    return undefined // gone between listing and looking, or a dangling link: as good as absent
  }
}
