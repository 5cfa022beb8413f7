/** Turns measurements into the text of a report. Pure. */
import { FORWARDED_CELL, STREAM_EVENTS, STREAM_GAP_MS, type ContenderName } from './cells.ts'
import { ANSWER_BYTES, KEY_COUNT, USED_KEYS } from './fixtures.ts'
import type { Machine } from './machine.ts'
import type { BenchResult, CellResult, Sample } from './measure.ts'
import type { PropagationRow } from './propagation.ts'
import { quantile, ratios, slope, spread, variation, type Spread } from './statistics.ts'
import { table } from './table.ts'
import type { LoadResult } from './wrk.ts'

/** Above this load average before the start, the machine is busy: no goal gets a verdict. */
export const MAX_LOAD_AVERAGE = 2
/** If a direct run varies by more than this, the machine is busy too. */
export const MAX_DIRECT_VARIATION = 0.15

/** One promise about CPU time: contender ÷ contender in one cell. */
export interface Goal {
  readonly name: string
  readonly cell: string
  readonly over: ContenderName
  readonly under: ContenderName
  /** Largest median of the ratios; undefined = only reported. */
  readonly most: number | undefined
}

/** All goals about CPU time. */
export const GOALS: readonly Goal[] = [
  { name: 'CPU per request', cell: '1.5k-c32', over: 'gateway', under: 'bare', most: 1.35 },
  { name: 'CPU per request', cell: '1.5k-c1', over: 'gateway', under: 'bare', most: undefined },
  { name: 'CPU per request', cell: '20k-c32', over: 'gateway', under: 'bare', most: 1.4 },
  { name: 'CPU per request', cell: '20k-c1', over: 'gateway', under: 'bare', most: undefined },
  { name: 'CPU per streamed event', cell: 'sse-c256', over: 'gateway', under: 'bare', most: 1.2 },
  { name: 'CPU per request', cell: '1.5k-c32', over: 'gateway', under: 'nginx', most: undefined },
  { name: 'CPU per streamed event', cell: 'sse-c256', over: 'gateway', under: 'nginx', most: undefined },
]
/** A refusal may cost at most this share of a forwarded request. */
const MOST_OF_REFUSAL = 0.6

/** Whether a goal was met, as one line. */
export interface Verdict {
  readonly text: string
  /** undefined = no verdict, or no goal */
  readonly isMet: boolean | undefined
}

/** The content of a report. */
export interface Report {
  readonly machine: Machine
  /** The command and its settings. */
  readonly command: string
  readonly result: BenchResult
}

/** Why no measurement on this machine is valid now; undefined if measurements are valid. */
export function unfit(machine: Machine): string | undefined {
  if (machine.cores < 2) return 'one core alone: load and contender share it'
  if (machine.loadAverage <= MAX_LOAD_AVERAGE) return undefined
  return `the load average before the start was ${machine.loadAverage.toFixed(2)}, above ${MAX_LOAD_AVERAGE}`
}

/** Why a cell is not valid: errors void it, and a direct run that varied shows that the machine was busy. */
export function invalidCell({ cell, samples }: CellResult): string | undefined {
  const wrong = [...samples].filter(([, all]) => all.some(({ errors }) => errors > 0)).map(([name, all]) => `${name} ${sum(all)}`)
  if (wrong.length > 0) return `void: errors (${wrong.join(', ')})`
  const direct = (samples.get('direct') ?? []).map(({ requestsPerSecond }) => requestsPerSecond)
  const varied = variation(direct)
  if (varied <= MAX_DIRECT_VARIATION) return undefined
  return `not valid: ${cell.name} direct varied by ${percent(varied)}, more than ${percent(MAX_DIRECT_VARIATION)}`
}

/** Compares all goals with the measurements. */
export function verdicts({ machine, result }: Report): readonly Verdict[] {
  const byName = new Map(result.cells.map((one) => [one.cell.name, one]))
  const lines = GOALS.flatMap((goal): Verdict[] => {
    const found = byName.get(goal.cell)
    if (!found) return []
    const values = ratios(cpu(found, goal.over), cpu(found, goal.under))
    const label = `${goal.name}, ${goal.cell}: ${goal.over} / ${goal.under}`
    return [verdictOf({ label, values, most: goal.most, obstacles: [unfit(machine), invalidCell(found)] })]
  })
  const [refused, forwarded] = [byName.get('401-c32'), byName.get(FORWARDED_CELL)]
  if (!refused || !forwarded) return lines
  const values = ratios(cpu(refused, 'gateway'), cpu(forwarded, 'gateway'))
  const obstacles = [unfit(machine), invalidCell(refused), invalidCell(forwarded)]
  return [...lines, verdictOf({ label: 'CPU of a 401 / of a forwarded request, gateway', values, most: MOST_OF_REFUSAL, obstacles })]
}

