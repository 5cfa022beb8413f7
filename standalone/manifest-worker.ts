/** The program of the thread that parses one large manifest file. It sends the documents in batches, and is ended by its owner. */
import { getPriority, setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { readManifestFile } from './manifest-file.ts'
import type { ParsedBatch, ParseOrder } from './manifest-parser.ts'

/** Documents of a batch: receiving so many takes the event loop a few milliseconds. */
const BATCH = 200
/** Niceness of the thread: calls go first where both share a core. On Linux a priority belongs to one thread. */
const NICE = 5

if (process.platform === 'linux') setPriority(Math.max(NICE, getPriority()))

const { path, text } = workerData as ParseOrder // of manifest-parser.ts
const { documents } = readManifestFile(path, text)
let sent = 0

parentPort?.on('message', send)
send()

function send(): void {
  const batch: ParsedBatch = { documents: documents.slice(sent, sent + BATCH), isLast: sent + BATCH >= documents.length }
  sent += BATCH
  parentPort?.postMessage(batch)
}
