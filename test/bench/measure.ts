/** Runs the cells: warm-up, then rounds of windows, each contender in its turn. */
import { readFileSync } from 'node:fs'
import { turnOrder, type Cell, type ContenderName } from './cells.ts'
import { LOAD_CORE, type Bench, type Contender } from './contenders.ts'
import { cpuMs, memory, type Memory } from './proc.ts'
import { runLoad } from './wrk.ts'

/** One window of one contender in one cell. */
export interface Sample {
  /** Number of answers; of streams, only whole answers count. */
  readonly requests: number
  readonly requestsPerSecond: number
  /** CPU time of all processes of the contender, µs per request, or per event of a stream; undefined for `direct`. */
  readonly cpuMicros: number | undefined
  readonly p50Ms: number
  readonly p99Ms: number
  /** Streamed events that the mock wrote per second; 0 for the other kinds. */
  readonly eventsPerSecond: number
  /** Requests with an unexpected result. */
  readonly errors: number
}

/** One cell with its samples by round. */
export interface CellResult {
  readonly cell: Cell
  readonly samples: ReadonlyMap<ContenderName, readonly Sample[]>
}

/** Memory of one contender before the first request and after the last one. */
export interface MemoryResult {
  readonly name: ContenderName
  readonly idle: Memory
  readonly after: Memory
}

/** All measurements of the contenders. */
export interface BenchResult {
  readonly cells: readonly CellResult[]
  readonly memory: readonly MemoryResult[]
  /** Commands that Redis got from all clients during the load, per request through the gateway. */
  readonly redisCommandsPerRequest: number
}

/** How long to measure. */
export interface MeasureOptions {
  readonly cells: readonly Cell[]
  readonly rounds: number
  readonly seconds: number
  readonly warmupSeconds: number
  /** Called with each line of progress. */
  readonly progress: (line: string) => void
}

/** Streams take 1.3 s each: a shorter window would see few of them end. */
const SHORTEST_STREAM_SECONDS = 3

/** @throws Error when a contender does not answer as it must before anything is measured */
export async function measure(bench: Bench, options: MeasureOptions): Promise<BenchResult> {
  const { cells, rounds, seconds, warmupSeconds, progress } = options
  const idle = memories(bench)
  const commandsBefore = await redisCommands(bench)
  for (const cell of cells) await prove(bench, cell)
  if (warmupSeconds > 0) {
    progress(`warm-up: ${warmupSeconds} s for each contender in each cell`)
    for (const cell of cells) for (const name of cell.contenders) await window(bench, cell, contenderOf(bench, name), warmupSeconds)
  }
  const samples = cells.map((cell) => new Map<ContenderName, Sample[]>(cell.contenders.map((name) => [name, []])))
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1} of ${rounds}`)
    for (const [i, cell] of cells.entries()) {
      for (const name of turnOrder(cell.contenders, round)) {
        samples[i]?.get(name)?.push(await window(bench, cell, contenderOf(bench, name), seconds))
      }
    }
  }
  const results = cells.map((cell, i) => ({ cell, samples: samples[i] ?? new Map<ContenderName, Sample[]>() }))
  const requests = results.flatMap((result) => result.samples.get('gateway') ?? []).reduce((sum, sample) => sum + sample.requests, 0)
  return {
    cells: results,
    memory: memories(bench).map((after, i) => ({ name: after.name, idle: idle[i]?.memory ?? after.memory, after: after.memory })),
    redisCommandsPerRequest: ((await redisCommands(bench)) - commandsBefore) / Math.max(1, requests),
  }
}

async function window(bench: Bench, cell: Cell, contender: Contender, seconds: number): Promise<Sample> {
  const isStream = cell.kind === 'stream'
  const pids = contender.pids(cell.kind)
  const load = {
    url: contender.url(cell.kind),
    connections: cell.connections,
    seconds: isStream ? Math.max(seconds, SHORTEST_STREAM_SECONDS) : seconds,
    bodyFile: bench.files.body(cell),
    keysFile: bench.files.keys(cell),
  }
  const eventsBefore = isStream ? await bench.eventsWritten() : 0
  const cpuBefore = cpuMs(pids)
  const result = await runLoad(load, LOAD_CORE)
  const cpu = cpuMs(pids) - cpuBefore
  const events = isStream ? (await bench.eventsWritten()) - eventsBefore : 0
  const { requests, p50Ms, p99Ms, broken, refused } = result
  const wrongStatus = cell.kind === 'refused' ? requests - refused : refused
  return {
    ...{ requests, p50Ms, p99Ms },
    requestsPerSecond: requests / result.seconds,
    cpuMicros: pids.length === 0 ? undefined : (cpu * 1000) / Math.max(1, isStream ? events : requests),
    eventsPerSecond: events / result.seconds,
    errors: broken + wrongStatus,
  }
}

/** @throws Error when a contender does not answer the cell's request exactly as the mock does, or with 401 in a cell of refusals */
async function prove(bench: Bench, cell: Cell): Promise<void> {
  const [key = ''] = readFileSync(bench.files.keys(cell), 'utf8').split('\n')
  const body = readFileSync(bench.files.body(cell))
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const ask = async (name: ContenderName): Promise<{ readonly status: number; readonly text: string }> => {
    const answer = await fetch(contenderOf(bench, name).url(cell.kind), { method: 'POST', headers, body })
    return { status: answer.status, text: await answer.text() }
  }
  const expected = await ask('direct')
  for (const name of cell.contenders) {
    const { status, text } = await ask(name)
    const isRight = cell.kind === 'refused' ? status === 401 : status === 200 && text === expected.text
    if (!isRight) throw new Error(`${cell.name}: ${name} answered ${status} with ${text.length} bytes: ${text.slice(0, 200)}`)
  }
}

function contenderOf(bench: Bench, name: ContenderName): Contender {
  const found = bench.contenders.get(name)
  if (!found) throw new TypeError(`no contender ${name}`)
  return found
}

function memories(bench: Bench): readonly { readonly name: ContenderName; readonly memory: Memory }[] {
  const measured = [...bench.contenders.values()].filter(({ name }) => name !== 'direct')
  return measured.map((contender) => ({ name: contender.name, memory: memory(contender.pids('plain')) }))
}

async function redisCommands(bench: Bench): Promise<number> {
  return Number(/^total_commands_processed:(\d+)/m.exec(await bench.redis.admin.info('stats'))?.[1] ?? 0)
}
