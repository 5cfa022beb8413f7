/** JSON logs: one pino logger per process. Writing does not block requests. The logger removes every Credential that a caller passes. */
import { pino, type DestinationStream, type Level } from 'pino'

/** One line: a message, or fields and a message. */
export interface LogMethod {
  (message: string): void
  (fields: Readonly<Record<string, unknown>>, message: string): void
}

/** The logger that parts of a program use. */
export interface Log {
  readonly debug: LogMethod
  readonly info: LogMethod
  readonly warn: LogMethod
  readonly error: LogMethod
}

/** Levels that `LOG_LEVEL` may name. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const satisfies readonly Level[]

/** A logger, and a function that empties its buffer before the process ends. */
export interface ProcessLog {
  readonly log: Log
  /** Writes the buffered lines synchronously. */
  flush(): void
}

/** Receives the lines; `flushSync` empties its buffer, if it has one. */
interface LogStream extends DestinationStream {
  flushSync?(): void
}

const MIN_WRITE_BYTES = 8192 // one write per buffer, not per line
const FLUSH_EVERY_MS = 250 // flush a partly filled buffer after this long
/** Long values at any place, and values of any length where a word begins: `task-queue` is not a Credential. */
const CREDENTIAL = /sk-[0-9A-Za-z_-]{20,}|(?<![0-9A-Za-z])sk-[^\s"\\]+/g
const SECRET_FIELDS = ['authorization', 'x-api-key', 'cookie', 'password', 'token', 'credential'].flatMap((name) => [
  `["${name}"]`,
  `*["${name}"]`,
])

/**
 * Makes the logger of a process.
 * @param program value of the field `program` in every line
 * @param destination tests pass a stream; the default is the standard output, buffered
 */
export function createLog(program: string, level: (typeof LOG_LEVELS)[number], destination?: LogStream): ProcessLog {
  const buffered = destination ? undefined : pino.destination({ sync: false, minLength: MIN_WRITE_BYTES, periodicFlush: FLUSH_EVERY_MS })
  buffered?.on('error', () => undefined) // the reader of the output has ended, which is no reason to stop
  const log = pino(
    {
      level,
      base: { program },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: SECRET_FIELDS,
      hooks: { streamWrite: hideCredentials }, // a safety net: replaces everything that looks like a Credential
    },
    destination ?? buffered,
  )
  return { log, flush: () => flush(destination ?? buffered) }
}

/** Replaces everything that looks like a Credential. */
function hideCredentials(line: string): string {
  return line.includes('sk-') ? line.replace(CREDENTIAL, 'sk-[hidden]') : line
}

function flush(stream: LogStream | undefined): void {
  try {
    stream?.flushSync?.()
  } catch {
    return // the output is not open yet, or its reader has closed it
  }
}
