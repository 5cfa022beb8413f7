/** The cost of limits: one gateway serves, in turn, keys with limits on requests and tokens and a budget, and keys without limits. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BodyKind, type KeyKind, type LimitedBench, LOADED_KEYS, startLimitedBench } from './limited-gateway.ts'
import { LOAD_CORE } from './contenders.ts'
import type { Inside } from './inside.ts'
import type { PartResult, Progress } from './operator-parts.ts'
import { cpuMs } from './proc.ts'
import { quantile, spread } from './statistics.ts'
import { table } from './table.ts'
import { runLoad } from './wrk.ts'

/** How long to measure. */
export interface LimitsOptions {
  /** Rounds of four windows: without, with, with, without. */
  readonly rounds: number
  readonly seconds: number
}

/** One comparison. */
interface Cell {
  readonly name: string
  readonly kind: KeyKind
  /** The kind of keys to compare with. */
  readonly base: KeyKind
  readonly keys: number
  readonly body: BodyKind
  readonly connections: number
  /** Largest CPU time as a multiple of that of `base`; undefined: printed without a verdict. */
  readonly mostCpu?: number
  readonly mostP99?: number
  readonly mostCalls?: number
}

const FEW_KEYS = 50
const CELLS: readonly Cell[] = [
  { name: '50 of 10,000 keys', kind: 'limited', base: 'bare', keys: FEW_KEYS, body: 'plain', connections: 32, mostCpu: 1.1 },
  {
    name: '50 of 10,000 keys, per streamed event',
    kind: 'limited',
    base: 'bare',
    keys: FEW_KEYS,
    body: 'stream',
    connections: 64,
    mostCpu: 1.1,
  },
  {
    name: 'all of 10,000 keys',
    kind: 'limited',
    base: 'bare',
    keys: LOADED_KEYS,
    body: 'plain',
    connections: 32,
    mostCpu: 1.5,
    mostP99: 1.5,
    mostCalls: 1.1,
  },
  {
    name: 'holds above the float',
    kind: 'limited',
    base: 'bare',
    keys: FEW_KEYS,
    body: 'dear',
    connections: 32,
    mostCpu: 1.5,
    mostP99: 1.5,
    mostCalls: 1.1,
  },
  { name: 'refused', kind: 'refused', base: 'bare', keys: FEW_KEYS, body: 'plain', connections: 32, mostCalls: 0.01 },
  {
    name: 'refused ÷ forwarded with limits',
    kind: 'refused',
    base: 'limited',
    keys: FEW_KEYS,
    body: 'plain',
    connections: 32,
    mostCpu: 0.6,
    mostCalls: 0.01,
  },
]

interface Window {
  /** µs per request, or per event. */
  readonly cpu: number
  readonly p99Ms: number
  readonly callsPerRequest: number
  /** Share of the calls with an unexpected answer. */
  readonly wrong: number
}

interface Round {
  readonly base: readonly [Window, Window]
  readonly limited: readonly [Window, Window]
}

/** Share of unexpected answers above which a window is void. */
const MOST_WRONG = 0.01
/** Pause after a load on thousands of keys, so that their settlements do not count as cost of the next cell, ms. */
const AFTERMATH_MS = 16_000
/** Streams take 1.3 s each. */
const SHORTEST_STREAM_SECONDS = 4

/** Runs all comparisons in one gateway process. */
export async function limitsPart({ folder }: Inside, { rounds, seconds }: LimitsOptions, say: Progress): Promise<PartResult> {
  const bench = await startLimitedBench(join(folder, 'limits'))
  try {
    const results: { cell: Cell; rounds: Round[] }[] = CELLS.map((cell) => ({ cell, rounds: [] }))
    for (const { cell } of results) await roundOf(bench, cell, seconds) // warm-up
    for (let round = 0; round < rounds; round += 1) {
      say(`limits: round ${round + 1} of ${rounds}`)
      for (const { cell, rounds: done } of results) done.push(await roundOf(bench, cell, seconds))
    }
    const rows = results.map(({ cell, rounds: done }) => rowOf(cell, done))
    const head = [
      'keys with limits ÷ without, if not said otherwise',
      'CPU',
      '(least, most)',
      'A/A',
      'µs of that',
      'p99',
      'Redis calls a request',
      '',
    ]
    const text = [
      `limits: requests, tokens and a budget, of 10,000 keys; medians of ${rounds} rounds ABBA of ${seconds} s windows; ${FEW_KEYS} keys where not said otherwise`,
      ...table([head, ...rows.map(({ cells }) => cells)]),
    ].join('\n')
    return { text, isMissed: rows.some(({ isMissed }) => isMissed), data: results }
  } finally {
    await bench.stop()
  }
}

