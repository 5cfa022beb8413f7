/** The one-node cluster of `test/parts/node.sh` with all images loaded, for the tests of this folder. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'

const ROOT = join(import.meta.dirname, '../..')
/** The script behind every call. `exec COMMAND` runs a command inside the namespaces of the node. */
export const NODE = join(ROOT, 'test/parts/node.sh')

/** Calls to a running cluster. Every command runs inside the namespaces of the node, in the root folder of the repository. */
export interface Cluster {
  kubectl(...args: readonly string[]): Promise<string>
  /** Starts a command that runs until its stdin ends. @returns a function that ends stdin and resolves to stdout */
  begin(...args: readonly string[]): () => Promise<string>
  apply(yaml: string): Promise<string>
  helm(...args: readonly string[]): Promise<string>
  /** Runs a bash script, like a reader who pastes its commands. The script stops at the first command that fails. */
  shell(script: string): Promise<string>
  /** The state of all pods, the Events and the logs, for a failed test. */
  describe(): Promise<string>
  /** Ends every process and removes all state. If the process of the test dies first, a guard does the same. */
  stop(): Promise<void>
}

/** A program ended with an exit code other than 0. The message holds the code and the program's stderr. */
export class CommandError extends Error {}

export function progress(text: string): void {
  process.stdout.write(`e2e: ${text}\n`)
}

export function auditFolder(): string {
  return join(ROOT, '.headgate/e2e')
}

/** @returns the programs and rights that this machine lacks for a cluster, or undefined */
export async function missingHere(): Promise<string | undefined> {
  const missing = (await run([NODE, 'check'])).trim()
  return missing === '' ? undefined : `not on this machine: ${missing.replaceAll('\n', ', ')}`
}

/** Packs the images, starts the node and loads the images. @throws after stopping everything it has started */
export async function startCluster(): Promise<void> {
  const images = mkdtempSync(join(tmpdir(), 'headgate-images-'))
  rmSync(auditFolder(), { recursive: true, force: true })
  try {
    await timed('images packed', () => run(['bash', join(ROOT, 'test/parts/images.sh')], { env: { OUT: images } }))
    await timed('node up', async () => {
      await run([NODE, 'up'], { env: { LAB_AUDIT_DIR: join(auditFolder(), 'audit') } })
      await run([NODE, 'guard', String(process.pid)])
    })
    await timed('images loaded', () => run([NODE, 'load', join(images, 'headgate.tar'), join(images, 'parts.tar')]))
  } catch (error) {
    await run([NODE, 'down'])
    throw error
  } finally {
    rmSync(images, { recursive: true, force: true })
  }
}

export function clusterCalls(): Cluster {
  const inside = (...command: readonly string[]) => run([NODE, 'exec', ...command])
  return {
    kubectl: (...args) => inside('kubectl', ...args),
    begin: (...args) => {
      const { stdin, stdout } = start([NODE, 'exec', 'kubectl', ...args])
      return () => {
        stdin.end()
        return stdout
      }
    },
    apply: (yaml) => run([NODE, 'exec', 'kubectl', 'apply', '-f', '-'], { input: yaml }),
    helm: (...args) => inside('helm', ...args),
    shell: (script) => inside('bash', '-euo', 'pipefail', '-c', script),
    describe: async () =>
      [
        await inside('kubectl', 'get', 'pods,apikeys,servedmodels', '-A', '-o', 'wide').catch(String),
        await inside('kubectl', 'get', 'events', '-A', '--sort-by=.lastTimestamp').catch(String),
        await logs(inside, 'headgate', 'app.kubernetes.io/part-of!=none').catch(String),
      ].join('\n\n'),
    stop: () => timed('cluster down', () => run([NODE, 'down'])).then(() => undefined),
  }
}

function logs(inside: (...command: readonly string[]) => Promise<string>, namespace: string, selector: string): Promise<string> {
  return inside('kubectl', 'logs', '-n', namespace, '-l', selector, '--all-containers', '--prefix', '--tail=40')
}

export async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const start = performance.now()
  const result = await work()
  progress(`${what} ${((performance.now() - start) / 1000).toFixed(1)} s`)
  return result
}

interface RunOptions {
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
}

async function run(argv: readonly string[], { input, env }: RunOptions = {}): Promise<string> {
  const { stdin, stdout } = start(argv, env)
  stdin.end(input ?? '')
  return stdout
}

function start(argv: readonly string[], env?: RunOptions['env']): { readonly stdin: Writable; readonly stdout: Promise<string> } {
  const [command = '', ...args] = argv
  const child = spawn(command, args, { cwd: ROOT, stdio: 'pipe', env: { ...process.env, ...env } })
  const outcome = async (): Promise<string> => {
    const [stdout, stderr, code] = await Promise.all([collect(child.stdout), collect(child.stderr), ended(child)])
    if (code !== 0) throw new CommandError(`${argv.join(' ')} ended with ${code}: ${stderr || stdout}`)
    return stdout
  }
  return { stdin: child.stdin, stdout: outcome() }
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve(code))
  })
}

async function collect(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
