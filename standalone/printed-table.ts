/** Objects as `kubectl get` prints them: the columns of their kind, with namespaces. Pure. */
import type { ApiKind, Column } from '#api/kind.ts'
import { plain } from '#contract/values/plain-text.ts'
import type { KubeObject } from '#kube/port.ts'

const GAP = 3
/** A path of a column is a sequence of these: a field, or the element of a list with a type. */
export const STEPS = /\.([A-Za-z]+)|\[\?\(@\.type=="([A-Za-z]+)"\)\]/g
const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const YEAR = 365 * DAY

/** Lines of one table, without the columns of `-o wide`. @param nowMs ms since 1970 */
export function tableOf(kind: ApiKind, objects: readonly KubeObject[], nowMs: number): string {
  const columns = kind.columns.filter(({ wide }) => wide !== true)
  const sorted = objects.toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))
  const rows = sorted.map((object) => [
    ...(kind.resource.namespaced ? [object.metadata.namespace ?? ''] : []),
    `${kind.resource.kind.toLowerCase()}.${kind.resource.group}/${object.metadata.name}`,
    ...columns.map((column) => cellOf(column, object, nowMs)),
  ])
  const all = [[...(kind.resource.namespaced ? ['NAMESPACE'] : []), 'NAME', ...columns.map(({ name }) => name.toUpperCase())], ...rows]
  const widths = (all[0] ?? []).map((_, index) => Math.max(...all.map((row) => row[index]?.length ?? 0)))
  const line = (row: readonly string[]): string => row.map((cell, index) => cell.padEnd((widths[index] ?? 0) + GAP)).join('')
  return all.map((row) => `${line(row).trimEnd()}\n`).join('')
}

/** The units of an age as kubectl writes it: two of them while the first is small. */
const AGES: ReadonlyArray<readonly [belowMs: number, ...units: ReadonlyArray<readonly [ms: number, name: string]>]> = [
  [2 * MINUTE, [SECOND, 's']],
  [10 * MINUTE, [MINUTE, 'm'], [SECOND, 's']],
  [3 * HOUR, [MINUTE, 'm']],
  [8 * HOUR, [HOUR, 'h'], [MINUTE, 'm']],
  [2 * DAY, [HOUR, 'h']],
  [8 * DAY, [DAY, 'd'], [HOUR, 'h']],
  [2 * YEAR, [DAY, 'd']],
  [8 * YEAR, [YEAR, 'y'], [DAY, 'd']],
  [Infinity, [YEAR, 'y']],
]

export function ageOf(ms: number): string {
  const [, ...units] = AGES.find(([belowMs]) => ms < belowMs) ?? []
  let restMs = Math.max(0, ms)
  const counts = units.map(([unitMs, name], index) => {
    const count = Math.floor(restMs / unitMs)
    restMs %= unitMs
    return count === 0 && index > 0 ? '' : `${count}${name}`
  })
  return counts.join('')
}

/** The value at a path of a column; undefined if the object has none. */
function valueAt(object: unknown, jsonPath: string): unknown {
  return [...jsonPath.matchAll(STEPS)].reduce((at: unknown, [, field = '', type]) => {
    if (type === undefined) return fieldOf(at, field)
    return Array.isArray(at) ? at.find((each) => fieldOf(each, 'type') === type) : undefined
  }, object)
}

function cellOf({ type, jsonPath }: Column, object: KubeObject, nowMs: number): string {
  const value = valueAt(object, jsonPath)
  if (type === 'date') return typeof value === 'string' ? ageOf(nowMs - Date.parse(value)) : '<unknown>'
  return typeof value === 'string' || typeof value === 'number' ? plain(String(value)) : ''
}

function placeOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''} ${metadata.name}`
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined
}
