/** The standard output of `make run`: one stream for the log and for printed texts, so that their order stays. */
import { pino } from 'pino'
import { createLog, type LOG_LEVELS, type Log } from '#platform/log.ts'
import { textLine } from './text-line.ts'

/** The form of lines. */
export interface OutputSettings {
  /** Lines for people; otherwise JSON. */
  readonly isText: boolean
  readonly logLevel: (typeof LOG_LEVELS)[number]
}

/** The log, and the texts printed beside it. */
export interface Output {
  readonly log: Log
  readonly print: (text: string) => void
  /** Writes buffered bytes, synchronously. */
  flush(): void
}

const STDOUT = 1

/** Writes in the background: a reader that stops reading does not stop the gateway. */
export function openOutput({ isText, logLevel }: OutputSettings): Output {
  const stream = pino.destination({ dest: STDOUT, sync: false, minLength: 0 })
  stream.on('error', () => undefined) // a closed reader is no reason to end
  const write = (text: string | undefined): void => {
    if (text !== undefined) stream.write(text)
  }
  const showAll = logLevel === 'debug'
  const { log } = createLog('standalone', logLevel, { write: isText ? (line) => write(textLine(line, showAll)) : write })
  return { log, print: write, flush: () => flushed(stream) }
}

function flushed(stream: ReturnType<typeof pino.destination>): void {
  try {
    stream.flushSync()
  } catch {
    return // not open yet, or closed by the reader: nothing can be written
  }
}
