/** Reads and parses the kernel's data about processes and about this machine in /proc. */
import { readFileSync } from 'node:fs'

/** Unit of utime and stime on every Linux that Node runs on: USER_HZ is 100. */
const MS_PER_TICK = 10

/** Memory of one process, MB of 10^6 bytes. */
export interface Memory {
  readonly rssMb: number
  readonly peakRssMb: number
}

/**
 * CPU time of a process, user and system, of all its threads.
 * @param stat content of /proc/<pid>/stat; the name in it may hold spaces and brackets, so it is read from its last bracket on (proc(5))
 * @returns ms
 */
export function parseCpuMs(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = Number(fields[11]) + Number(fields[12]) // utime is field 14 of proc(5), stime 15; the first two are cut off
  if (!Number.isFinite(ticks)) throw new TypeError('this is no /proc/<pid>/stat')
  return ticks * MS_PER_TICK
}

/** @param status content of /proc/<pid>/status */
export function parseMemory(status: string): Memory {
  const mb = (name: string): number => (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1024) / 1e6
  return { rssMb: mb('VmRSS'), peakRssMb: mb('VmHWM') }
}

/** @param cpuinfo content of /proc/cpuinfo */
export function parseCpuModel(cpuinfo: string): string {
  return /^(?:model name|CPU part)\s*:\s*(.+)$/m.exec(cpuinfo)?.[1] ?? 'unknown'
}

/** A process and its running descendants. */
export function processTree(pid: number): number[] {
  const children = read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
  return [pid, ...children.flatMap(processTree)]
}

/** CPU time of processes together, ms. */
export function cpuMs(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + parseCpuMs(read(`/proc/${pid}/stat`)), 0)
}

/** Memory of processes together. */
export function memory(pids: readonly number[]): Memory {
  const all = pids.map((pid) => parseMemory(read(`/proc/${pid}/status`)))
  const sum = (name: keyof Memory): number => all.reduce((total, one) => total + one[name], 0)
  return { rssMb: sum('rssMb'), peakRssMb: sum('peakRssMb') }
}

/** MB of 10^6 bytes in MiB, the unit in which Kubernetes limits are written. */
export function toMib(mb: number): number {
  return (mb * 1e6) / 2 ** 20
}

/** Load average of the last minute. */
export function loadAverage(): number {
  return Number(read('/proc/loadavg').split(' ')[0])
}

/** Name of the CPU. */
export function cpuModel(): string {
  return parseCpuModel(read('/proc/cpuinfo'))
}

function read(file: string): string {
  return readFileSync(file, 'utf8')
}
