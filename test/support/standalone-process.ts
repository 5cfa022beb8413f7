/** `make run` as a process of its own, in a folder of its own. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkedStreamsEnv } from './checked-streams.ts'

const MAIN = join(import.meta.dirname, '../../standalone/main.ts')
const PATIENCE_MS = 150_000 // only catches hangs

/** A started `standalone/main.ts`. */
export class StandaloneProcess {
  readonly #cwd: string
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>
  #output = ''
  #onOutput: () => void = () => undefined

  /**
   * @param cwd holds `manifests/` and gets `.headgate/`
   * @param user another user than the one of the tests, which must be root then
   */
  constructor(cwd: string, env: Readonly<Record<string, string>> = {}, user: { readonly uid?: number; readonly gid?: number } = {}) {
    this.#cwd = cwd
    const checked = user.uid === undefined ? checkedStreamsEnv() : {} // another user may not write into our folder
    const own = { ...checked, PATH: process.env['PATH'], PORT: '0', DASHBOARD: '0', MANIFESTS: 'manifests', ...env }
    this.#child = spawn(process.execPath, [MAIN], { cwd, env: own, stdio: ['ignore', 'pipe', 'pipe'], ...user })
    this.#exited = once(this.#child, 'close')
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text
        this.#onOutput()
      })
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Everything printed and logged so far. */
  get output(): string {
    return this.#output
  }

  /** Waits until the output matches. @throws Error with the output after the deadline */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    const deadline = Date.now() + PATIENCE_MS
    for (;;) {
      const match = pattern.exec(this.#output)
      if (match) return match
      if (Date.now() > deadline || this.#child.exitCode !== null) throw new Error(`no ${pattern} in:\n${this.#output}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 500)
        this.#onOutput = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  /** Base URL with `/v1`, once the program serves. */
  async baseURL(): Promise<string> {
    return (await this.printed(/running at (http:\S+\/v1) /))[1] ?? ''
  }

  /** The value of a key, as its file holds it. */
  credential(key: string): string {
    return readFileSync(join(this.#cwd, '.headgate/secrets', key, 'SERVICE_API_KEY'), 'utf8')
  }

  /** Status of a chat completion. */
  async chat(credential: string, model: string): Promise<number> {
    const response = await fetch(`${await this.baseURL()}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
    })
    await response.arrayBuffer()
    return response.status
  }

  /** Sends a signal and waits for nothing. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Ends it as Ctrl-C does. @returns the exit code */
  async stop(signal: NodeJS.Signals = 'SIGINT'): Promise<number | null> {
    this.#child.kill(signal)
    return this.exit()
  }

  /** Waits for its end. */
  async exit(): Promise<number | null> {
    await this.#exited
    return this.#child.exitCode
  }
}
