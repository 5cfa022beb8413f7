/** One folder per test run in .headgate/, with the log of every part. The folders of the last runs stay, for failures. */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const RUNS = join(import.meta.dirname, '../../.headgate/test-runs')
const KEEP = 3

/** Makes the folder of this run, and removes the folders of old runs. */
export function makeRunFolder(): string {
  mkdirSync(RUNS, { recursive: true })
  const old = readdirSync(RUNS).sort().slice(0, -KEEP)
  for (const name of old) rmSync(join(RUNS, name), { recursive: true, force: true })
  const name = new Date().toISOString().replaceAll(/[:.]/g, '-')
  const folder = join(RUNS, existsSync(join(RUNS, name)) ? `${name}-${process.pid}` : name)
  mkdirSync(folder, { mode: 0o700 })
  return folder
}
