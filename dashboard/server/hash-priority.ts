/**
 * Lets password hashes give way to the thread that answers requests: with as many hashes as cores, each answer would otherwise wait for a slice of
 * time. Node runs hashes in the thread pool of libuv and names its threads; Linux keeps a priority for each thread. Elsewhere nothing happens.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { getPriority, setPriority } from 'node:os'

const TASKS = '/proc/self/task'
const POOL_THREAD = 'libuv-worker'
/** A ninth of the weight of the other threads: hashes still get a share of a busy machine, and all of an idle one. */
const NICER = 10
const NICEST = 19

/** @returns how many threads have a lower priority now */
export async function lowerHashPriority(): Promise<number> {
  try {
    await readFile('/dev/null') // the first job starts the threads
    const pool = readdirSync(TASKS).filter((task) => readFileSync(`${TASKS}/${task}/comm`, 'utf8').trim() === POOL_THREAD)
    const nice = Math.min(NICEST, getPriority() + NICER)
    for (const task of pool) setPriority(Number(task), nice)
    return pool.length
  } catch {
    return 0 // no Linux, or a sandbox that forbids it
  }
}
