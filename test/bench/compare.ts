/** Compares two kinds of requests in one run: windows of load in the order A B B A, so that the two windows of A are a control (A/A). */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { z } from 'zod'
import { type BenchRoute, type KeyKind, LOAD_CORE, type ModelName, type Rig, type Server, startRig } from './gateways.ts'
import { type BenchSite, type Bound, breaks, cpuMs, median, type Part, quantile, shown, table } from './part.ts'

const run = promisify(execFile)

export interface Side {
  readonly of: 'gateway' | 'bare'
  readonly keys: KeyKind
  /** Default: chat completions. The model servers of the bench speak no Messages, so a message is translated. */
  readonly route?: BenchRoute
}

export interface Comparison {
  readonly name: string
  readonly about: string
  readonly model: ModelName
  readonly bodyBytes: number
  readonly connections: number
  readonly keys: number
  readonly measured: Side
  readonly control: Side
  /** Bounds of measured ÷ control, and of the calls to Redis per measured request. */
  readonly bounds: { readonly cpu?: Bound; readonly p99?: Bound; readonly calls?: Bound }
  /** Pause after a round, so that settlements do not count as cost of the next one, ms. */
  readonly pauseMs?: number
}

export interface Window {
  /** CPU time of the process, µs per request, or per event of a stream. */
  readonly cpu: number
  readonly p99Ms: number
  readonly callsPerRequest: number
  /** Share of the answers that were not expected. */
  readonly wrong: number
}

/** Four windows: control, measured, measured, control. */
export interface Round {
  readonly control: readonly [Window, Window]
  readonly measured: readonly [Window, Window]
}

/** Above this share of unexpected answers a comparison is void. */
const MAX_WRONG = 0.01
/** Streams take 1.3 s each: a shorter window would see few of them end. */
const SHORTEST_STREAM_SECONDS = 4

/** Processes of each clone in a comparison with BASE: two processes of one build differ by some per cent. */
const PROCESSES = 3
/** CPU time of this clone ÷ BASE. */
const BESIDE_BASE: Bound = { must: 1.03 }

/** A part of the bench that makes one comparison; with BASE, also of this clone with the other one under the same load. */
export function comparing(comparison: Comparison): Part {
  return {
    name: comparison.name,
    needs: 'load',
    run: async (site) => {
      const { measured, control, model } = comparison
      const own: Round[] = []
      const beside: Round[] = []
      const processes = site.base === undefined || site.isQuick ? 1 : PROCESSES
      const perProcess = { ...site, rounds: Math.ceil(site.rounds / processes) }
      for (let process = 0; process < processes; process++) {
        const rig = await startRig(site, `${comparison.name}-${process}`)
        const { gateway, base } = rig
        const serverOf = ({ of }: Side): Server => (of === 'gateway' ? gateway : rig.bare[model === 'stream' ? 'stream' : 'plain'])
        try {
          const sides = [
            [serverOf(measured), measured],
            [serverOf(control), control],
          ] as const
          own.push(...(await measure(perProcess, rig, comparison, sides)))
          const clones =
            base &&
            ([
              [gateway, measured],
              [base, measured],
            ] as const)
          if (clones) beside.push(...(await measure(perProcess, rig, comparison, clones)))
        } finally {
          await rig.stop()
        }
      }
      const results = [
        summary(comparison, own),
        ...(beside.length > 0 ? [summary({ name: 'this clone ÷ BASE', bounds: { cpu: BESIDE_BASE } }, beside)] : []),
      ]
      return {
        lines: [comparison.about, ...table([HEAD, ...results.map(({ cells }) => cells)])],
        isMissed: results.some(({ isMissed }) => isMissed),
        data: { own, beside },
      }
    },
  }
}

type Sides = readonly [measured: readonly [Server, Side], control: readonly [Server, Side]]

async function measure(site: BenchSite, rig: Rig, comparison: Comparison, [measured, control]: Sides): Promise<Round[]> {
  const window = ([server, side]: Sides[0]): Promise<Window> => windowOf(site, rig, comparison, { server, ...side })
  for (const side of [measured, control]) await window(side) // warm-up
  const rounds: Round[] = []
  for (let round = 0; round < site.rounds; round++) {
    const first = await window(control)
    const both = [await window(measured), await window(measured)] as const
    rounds.push({ control: [first, await window(control)], measured: both })
    await sleep(comparison.pauseMs ?? 0)
  }
  return rounds
}

