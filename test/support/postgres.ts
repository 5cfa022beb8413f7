/** A real Postgres, which keeps nothing beyond a test. */
import { execFileSync, type ExecFileSyncOptions } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { freePort } from './free-port.ts'
import { ManagedProcess } from './managed-process.ts'
import { waitFor } from './wait-for.ts'

const HOST = '127.0.0.1'
const USER = 'postgres'
const QUIET: ExecFileSyncOptions = { stdio: ['ignore', 'pipe', 'pipe'] }
/** Postgres refuses to run as root. setpriv becomes the program, so that signals reach the server itself. */
const AS_POSTGRES = ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups']

/** Why no test can use Postgres here; undefined when Postgres is installed. For `skip`. */
export function missingPostgres(): string | undefined {
  if (!existsSync(join(binFolder(), 'postgres'))) return 'postgresql is not installed: apt-get install --no-install-recommends postgresql'
  if (!isRoot()) return undefined
  try {
    execFileSync(AS_POSTGRES[0] ?? '', [...AS_POSTGRES.slice(1), 'true'], QUIET)
    return undefined
  } catch {
    return 'Postgres does not run as root, and setpriv cannot become the user postgres here'
  }
}

const isRoot = (): boolean => process.getuid?.() === 0

function binFolder(): string {
  try {
    return execFileSync('pg_config', ['--bindir'], { ...QUIET, encoding: 'utf8' }).trim()
  } catch {
    return ''
  }
}

/** One server. Stop and start keep its port and its data. */
export class PostgresPart {
  readonly port: number
  readonly process: ManagedProcess

  private constructor(port: number, process: ManagedProcess) {
    this.port = port
    this.process = process
  }

  /** @param folder for its files, below a folder that every user may enter, such as `temporaryFolder()`; the log is `postgres.log` in it */
  static async start(folder: string): Promise<PostgresPart> {
    const data = join(folder, 'data')
    mkdirSync(data, { recursive: true })
    chmodSync(folder, 0o711) // a temporary folder admits its owner alone
    const as = isRoot() ? AS_POSTGRES : []
    if (isRoot()) execFileSync('chown', [`${USER}:${USER}`, data], QUIET)
    const [command = '', ...args]: readonly string[] = [...as, join(binFolder(), 'initdb'), '-D', data, '-A', 'trust', '-U', USER]
    execFileSync(command, [...args, '--no-sync', '-E', 'UTF8', '--locale=C.UTF-8'], { ...QUIET, cwd: '/' }) // the user may not enter our folder
    const port = await freePort()
    const settings = [`listen_addresses=${HOST}`, `unix_socket_directories=${data}`, 'fsync=off'].flatMap((setting) => ['-c', setting])
    const argv = [...as, join(binFolder(), 'postgres'), '-D', data, '-p', String(port), ...settings]
    const part = new PostgresPart(port, new ManagedProcess({ name: 'postgres', argv, env: {}, logFile: join(folder, 'postgres.log') }))
    await part.start()
    return part
  }

  async start(): Promise<void> {
    await this.process.start()
    await waitFor('Postgres to answer', async () => {
      if (!this.process.running) return true
      return (await this.query('select 1')).length === 1
    })
    if (!this.process.running) throw new Error(`Postgres has ended:\n${this.process.log().slice(-2000)}`)
  }

  /** Ends connections and server. SIGTERM would wait until all clients have left. */
  async stop(): Promise<void> {
    if (this.process.running) await this.process.kill('SIGINT')
  }

  /** URL of a database; without a name, of the one that every server has. */
  url(database = 'postgres'): string {
    return `postgres://${USER}@${HOST}:${this.port}/${database}`
  }

  /** Makes an empty database. @returns its URL */
  async createDatabase(name: string): Promise<string> {
    await this.query(`create database "${name.replaceAll('"', '""')}"`)
    return this.url(name)
  }

  /** Runs one statement on a connection of its own. @returns the rows */
  async query(statement: string, url = this.url()): Promise<readonly Record<string, unknown>[]> {
    const client = new Client({ connectionString: url })
    client.on('error', () => undefined) // some tests kill the server; statements reject by themselves
    await client.connect()
    try {
      const { rows } = await client.query<Record<string, unknown>>(statement)
      return rows
    } finally {
      await client.end()
    }
  }
}
