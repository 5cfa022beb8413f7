/** The load generator: wrk with a fixed body and a list of keys. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'

const SCRIPT = join(import.meta.dirname, 'load.lua')
const run = promisify(execFile)

/** One run of wrk. */
export interface Load {
  readonly url: string
  readonly connections: number
  readonly seconds: number
  readonly bodyFile: string
  /** One Credential a line. */
  readonly keysFile: string
  /** Think time of each connection; none = a closed loop at full speed. */
  readonly pauseMs?: number
}

/** The result of a run. */
export interface LoadResult {
  readonly requests: number
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Requests that ended without an answer. */
  readonly broken: number
  /** Answers with a status of 400 or more. */
  readonly refused: number
}

const result = z.object({
  requests: z.int(),
  microseconds: z.int(),
  p50: z.int(),
  p99: z.int(),
  broken: z.int(),
  refused: z.int(),
})

/** The command of a load. @param core to which the load is pinned; undefined = not pinned */
export function wrkCommand({ url, connections, seconds, bodyFile, keysFile, pauseMs }: Load, core?: number): string[] {
  const pause = pauseMs === undefined ? [] : [String(pauseMs)]
  const size = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s']
  const pinned = core === undefined ? [] : ['taskset', '-c', String(core)]
  return [...pinned, 'wrk', ...size, '-s', SCRIPT, url, '--', bodyFile, keysFile, ...pause]
}

/** Runs a load to its end. */
export async function runLoad(load: Load, core?: number): Promise<LoadResult> {
  const [command = '', ...args] = wrkCommand(load, core)
  return parseResult((await run(command, args)).stdout)
}

/** @throws Error with the output of wrk if it holds no result */
export function parseResult(output: string): LoadResult {
  const line = /^RESULT (.*)$/m.exec(output)?.[1]
  if (line === undefined) throw new Error(`wrk gave no result; it printed:\n${output}`)
  const { requests, microseconds, p50, p99, broken, refused } = result.parse(JSON.parse(line))
  return { requests, seconds: microseconds / 1e6, p50Ms: p50 / 1000, p99Ms: p99 / 1000, broken, refused }
}
