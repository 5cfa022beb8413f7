/**
 * Runs a measurement in a network namespace of its own, since the gateway calls no loopback address, with a run folder
 * and a copy of the bundles. On a machine that lacks something it prints `SKIPPED: reason`, which is not a failure.
 */
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binFolder } from '../support/control-plane.ts'
import { makeRunFolder } from '../support/run-folder.ts'
import type { Part } from './part.ts'

const ROOT = join(import.meta.dirname, '../..')
/** Exit code of `in-netns.sh` when there can be no namespace. */
const CANNOT_RUN = 3

/** Programs and their Debian packages. */
const PACKAGES: Readonly<Record<Part['needs'], Readonly<Record<string, string>>>> = {
  redis: { 'redis-server': 'redis-server', ip: 'iproute2' },
  load: { nginx: 'nginx-light', wrk: 'wrk', taskset: 'util-linux' },
  'control-plane': {},
}

export interface Inside {
  readonly ip: string
  readonly folder: string
}

export interface Measurement {
  readonly script: string
  readonly needs: ReadonlySet<Part['needs']>
  readonly run: (inside: Inside) => Promise<number>
}

/**
 * Runs a measurement inside a namespace. Outside of a namespace, starts the calling program again inside a new one.
 * @returns the exit code
 */
export async function runInside({ script, needs, run }: Measurement): Promise<number> {
  process.env.PATH = `${process.env.PATH}:/usr/sbin:/sbin` // where Debian keeps nginx
  const ip = process.env.LAB_IP
  if (ip !== undefined) return run({ ip, folder: prepareFolder() })
  const missing = missingPrograms(needs)
  if (missing !== undefined) return skipped(missing)
  const scratch = mkdtempSync(join(tmpdir(), 'headgate-bench-'))
  const skipFile = join(scratch, 'skip')
  try {
    const code = await enter(script, skipFile)
    return code === CANNOT_RUN && existsSync(skipFile) ? skipped(readFileSync(skipFile, 'utf8').trim()) : code
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

function skipped(reason: string): number {
  process.stdout.write(`SKIPPED: ${reason}\n`)
  return 0
}

function missingPrograms(needs: ReadonlySet<Part['needs']>): string | undefined {
  const programs = Object.assign({}, PACKAGES.redis, ...[...needs].map((need) => PACKAGES[need])) as Record<string, string>
  const isMissing = (program: string): boolean => spawnSync('bash', ['-c', 'command -v "$0" >/dev/null', program]).status !== 0
  const missing = new Set(Object.entries(programs).flatMap(([program, name]) => (isMissing(program) ? [name] : [])))
  if (missing.size > 0)
    return `missing Debian packages; install them with: sudo apt-get install -y --no-install-recommends ${[...missing].join(' ')}`
  const kubernetes = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl', 'helm']
  const isBuilt = !needs.has('control-plane') || kubernetes.every((name) => existsSync(join(binFolder(), name)))
  return isBuilt ? undefined : 'the Kubernetes programs are not built yet; `make integration` builds them'
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
