/** JSON logs: one pino logger per process, written without blocking requests. No Credential reaches them, whatever a caller passes. */
import { pino, type DestinationStream, type Level } from 'pino'

/** One line: a message, or fields and a message. */
export interface LogMethod {
  (message: string): void
  (fields: Readonly<Record<string, unknown>>, message: string): void
}

/** What the parts of a program log through. */
export interface Log {
  readonly debug: LogMethod
  readonly info: LogMethod
  readonly warn: LogMethod
  readonly error: LogMethod
}

/** Levels that `LOG_LEVEL` may name. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const satisfies readonly Level[]

/** A logger and the way to empty its buffer before the process ends. */
export interface ProcessLog {
  readonly log: Log
  /** Writes what is still buffered, synchronously. */
  flush(): void
}

const MIN_WRITE_BYTES = 8192 // one write per buffer, not per line
const FLUSH_EVERY_MS = 250 // what is below that size waits so long at most
/** Long values wherever they begin; short ones and those that people chose, with any characters, where a word begins: `task-queue` is none. */
const CREDENTIAL = /sk-[0-9A-Za-z_-]{20,}|(?<![0-9A-Za-z])sk-[^\s"\\]+/g
const SECRET_FIELDS = ['authorization', 'x-api-key', 'cookie', 'password', 'token', 'credential'].flatMap((name) => [
  `["${name}"]`,
  `*["${name}"]`,
])

/**
 * Makes the logger of a process.
 * @param program stands in every line as `program`
 * @param destination tests pass a stream; default is the standard output, buffered
 */
export function createLog(program: string, level: (typeof LOG_LEVELS)[number], destination?: DestinationStream): ProcessLog {
  const buffered = destination ? undefined : pino.destination({ sync: false, minLength: MIN_WRITE_BYTES, periodicFlush: FLUSH_EVERY_MS })
  buffered?.on('error', () => undefined) // whoever read the output has gone: no reason to end
  const log = pino(
    {
      level,
      base: { program },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: SECRET_FIELDS,
      hooks: { streamWrite: hideCredentials }, // the net below all care: whatever looks like a Credential goes
    },
    destination ?? buffered,
  )
  return { log, flush: () => flush(buffered) }
}

/** Replaces everything that looks like a Credential. */
export function hideCredentials(line: string): string {
  return line.includes('sk-') ? line.replace(CREDENTIAL, 'sk-[hidden]') : line
}

function flush(buffered: ReturnType<typeof pino.destination> | undefined): void {
  try {
    buffered?.flushSync()
  } catch {
    return // not open yet or closed by the reader: nothing is left that could be written
  }
}
