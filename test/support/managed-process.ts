/** A real process that a test starts, watches and stops by its own pid. Output goes to a file: a full pipe would stop it. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'

/** How to start it; Output is appended to `logFile`, so that a restart keeps the former output. */
export interface ProcessSpec {
  readonly name: string
  readonly argv: readonly string[]
  /** The whole environment: nothing of ours is inherited except PATH. */
  readonly env: Readonly<Record<string, string>>
  readonly logFile: string
}

export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export class ManagedProcess {
  readonly spec: ProcessSpec
  #child: ChildProcess | undefined
  #ended: Promise<Ending> = Promise.resolve({ code: null, signal: null })

  constructor(spec: ProcessSpec) {
    this.spec = spec
  }

  /** @throws when it runs already or cannot be started */
  async start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    if (this.running) throw new Error(`${this.spec.name} runs already`)
    const [command = '', ...args] = this.spec.argv
    const log = openSync(this.spec.logFile, 'a', 0o600)
    try {
      const child = spawn(command, args, {
        stdio: ['ignore', log, log],
        env: { PATH: process.env.PATH, ...this.spec.env, ...env },
      })
      this.#child = child
      this.#ended = once(child, 'exit').then(([code, signal]: unknown[]) => ({
        code: code as number | null,
        signal: signal as NodeJS.Signals | null,
      }))
      await once(child, 'spawn')
    } finally {
      closeSync(log)
    }
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Whether it has ended by itself with an error. */
  get hasFailed(): boolean {
    return (this.#child?.exitCode ?? 0) !== 0
  }

  /** @throws when it does not run */
  get pid(): number {
    if (!this.running || this.#child?.pid === undefined) throw new Error(`${this.spec.name} does not run; see ${this.spec.logFile}`)
    return this.#child.pid
  }

  get ended(): Promise<Ending> {
    return this.#ended
  }

  /** Sends a signal and, unless it is SIGSTOP or SIGCONT, waits for the end. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<Ending> {
    process.kill(this.pid, signal)
    if (signal === 'SIGSTOP' || signal === 'SIGCONT') return { code: null, signal: null }
    return this.#ended
  }

  /** SIGTERM, and SIGKILL when it has not ended after `graceMs`. Does nothing when it does not run. */
  async stop(graceMs = 10_000): Promise<Ending> {
    if (!this.running) return this.#ended
    const timer = setTimeout(() => this.#child?.kill('SIGKILL'), graceMs)
    this.#child?.kill('SIGCONT') // a stopped process does not handle SIGTERM
    this.#child?.kill('SIGTERM')
    try {
      return await this.#ended
    } finally {
      clearTimeout(timer)
    }
  }

  log(): string {
    return readFileSync(this.spec.logFile, 'utf8')
  }
}
