/** The standard output of `make run`: one stream for log and for what is printed, so that the order stays. */
import { pino } from 'pino'
import { createLog, type LOG_LEVELS, type Log } from '../gateway/process/log.ts'
import { textLine } from './text-line.ts'

/** How lines look. */
export interface OutputSettings {
  /** Lines for people; else JSON. */
  readonly isText: boolean
  readonly logLevel: (typeof LOG_LEVELS)[number]
}

/** The log, and what is printed beside it. */
export interface Output {
  readonly log: Log
  readonly print: (text: string) => void
  /** Writes what is still buffered, synchronously. */
  flush(): void
}

const STDOUT = 1

/** Writes in the background: a reader that stops reading does not stop the gateway. */
export function openOutput({ isText, logLevel }: OutputSettings): Output {
  const stream = pino.destination({ dest: STDOUT, sync: false, minLength: 0 })
  stream.on('error', () => undefined) // a reader that went away is no reason to end
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
    return // not open yet or closed by the reader: nothing is left that could be written
  }
}
