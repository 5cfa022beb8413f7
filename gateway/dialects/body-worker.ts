/** The worker's side: a program of its own, which reads one large body after the other. It ends at its first failure, and then another one starts. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { parentPort } from 'node:worker_threads'
import { DIALECTS } from './all-dialects.ts'
import { answerOf, type BodyJob, bufferOf, READY, transferOf } from './body-messages.ts'
import { readRequest } from './read-request.ts'

/** Text and value of one body may have 128 MiB. V8 collects garbage when work needs memory, so a worker without work would keep them. */
const SWEEP_ABOVE_BYTES = 8 * 2 ** 20
const SWEEP_IDLE_MS = 1_000

const sweep = collector()
let unsweptBytes = 0
let idle: NodeJS.Timeout | undefined

parentPort?.on('message', ({ path, bytes }: BodyJob) => {
  const { byteLength } = bytes // none are left after the transfer
  answer(path, bytes)
  sweepLater(byteLength)
})
parentPort?.postMessage(READY)

function answer(path: string, bytes: BodyJob['bytes']): void {
  const dialect = DIALECTS.get(path)
  if (!dialect) throw new TypeError(`no dialect has the path ${path}`)
  const message = answerOf(readRequest(bufferOf(bytes), dialect))
  parentPort?.postMessage(message, transferOf(message))
}

/** At once after many bytes, else as soon as there is no work. */
function sweepLater(bytes: number): void {
  clearTimeout(idle)
  unsweptBytes += bytes
  if (unsweptBytes < SWEEP_ABOVE_BYTES) idle = setTimeout(sweepNow, SWEEP_IDLE_MS)
  else sweepNow()
}

function sweepNow(): void {
  unsweptBytes = 0
  sweep()
}

/** V8 gives its collector to contexts that are made while the flag is set. */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  setFlagsFromString('--no-expose-gc')
  return collect
}