async function roundOf(bench: LimitedBench, cell: Cell, seconds: number): Promise<Round> {
  const window = (kind: KeyKind): Promise<Window> => windowOf(bench, cell, kind, seconds)
  const first = await window(cell.base)
  const limited = [await window(cell.kind), await window(cell.kind)] as const
  const base = [first, await window(cell.base)] as const
  if (cell.keys > FEW_KEYS) await sleep(AFTERMATH_MS)
  return { base, limited }
}

async function windowOf(bench: LimitedBench, { body, keys, connections }: Cell, kind: KeyKind, seconds: number): Promise<Window> {
  const isStream = body === 'stream'
  const load = {
    url: bench.url,
    connections,
    seconds: isStream ? Math.max(seconds, SHORTEST_STREAM_SECONDS) : seconds,
    bodyFile: bench.bodyFile(body),
    keysFile: bench.keysFile(kind, keys),
  }
  const [events, calls, cpu] = [await bench.eventsWritten(), await bench.storeCalls(), cpuMs([bench.pid])]
  const { requests, refused, broken, p99Ms } = await runLoad(load, LOAD_CORE)
  const spent = cpuMs([bench.pid]) - cpu
  const wrong = kind === 'refused' ? requests - refused - keys : refused
  const units = isStream ? (await bench.eventsWritten()) - events : requests
  const callsPerRequest = ((await bench.storeCalls()) - calls) / requests
  return { cpu: (spent * 1_000) / units, p99Ms, callsPerRequest, wrong: (broken + Math.max(0, wrong)) / requests }
}

function rowOf(cell: Cell, rounds: readonly Round[]): { readonly cells: string[]; readonly isMissed: boolean } {
  const ratio = (of: (window: Window) => number): number[] => rounds.map(({ limited, base }) => mean(limited, of) / mean(base, of))
  const cpu = spread(ratio(cpuOf)) ?? { min: 0, median: 0, max: 0 }
  const p99 = middle(ratio(({ p99Ms }) => p99Ms))
  const calls = middle(rounds.map(({ limited }) => mean(limited, ({ callsPerRequest }) => callsPerRequest)))
  const same = middle(rounds.map(({ base: [a, b] }) => a.cpu / b.cpu))
  const micros = middle(rounds.map(({ base }) => mean(base, cpuOf)))
  const musts = [
    { what: 'CPU', seen: cpu.median, most: cell.mostCpu },
    { what: 'p99', seen: p99, most: cell.mostP99 },
    { what: 'calls', seen: calls, most: cell.mostCalls },
  ].filter(({ most }) => most !== undefined)
  const wrong = Math.max(...rounds.flatMap(({ base, limited }) => [...base, ...limited].map((window) => window.wrong)))
  const isVoid = wrong > MOST_WRONG
  const isMissed = isVoid || musts.some(({ seen, most = 0 }) => seen > most)
  const verdict = `must ${musts.map(({ what, most }) => `${what} <= ${most}`).join(', ')}${isMissed ? '   MISSED' : ''}${isVoid ? `, VOID: ${(100 * wrong).toFixed(0)} % wrong answers` : ''}`
  const range = `(${cpu.min.toFixed(3)}, ${cpu.max.toFixed(3)})`
  const measured = [cpu.median.toFixed(3), range, same.toFixed(3), micros.toFixed(1), p99.toFixed(2), calls.toFixed(3)]
  return { cells: [cell.name, ...measured, verdict], isMissed }
}

const cpuOf = ({ cpu }: Window): number => cpu

function mean([a, b]: readonly [Window, Window], of: (window: Window) => number): number {
  return (of(a) + of(b)) / 2
}

function middle(values: readonly number[]): number {
  return quantile(values, 0.5)
}
