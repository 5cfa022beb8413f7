/**
 * Runs a measurement in a network namespace of its own, since the gateway calls no loopback address, with a run folder
 * and a copy of the bundles. On a machine that does not allow namespaces it prints `SKIPPED: reason`, which is no failure.
 */
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeRunFolder } from '../support/run-folder.ts'

const ROOT = join(import.meta.dirname, '../..')
/** Exit code of `in-netns.sh` when there can be no namespace. */
const CANNOT_RUN = 3

/** Programs and their Debian packages: first those of every measurement, then those that make load. */
const PROGRAMS = { 'redis-server': 'redis-server', ip: 'iproute2' } as const
const LOAD_PROGRAMS = { nginx: 'nginx-light', wrk: 'wrk', taskset: 'util-linux' } as const

/** A run inside the namespace. */
export interface Inside {
  /** Address of the bridge that all parts share. */
  readonly ip: string
  readonly folder: string
}

/** A measurement to run. */
export interface Measurement {
  /** Absolute path of the calling program. */
  readonly script: string
  /** Whether it makes load, and so needs nginx and wrk. */
  readonly makesLoad: boolean
  /** @returns the exit code */
  readonly run: (inside: Inside) => Promise<number>
}

/**
 * Runs a measurement inside a namespace. Outside of a namespace, starts the calling program again inside a new one.
 * @returns the exit code
 */
export async function runInside({ script, makesLoad, run }: Measurement): Promise<number> {
  process.env.PATH = `${process.env.PATH}:/usr/sbin:/sbin` // where Debian keeps nginx
  const ip = process.env.LAB_IP
  if (ip !== undefined) return run({ ip, folder: prepareFolder() })
  const missing = missingPackages(makesLoad ? { ...PROGRAMS, ...LOAD_PROGRAMS } : PROGRAMS)
  if (missing.length > 0) {
    return skipped(`missing Debian packages; install them with: sudo apt-get install -y --no-install-recommends ${missing.join(' ')}`)
  }
  const scratch = mkdtempSync(join(tmpdir(), 'headgate-bench-'))
  const skipFile = join(scratch, 'skip')
  try {
    const code = await enter(script, skipFile)
    return code === CANNOT_RUN && existsSync(skipFile) ? skipped(readFileSync(skipFile, 'utf8').trim()) : code
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Prints the reason why nothing was measured. @returns the exit code */
export function skipped(reason: string): number {
  process.stdout.write(`SKIPPED: ${reason}\n`)
  return 0
}

function missingPackages(programs: Readonly<Record<string, string>>): string[] {
  const isMissing = (program: string): boolean => spawnSync('bash', ['-c', 'command -v "$0" >/dev/null', program]).status !== 0
  return [...new Set(Object.entries(programs).flatMap(([program, name]) => (isMissing(program) ? [name] : [])))]
}

function prepareFolder(): string {
  const folder = makeRunFolder()
  cpSync(join(ROOT, 'dist'), join(folder, 'dist'), { recursive: true, filter: (path) => !path.endsWith('images') }) // another build may replace dist/
  return folder
}

function enter(script: string, skipFile: string): Promise<number> {
  const argv = [join(ROOT, 'test/parts/in-netns.sh'), process.execPath, script, ...process.argv.slice(2)]
  const child = spawn('bash', argv, { cwd: ROOT, stdio: 'inherit', env: { ...process.env, HEADGATE_SKIP_FILE: skipFile } })
  const forward = (signal: NodeJS.Signals) => child.kill(signal)
  process.on('SIGTERM', forward).on('SIGINT', () => undefined) // the terminal sends SIGINT to the whole group
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve(code ?? 1))
  })
}