interface Measured {
  readonly label: string
  readonly values: readonly number[]
  readonly most: number | undefined
  readonly obstacles: readonly (string | undefined)[]
}

function verdictOf({ label, values, most, obstacles }: Measured): Verdict {
  const found = spread(values)
  const obstacle = obstacles.find((one) => one !== undefined)
  const shown = `${label} = ${found ? threeOf(found, 2) : 'nothing measured'}`
  if (obstacle?.startsWith('void') === true) return { text: `${label}: ${obstacle}`, isMet: undefined }
  if (most === undefined) return { text: `${shown}  (reported)`, isMet: undefined }
  if (obstacle !== undefined || !found) return { text: `${shown}, aim <= ${most}: not valid`, isMet: undefined }
  const isMet = found.median <= most
  return { text: `${shown}, aim <= ${most}: ${isMet ? 'met' : 'MISSED'}`, isMet }
}

/** The whole report. */
export function renderReport(report: Report): string {
  const { machine, command, result } = report
  const versions = Object.entries(machine.versions).map(([name, version]) => `${name} ${version}`)
  const reasons = [unfit(machine), ...result.cells.map(invalidCell)].filter((reason) => reason !== undefined)
  return [
    `date       ${machine.date}`,
    `commit     ${machine.commit}`,
    `machine    ${machine.cpu}, ${machine.cores} cores, Linux ${machine.kernel}, load average ${machine.loadAverage.toFixed(2)} before the start`,
    `versions   ${versions.join(', ')}`,
    `command    ${command}`,
    'pinning    contender on core 0; load (wrk, one thread), mocks and Redis on core 1',
    ...SETUP,
    '',
    ...result.cells.flatMap(cellLines),
    'ratios of CPU time (min / median / max over the rounds)',
    ...verdicts(report).map(({ text }) => `  ${text}`),
    '',
    ...memoryLines(result),
    `redis      ${result.redisCommandsPerRequest.toFixed(5)} commands per request through the gateway, heartbeats and log reads included`,
    `voided     ${
      result.cells
        .filter((one) => invalidCell(one)?.startsWith('void'))
        .map((one) => one.cell.name)
        .join(', ') || 'no cell'
    }`,
    ...(reasons.length === 0 ? [] : ['NOT VALID:', ...reasons.map((reason) => `  ${reason}`)]),
    ...NOT_MEASURED,
  ].join('\n')
}

const SETUP = [
  'features   gateway: authentication over ' +
    `${KEY_COUNT.toLocaleString('en')} keys (${USED_KEYS} of them in use), scope, the model rule, metrics, access log 1 %, Redis projection followed;`,
  '           nginx: a map of the same keys, unbuffered; bare: none (node:http + undici.dispatch)',
  `mocks      nginx that answers ${ANSWER_BYTES} bytes of JSON at once; a Node server that streams ${STREAM_EVENTS} events ${STREAM_GAP_MS} ms apart`,
]

const NOT_MEASURED = [
  'not measured here: a 20 ms mock, c = 256, gaps between streamed events, fixed offered rates, Redis stopped',
  '           or slow, 100 k keys, TLS, translated routes, other gateways, more than one gateway process, and whatever limits will cost',
]

function cellLines(result: CellResult): string[] {
  const { cell, samples } = result
  const isStream = cell.kind === 'stream'
  const unit = isStream ? 'event' : 'request'
  const title = `${cell.name}: ${cell.kind}, body ${cell.bodyBytes} bytes, ${cell.connections} connections`
  const head = ['', `CPU us/${unit}`, isStream ? 'events/s' : 'requests/s', 'p50 ms', 'p99 ms', isStream ? '' : 'added p50 / p99 ms']
  const direct = samples.get('direct')
  const rows = [...samples].map(([name, all]) => {
    const cpuTimes = all.flatMap(({ cpuMicros }) => cpuMicros ?? [])
    const rate = all.map((sample) => (isStream ? sample.eventsPerSecond : sample.requestsPerSecond))
    const latencies = isStream
      ? ['', '', ''] // the time of a whole stream depends on the mock alone
      : [
          three(
            all.map(({ p50Ms }) => p50Ms),
            3,
          ),
          three(
            all.map(({ p99Ms }) => p99Ms),
            2,
          ),
          direct === undefined || name === 'direct' ? '' : added(all, direct),
        ]
    return [name, three(cpuTimes, 1), three(rate, 0), ...latencies]
  })
  const obstacle = invalidCell(result)
  return [obstacle === undefined ? title : `${title}  [${obstacle}]`, ...table([head, ...rows]), '']
}

