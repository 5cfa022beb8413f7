/** One folder per test run below .headgate/, with the log of every part; it stays until the next run, so that a failure can be read up. */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const RUNS = join(import.meta.dirname, '../../.headgate/test-runs')
/** Runs that are kept. */
const KEEP = 3

/** Makes the folder of this run and removes those of runs long over. */
export function makeRunFolder(): string {
  mkdirSync(RUNS, { recursive: true })
  const old = readdirSync(RUNS).sort().slice(0, -KEEP)
  for (const name of old) rmSync(join(RUNS, name), { recursive: true, force: true })
  const name = new Date().toISOString().replaceAll(/[:.]/g, '-')
  const folder = join(RUNS, existsSync(join(RUNS, name)) ? `${name}-${process.pid}` : name)
  mkdirSync(folder, { mode: 0o700 })
  return folder
}
