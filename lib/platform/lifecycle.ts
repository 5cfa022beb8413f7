/** Starts and stops a program: signals, one clean shutdown, and one line per reason when it cannot run. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo, ListenOptions } from 'node:net'
import type { ProcessLog } from './log.ts'

/**
 * An error that a restart cannot fix: bad settings, a port in use, a Redis that evicts keys. The program exits with one line per reason.
 */
export class Misconfigured extends Error {
  readonly lines: readonly string[]

  /** @param lines each names the error, the reason and the remedy, and never a secret */
  constructor(lines: string | readonly string[], options?: ErrorOptions) {
    const all = typeof lines === 'string' ? [lines] : lines
    super(all.join('; '), options)
    this.name = 'Misconfigured'
    this.lines = all
  }
}

/** The process must end and be restarted, for example because it lost its leadership. It exits with this one line. */
export class Ending extends Error {
  override readonly name = 'Ending'
}

/** A running program. */
export interface Running {
  /** Shuts the program down. The process then exits with 0. */
  stop(): Promise<void>
  /** Rejects when the program cannot continue. It never resolves. */
  readonly failed: Promise<never>
}

/** The parts of `process` that the runner needs; tests pass their own. */
export interface ProcessPort {
  on(event: 'SIGTERM' | 'SIGINT', listener: () => void): unknown
  on(event: 'uncaughtException' | 'unhandledRejection', listener: (reason: unknown) => void): unknown
  exit(code: number): void
  readonly stdout: { on(event: 'error', listener: () => void): unknown }
  readonly stderr: { on(event: 'error', listener: () => void): unknown; write(text: string): unknown }
}

/**
 * Runs a program until a signal or a failure ends it. SIGTERM and SIGINT shut it down (exit 0). A second signal ends it at once (exit 1).
 * Every failure ends it with exit 1 and one line per reason on standard error.
 * @param start reads the settings and composes the parts; may throw Misconfigured
 */
export async function runProgram(
  name: string,
  start: (use: (log: ProcessLog) => void) => Promise<Running>,
  port: ProcessPort = process,
): Promise<void> {
  let flush: () => void = () => undefined
  let stopping = false
  const { promise: signalled, resolve: onSignal } = Promise.withResolvers<void>()
  const end = (code: number): void => {
    flush()
    port.exit(code)
  }
  const die = (reason: unknown): void => {
    flush() // earlier log lines come first, also if both outputs are one
    for (const line of failureLines(reason)) port.stderr.write(`${name}: ${line}\n`)
    end(1)
  }
  const stop = (): void => {
    if (stopping) return end(1)
    stopping = true
    onSignal()
  }
  for (const stream of [port.stdout, port.stderr]) stream.on('error', () => undefined) // the reader of the output has ended, which is no reason to stop
  port.on('SIGTERM', stop)
  port.on('SIGINT', stop)
  port.on('uncaughtException', die)
  port.on('unhandledRejection', die)
  try {
    const running = await start((log) => (flush = () => log.flush()))
    await Promise.race([signalled, running.failed])
    await running.stop()
    end(0)
  } catch (error) {
    die(error)
  }
}

/** Formats a failure: the lines of a Misconfigured, else one line. The stack follows only if the failure may be a bug. */
function failureLines(reason: unknown): readonly string[] {
  if (reason instanceof Misconfigured) return reason.lines
  if (reason instanceof Ending) return [reason.message]
  return [reason instanceof Error ? (reason.stack ?? reason.message) : String(reason)]
}

/**
 * Listens on a port of TCP; 0: any free port.
 * @param setting name of the variable with the port
 * @returns the port
 * @throws Misconfigured if the port cannot be used, with the remedy
 */
export async function listen(server: Server, setting: string, options: ListenOptions & { readonly port: number }): Promise<number> {
  await once(server.listen(options), 'listening').catch((error: NodeJS.ErrnoException) => {
    throw listenError(error, setting, options.port)
  })
  return (server.address() as AddressInfo).port // a listener on TCP has no pipe name
}

function listenError(error: NodeJS.ErrnoException, setting: string, port: number): Error {
  if (error.code === 'EADDRINUSE')
    return new Misconfigured(`${setting}: port ${port} is taken by another process; stop that process or set ${setting} to a free port`, {
      cause: error,
    })
  if (error.code === 'EACCES')
    return new Misconfigured(`${setting}: this user may not listen on port ${port}; set ${setting} to 1024 or above`, { cause: error })
  return error
}
