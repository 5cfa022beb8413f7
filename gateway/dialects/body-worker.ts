/** The program of the worker. It reads large bodies and answers one after the other. It ends at its first failure, and another worker starts. */
import { getPriority, setPriority } from 'node:os'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { parentPort } from 'node:worker_threads'
import { DIALECTS } from './dialects.ts'
import { answerOf, type AnswerTo, type BodyJob, bufferOf, READY, sentAnswer } from './body-messages.ts'
import { readRequest } from './read-request.ts'
import { translateBody } from './translation/translate-body.ts'
import { wholeAnswer } from './whole-answer.ts'

/**
 * Heap above which the worker collects garbage at once, because text and value of one body may have 128 MiB. V8 collects garbage only when
 * work needs memory, so an idle worker would keep them.
 */
const COLLECT_ABOVE_BYTES = 32 * 2 ** 20
const COLLECT_IDLE_MS = 1_000

/**
 * Niceness of the worker. The event loop has priority where both threads share a core: bodies built to be refused would take half
 * of it. On Linux a priority belongs to one thread. A third of the weight leaves large bodies a quarter of a busy core.
 */
const NICE = 5

// A program that was started with less priority keeps it: raising a priority is refused to most users.
if (process.platform === 'linux') setPriority(Math.max(NICE, getPriority()))

const collect = collector()
let idle: NodeJS.Timeout | undefined

parentPort?.on('message', (job: BodyJob) => {
  answer(job)
  collectLater()
})
parentPort?.postMessage(READY)

function answer({ path, bytes, how, translations, answer: order }: BodyJob): void {
  const dialect = DIALECTS.get(path)
  if (!dialect) throw new TypeError(`no dialect has the path ${path}`)
  if (order) {
    const whole = sentAnswer(wholeAnswer(bufferOf(bytes), dialect, order))
    parentPort?.postMessage(whole, whole.kind === 'Answer' ? [whole.bytes.buffer] : [])
  } else if (translations) {
    const answers = translations.map((options) => answerOf(translateBody(bufferOf(bytes), dialect, options)))
    parentPort?.postMessage(answers, answers.flatMap(memoryOf))
  } else {
    const message = answerOf(readRequest(bufferOf(bytes), dialect, how))
    parentPort?.postMessage(message, memoryOf(message))
  }
  if (!bytes.buffer.detached) bytes.buffer.transfer(0) // freed now, because memory outside of the heap makes V8 collect the whole heap
}

function memoryOf<T>(answer: AnswerTo<T>): ArrayBuffer[] {
  return 'bytes' in answer ? [answer.bytes.buffer] : []
}

/** Collects at once if the worker holds much memory, otherwise when it is idle: a collection takes the processor from other threads. */
function collectLater(): void {
  clearTimeout(idle)
  if (getHeapStatistics().used_heap_size > COLLECT_ABOVE_BYTES) collect()
  else idle = setTimeout(collect, COLLECT_IDLE_MS)
}

/** Gets V8's collector: V8 adds it to contexts that are made while the flag is set. */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  setFlagsFromString('--no-expose-gc')
  return gc
}
