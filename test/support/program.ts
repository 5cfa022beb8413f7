/** One of our own programs as a real process, from the bundle that the run began with, with its environment and its health server. */
import { appendFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Program as ProgramName } from '../../build.ts'
import { checkedStreamsEnv } from './checked-streams.ts'
import { freePorts } from './free-port.ts'
import { ManagedProcess, type Ending } from './managed-process.ts'
import { waitFor } from './wait-for.ts'

export interface ProgramSpec {
  readonly program: Exclude<ProgramName, 'standalone'>
  /** Name of the pod that it plays; also of its log file. */
  readonly pod: string
  readonly ip: string
  /** Run folder: the log goes to logs/, the last metrics to records/. */
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
  /** Folder with the bundles; default: those that the run began with. */
  readonly bundles?: string
}

/** A gateway or an operator. Its ports stay the same over restarts. */
export class Program {
  readonly spec: ProgramSpec
  readonly process: ManagedProcess
  readonly port: number
  readonly metricsPort: number
  readonly usagePort: number

  private constructor(spec: ProgramSpec, [port = 0, metricsPort = 0, usagePort = 0]: readonly number[]) {
    const bundle = join(spec.bundles ?? join(spec.folder, 'dist'), `${spec.program}.js`)
    this.spec = spec
    this.port = port
    this.metricsPort = metricsPort
    this.usagePort = usagePort
    this.process = new ManagedProcess({
      name: spec.pod,
      argv: [process.execPath, '--enable-source-maps', bundle],
      env: {
        ...(spec.program === 'gateway' ? checkedStreamsEnv() : {}),
        ...{ POD_NAME: spec.pod, PORT: String(port), METRICS_PORT: String(metricsPort), USAGE_PORT: String(usagePort) },
        ...spec.env,
      },
      logFile: join(spec.folder, 'logs', `${spec.pod}.log`),
    })
  }

  static async prepare(spec: ProgramSpec): Promise<Program> {
    for (const folder of ['logs', 'records']) mkdirSync(join(spec.folder, folder), { recursive: true })
    return new Program(spec, await freePorts(3))
  }

  /** Base URL of the API, without /v1 (gateways only). */
  get url(): string {
    return `http://${this.spec.ip}:${this.port}`
  }

  get metricsUrl(): string {
    return `http://${this.spec.ip}:${this.metricsPort}`
  }

  /** Where it serves the usage of accounts (operators only). */
  get usageUrl(): string {
    return `http://${this.spec.ip}:${this.usagePort}`
  }

  /** Starts it without waiting for anything. @param env more environment for this run alone */
  async launch(env: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.process.start(env)
  }

  async start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.launch(env)
    await this.ready()
  }

  /** @throws at once when the process has ended, with the end of its log; else after the deadline */
  async ready(deadlineMs = 90_000): Promise<void> {
    await waitFor(`${this.spec.pod} to be ready`, async () => !this.process.running || (await this.isReady()), { deadlineMs })
    if (!this.process.running) throw new Error(`${this.spec.pod} has ended:\n${this.process.log().slice(-2000)}`)
  }

  async isReady(): Promise<boolean> {
    const answer = await fetch(`${this.metricsUrl}/readyz`, { signal: AbortSignal.timeout(2000) })
    await answer.body?.cancel()
    return answer.ok
  }

  async metrics(): Promise<string> {
    const answer = await fetch(`${this.metricsUrl}/metrics`, { signal: AbortSignal.timeout(5000) })
    return answer.text()
  }

  /** Value of one metric line, labels included: `headgate_requests_total{code="200"}`; undefined when there is none. */
  async metric(line: string): Promise<number | undefined> {
    const found = (await this.metrics()).split('\n').find((text) => text.startsWith(`${line} `))
    return found === undefined ? undefined : Number(found.slice(line.length + 1))
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<Ending> {
    return this.process.kill(signal)
  }

  /** Keeps its metrics for the search for secrets, then SIGTERM. */
  async stop(): Promise<Ending> {
    if (this.process.running) {
      const text = await this.metrics().catch(() => '') // not ready yet or stopped by a signal: there are no metrics to keep
      appendFileSync(join(this.spec.folder, 'records', `${this.spec.pod}.metrics`), text)
    }
    return this.process.stop()
  }

  async restart(): Promise<void> {
    await this.stop()
    await this.start()
  }
}
