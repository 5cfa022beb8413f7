/** Reads a `.cpuprofile` of the gateway's bundle: where its CPU time goes, by source line. */
import { readdirSync, readFileSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'
import { join, relative } from 'node:path'

interface CallFrame {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
  readonly columnNumber: number
}

interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame; readonly hitCount: number }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

/** One function and its own share of the time in which the process was not idle. */
export interface OwnCost {
  readonly share: number
  readonly name: string
  /** Source file and line; empty for code without a source file. */
  readonly at: string
}

const IDLE = new Set(['(idle)', '(root)'])

/** The functions of a profile with the most CPU time, largest first. */
export function ownCosts(profile: CpuProfile, place: (frame: CallFrame) => string): OwnCost[] {
  const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]))
  const costs = new Map<string, { micros: number; name: string; at: string }>()
  let busy = 0
  for (const [i, id] of profile.samples.entries()) {
    const frame = frames.get(id)
    if (!frame || IDLE.has(frame.functionName)) continue
    const micros = profile.timeDeltas[i] ?? 0
    const at = place(frame)
    const name = frame.functionName || '(anonymous)'
    const cost = costs.get(`${name} ${at}`) ?? { micros: 0, name, at }
    cost.micros += micros
    busy += micros
    costs.set(`${name} ${at}`, cost)
  }
  const sorted = [...costs.values()].toSorted((a, b) => b.micros - a.micros)
  return sorted.map(({ micros, name, at }) => ({ share: micros / busy, name, at }))
}

/** Reads the profile that a process has left in `folder` when it ended. */
export function readOwnCosts(folder: string, bundle: string, root: string): OwnCost[] {
  const file = readdirSync(folder).find((name) => name.endsWith('.cpuprofile'))
  if (file === undefined) throw new Error(`there is no profile in ${folder}: the process did not end in order`)
  const profile = JSON.parse(readFileSync(join(folder, file), 'utf8')) as CpuProfile // written by V8
  const map = new SourceMap(JSON.parse(readFileSync(`${bundle}.map`, 'utf8')) as SourceMapPayload) // written by esbuild
  return ownCosts(profile, (frame) => {
    if (!frame.url.endsWith('gateway.js')) return frame.url === '' ? '' : `${frame.url}:${frame.lineNumber + 1}`
    const entry = map.findEntry(frame.lineNumber, frame.columnNumber)
    if (!('originalSource' in entry)) return 'gateway.js'
    return `${relative(root, join(root, 'dist', entry.originalSource))}:${entry.originalLine + 1}`
  })
}

/** Lines of a table of the functions and the files with the most CPU time. */
export function renderCosts(costs: readonly OwnCost[], rows: number): string {
  const line = ({ share, name, at }: OwnCost): string => `  ${(share * 100).toFixed(1).padStart(5)} %  ${name}  ${at}`
  const files = new Map<string, number>()
  for (const { share, at } of costs) {
    const file = at.replace(/:\d+$/, '')
    files.set(file, (files.get(file) ?? 0) + share)
  }
  const dearest = [...files].toSorted(([, a], [, b]) => b - a).map(([name, share]) => line({ share, name: name || '(native)', at: '' }))
  return ['own time by function', ...costs.slice(0, rows).map(line), 'own time by file', ...dearest.slice(0, rows)].join('\n')
}