/** Added latency: the median through the contender minus the median of the direct calls. */
function added(all: readonly Sample[], direct: readonly Sample[]): string {
  const of = (read: (sample: Sample) => number): number => quantile(all.map(read), 0.5) - quantile(direct.map(read), 0.5)
  return `${of(({ p50Ms }) => p50Ms).toFixed(3)} / ${of(({ p99Ms }) => p99Ms).toFixed(2)}`
}

function memoryLines({ memory }: BenchResult): string[] {
  return memory.map(({ name, idle, after }) => {
    const text = `RSS idle ${idle.rssMb.toFixed(0)} MB, after ${after.rssMb.toFixed(0)} MB, peak ${after.peakRssMb.toFixed(0)} MB`
    return `memory     ${name.padEnd(8)} ${text}`
  })
}

/** A change must take effect on every gateway within this time, ms; the aim is a tenth of it. */
export const PROPAGATION_MUST_MS = 1_000
export const PROPAGATION_AIM_MS = 100

/** Lines on how fast changes take effect. */
export function renderPropagation(rows: readonly PropagationRow[]): string {
  const lines = rows.map((row) => {
    const at = (share: number): string => quantile(row.times, share).toFixed(0)
    return ['', row.change, String(row.times.length), at(0.5), at(0.99), at(1), propagationVerdict(row)]
  })
  return table([['', 'change', 'n', 'p50 ms', 'p99 ms', 'max ms', ''], ...lines]).join('\n')
}

function propagationVerdict(row: PropagationRow): string {
  if (isTooSlow(row)) return 'TOO SLOW'
  return quantile(row.times, 0.99) <= PROPAGATION_AIM_MS ? 'aim met' : 'met'
}

/** Whether a single change took longer than it may. */
export function isTooSlow({ times }: PropagationRow): boolean {
  return quantile(times, 1) > PROPAGATION_MUST_MS
}

/** Memory of one process over time: seconds since the first reading, MB. */
export interface MemoryTrace {
  readonly name: string
  readonly points: readonly (readonly [seconds: number, rssMb: number])[]
}

/** The first part of a trace shows caches and compiled code filling up; the slope is that of the rest. */
const SETTLING_SHARE = 0.4

/** Lines on memory and requests of a soak; `loads` by gateway. */
export function renderSoak(traces: readonly MemoryTrace[], loads: readonly LoadResult[]): string {
  const memoryRows = traces.map(({ name, points }) => {
    const settled = points.slice(Math.floor(points.length * SETTLING_SHARE))
    const values = [points.at(0)?.[1], Math.max(...points.map(([, rss]) => rss)), points.at(-1)?.[1], slope(settled) * 60]
    return ['', name, ...values.map((value) => (value ?? Number.NaN).toFixed(1))]
  })
  const loadRows = loads.map(({ requests, seconds, p50Ms, p99Ms, broken, refused }, i) => {
    return ['', `gateway ${i}`, (requests / seconds).toFixed(0), p50Ms.toFixed(2), p99Ms.toFixed(2), String(broken), String(refused)]
  })
  return [
    `memory (the slope is that of the last ${percent(1 - SETTLING_SHARE)} of the time; both idle and busy moments are in it)`,
    ...table([['', 'process', 'first MB', 'max MB', 'last MB', 'MB/min'], ...memoryRows]),
    'load',
    ...table([['', '', 'requests/s', 'p50 ms', 'p99 ms', 'broken', 'refused'], ...loadRows]),
  ].join('\n')
}

function cpu({ samples }: CellResult, name: ContenderName): readonly (number | undefined)[] {
  return (samples.get(name) ?? []).map(({ cpuMicros }) => cpuMicros)
}

function sum(samples: readonly Sample[]): number {
  return samples.reduce((total, { errors }) => total + errors, 0)
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`
}

function three(values: readonly number[], digits: number): string {
  const found = spread(values)
  return found === undefined ? '-' : threeOf(found, digits)
}

function threeOf({ min, median, max }: Spread, digits: number): string {
  return [min, median, max].map((value) => value.toFixed(digits)).join(' / ')
}
