import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const MODULE = join(import.meta.dirname, 'hash-priority.ts')
/** Lowers the priority in a process of its own, and prints the priority of each thread by its name. */
const SCRIPT = `
  import { readdirSync, readFileSync } from 'node:fs'
  import { getPriority } from 'node:os'
  import { lowerHashPriority } from ${JSON.stringify(MODULE)}
  await lowerHashPriority()
  const threads = readdirSync('/proc/self/task').map((task) => [
    readFileSync('/proc/self/task/' + task + '/comm', 'utf8').trim(),
    getPriority(Number(task)) - getPriority(),
  ])
  process.stdout.write(JSON.stringify(threads))`

test.skipIf(process.platform !== 'linux')('the threads that hash passwords have a lower priority, and all others keep theirs', () => {
  const text = execFileSync(process.execPath, ['--input-type=module-typescript', '-e', SCRIPT], { encoding: 'utf8' })
  const threads = JSON.parse(text) as readonly (readonly [string, number])[]
  const pool = threads.filter(([name]) => name === 'libuv-worker')
  expect(pool.length).toBeGreaterThanOrEqual(2)
  expect(pool.map(([, lower]) => lower)).toEqual(pool.map(() => 10))
  expect(threads.filter(([name, lower]) => name !== 'libuv-worker' && lower !== 0)).toEqual([])
})
