/** Parses manifest files: small ones at once, large ones in a thread of their own, so that calls are served meanwhile. */
import { Worker } from 'node:worker_threads'
import { type ManifestDocument, type ManifestFile, readManifestFile } from './manifest-file.ts'
import { UnreadableFile } from './manifest-text.ts'

/** Texts up to this length are parsed at once, within some tens of milliseconds. */
const AT_ONCE = 65_536
/** Heap of the thread, MiB. A file of 16 MiB that needs more is refused, and the program goes on. */
const HEAP_MIB = 3_072

/** What the thread gets. */
export interface ParseOrder {
  readonly path: string
  readonly text: string
}

/** Some documents of the file. The thread sends the next ones when it is asked: all at once would take a long turn to receive. */
export interface ParsedBatch {
  readonly documents: readonly ManifestDocument[]
  readonly isLast: boolean
}

/** The program of the thread, beside this file: as a source, or as a bundle. */
const PROGRAM = new URL(import.meta.url.endsWith('.ts') ? './manifest-worker.ts' : './manifest-worker.js', import.meta.url)

/**
 * Parses one file.
 * @param signal ends the thread; the promise then rejects with the reason of the signal
 * @throws UnreadableFile when the thread cannot parse the file
 */
export async function parseManifestFile(path: string, text: string, signal: AbortSignal): Promise<ManifestFile> {
  if (text.length <= AT_ONCE) return readManifestFile(path, text)
  signal.throwIfAborted()
  try {
    return { path, text, documents: await parseInThread({ path, text }, signal) }
  } catch (error) {
    signal.throwIfAborted()
    throw unparsed(error)
  }
}

async function parseInThread(workerData: ParseOrder, signal: AbortSignal): Promise<readonly ManifestDocument[]> {
  const resourceLimits = { maxOldGenerationSizeMb: HEAP_MIB }
  const worker = new Worker(PROGRAM, { name: 'manifest-parser', env: {}, execArgv: [], workerData, resourceLimits })
  const { promise, resolve, reject } = Promise.withResolvers<readonly ManifestDocument[]>()
  const documents: ManifestDocument[] = []
  const abort = (): void => reject(signal.reason as Error)
  worker.on('message', (batch: ParsedBatch) => {
    documents.push(...batch.documents)
    if (batch.isLast) resolve(documents)
    else worker.postMessage('next')
  })
  worker.on('error', reject)
  worker.on('exit', (code) => reject(new Error(`the thread ended with code ${code}`)))
  signal.addEventListener('abort', abort)
  try {
    return await promise
  } finally {
    signal.removeEventListener('abort', abort)
    await worker.terminate()
  }
}

function unparsed(error: unknown): UnreadableFile {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return new UnreadableFile(`takes more than ${HEAP_MIB} MiB of memory to parse`, SPLIT)
  return new UnreadableFile(`cannot be parsed (${code === '' ? String(error) : code})`, SPLIT)
}

const SPLIT = 'split it into several files'