async function windowOf(
  site: BenchSite,
  rig: Rig,
  comparison: Comparison,
  { server, keys, route }: Side & { readonly server: Server },
): Promise<Window> {
  const { model, bodyBytes, connections } = comparison
  const isStream = model === 'stream'
  const load = {
    ...{ url: server.url(model, route), connections, seconds: isStream ? Math.max(site.seconds, SHORTEST_STREAM_SECONDS) : site.seconds },
    ...{ bodyFile: rig.bodyFile(model, bodyBytes, route), keysFile: server.keysFile(keys, comparison.keys) },
  }
  const [events, calls, cpu] = [await rig.eventsWritten(), await server.storeCalls(), cpuMs(server.pid)]
  const { requests, refused, broken, p99Ms } = await runLoad(load)
  const micros = (cpuMs(server.pid) - cpu) * 1_000
  const admitted = keys === 'refused' ? comparison.keys : 0 // each of these keys has one request a minute
  const wrong = keys === 'refused' || keys === 'unknown' ? Math.max(0, requests - refused - admitted) : refused
  const units = isStream ? (await rig.eventsWritten()) - events : requests
  return {
    cpu: micros / units,
    p99Ms,
    callsPerRequest: ((await server.storeCalls()) - calls) / requests,
    wrong: (broken + wrong) / requests,
  }
}

const HEAD = ['measured ÷ control', 'CPU', '(least, most)', 'A/A', 'µs of control', 'p99', 'Redis calls a request', '']

export function summary(
  { name, bounds }: Pick<Comparison, 'name' | 'bounds'>,
  rounds: readonly Round[],
): { cells: string[]; isMissed: boolean } {
  const ratios = (of: (window: Window) => number): number[] => rounds.map(({ measured, control }) => mean(measured, of) / mean(control, of))
  const cpus = ratios(({ cpu }) => cpu)
  const values = {
    cpu: median(cpus),
    p99: median(ratios(({ p99Ms }) => p99Ms)),
    calls: median(rounds.map(({ measured }) => mean(measured, ({ callsPerRequest }) => callsPerRequest))),
  }
  const same = median(rounds.map(({ control: [first, last] }) => first.cpu / last.cpu))
  const wrong = Math.max(...rounds.flatMap(({ measured, control }) => [...measured, ...control].map((window) => window.wrong)))
  const names = ['cpu', 'p99', 'calls'] as const
  const isMissed = wrong > MAX_WRONG || names.some((one) => breaks(bounds[one] ?? {}, values[one]))
  const verdicts = names.flatMap((one) => (bounds[one] ? [`${one} ${shown(values[one], bounds[one], '', 3)}`] : []))
  const cells = [
    ...[name, values.cpu.toFixed(3), `(${quantile(cpus, 0).toFixed(3)}, ${quantile(cpus, 1).toFixed(3)})`, same.toFixed(3)],
    ...[median(rounds.map(({ control }) => mean(control, ({ cpu }) => cpu))).toFixed(1), values.p99.toFixed(2), values.calls.toFixed(3)],
    [...verdicts, ...(wrong > MAX_WRONG ? [`VOID: ${(wrong * 100).toFixed(0)} % wrong answers`] : [])].join('; '),
  ]
  return { cells, isMissed }
}

function mean([a, b]: readonly [Window, Window], of: (window: Window) => number): number {
  return (of(a) + of(b)) / 2
}

export interface Load {
  readonly url: string
  readonly connections: number
  readonly seconds: number
  readonly bodyFile: string
  readonly keysFile: string
  /** Think time of each connection; none = a closed loop at full speed. */
  readonly pauseMs?: number
}

const loadResult = z.object({ requests: z.int(), microseconds: z.int(), p50: z.int(), p99: z.int(), broken: z.int(), refused: z.int() })

/** The result of a load. `broken`: requests without an answer. `refused`: answers with a status of 400 or more. */
export interface LoadResult {
  readonly requests: number
  readonly p99Ms: number
  readonly broken: number
  readonly refused: number
}

export async function runLoad({ url, connections, seconds, bodyFile, keysFile, pauseMs }: Load): Promise<LoadResult> {
  const size = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', join(import.meta.dirname, 'load.lua'), url]
  const script = ['--', bodyFile, keysFile, ...(pauseMs === undefined ? [] : [String(pauseMs)])]
  const { stdout } = await run('taskset', ['-c', String(LOAD_CORE), 'wrk', ...size, ...script])
  const line = /^RESULT (.*)$/m.exec(stdout)?.[1]
  if (line === undefined) throw new Error(`wrk gave no result; it printed:\n${stdout}`)
  const { requests, p99, broken, refused } = loadResult.parse(JSON.parse(line))
  return { requests, p99Ms: p99 / 1000, broken, refused }
}
