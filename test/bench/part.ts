/** What the parts of `make bench` share: their shape, the text of their results, a few statistics, and readings from /proc. */
import { readFileSync } from 'node:fs'

export interface BenchSite {
  readonly ip: string
  /** Run folder; has `dist/` with the bundles of this clone. */
  readonly folder: string
  readonly base: string | undefined
  /** A trial run of some minutes; its numbers mean nothing. */
  readonly isQuick: boolean
  readonly rounds: number
  /** Number of keys of the part `scale`. */
  readonly keys: number
  /** Length of one window of load, s. */
  readonly seconds: number
  readonly say: (line: string) => void
}

export interface Part {
  readonly name: string
  /** `load`: nginx and wrk. `control-plane`: the Kubernetes programs that `make integration` builds. */
  readonly needs: 'load' | 'control-plane' | 'redis'
  readonly run: (site: BenchSite) => Promise<PartResult>
}

export interface PartResult {
  readonly lines: readonly string[]
  readonly isMissed: boolean
  /** Everything that was measured, for the JSON beside the report. */
  readonly data: unknown
}

/** The bound of one value: the build of the bench fails above `must`; `aim` is only printed. */
export interface Bound {
  readonly must?: number
  readonly aim?: number
}

/** Whether a value breaks its bound. A value that is not a number does. */
export function breaks({ must }: Bound, value: number): boolean {
  return must !== undefined && !(value <= must)
}

/** `12.3 ms (must <= 20: held; aim <= 10: missed)`. */
export function shown(value: number, bound: Bound = {}, unit = '', digits = 1): string {
  const one = (word: string, most: number): string => `${word} <= ${most}: ${value <= most ? 'held' : 'MISSED'}`
  const bounds = [
    ...(bound.must === undefined ? [] : [one('must', bound.must)]),
    ...(bound.aim === undefined ? [] : [one('aim', bound.aim)]),
  ]
  const text = `${value.toFixed(digits)}${unit === '' ? '' : ` ${unit}`}`
  return bounds.length === 0 ? text : `${text} (${bounds.join('; ')})`
}

/** Rows as lines of text, each column as wide as its widest cell. @param rows the first row is the head */
export function table(rows: ReadonlyArray<readonly string[]>): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  return rows.map((row) => `  ${row.map((text, column) => text.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd())
}

/** The same for rows by the names of their columns. */
export function tableOf(rows: ReadonlyArray<Readonly<Record<string, string>>>): string[] {
  return table([Object.keys(rows[0] ?? {}), ...rows.map((row) => Object.values(row))])
}

/** The value at a share (0 to 1) of the sorted values, interpolated between neighbours; NaN without any value. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const place = share * (sorted.length - 1)
  const below = sorted[Math.floor(place)] ?? Number.NaN
  const above = sorted[Math.ceil(place)] ?? Number.NaN
  return below + (above - below) * (place - Math.floor(place))
}

export const median = (values: readonly number[]): number => quantile(values, 0.5)

/** Things to compare, in reverse order in every second round (A B, B A), so that slow changes of the machine favour none of them. */
export function inTurn<T>(things: readonly (T | undefined)[], round: number): T[] {
  const all = things.filter((one) => one !== undefined)
  return round % 2 === 0 ? all : all.toReversed()
}

/** CPU time of a process, user and system, of all its threads, ms. */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ') // the name in brackets may hold spaces and brackets (proc(5))
  return (Number(fields[11]) + Number(fields[12])) * 10 // utime and stime, in ticks of USER_HZ, which is 100 wherever Node runs
}

/** Resident memory of a process and its peak, MiB. */
export function memoryMib(pid: number): { readonly rss: number; readonly peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const mib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024
  return { rss: mib('VmRSS'), peak: mib('VmHWM') }
}

const PROGRESS_MS = 10_000

/** Prints a line every 10 s while `work` runs. @param done what `work` has done so far, by name; the line has each rate since the last one too */
export async function withProgress<T>(
  site: BenchSite,
  name: string,
  done: () => Readonly<Record<string, number>>,
  work: () => Promise<T>,
): Promise<T> {
  let last = done()
  const report = setInterval(() => {
    const now = done()
    const each = Object.entries(now).map(
      ([what, count]) => `${count} ${what} (${(((count - (last[what] ?? 0)) * 1_000) / PROGRESS_MS).toFixed(0)}/s)`,
    )
    last = now
    site.say(`${name}: ${each.join(', ')}`)
  }, PROGRESS_MS)
  try {
    return await work()
  } finally {
    clearInterval(report)
  }
}
