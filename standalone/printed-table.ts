/** Objects as `kubectl get` prints them: the columns of their kind, with namespaces. Pure. */
import type { ApiKind, Column } from '#api/kind.ts'
import type { KubeObject } from '#kube/port.ts'

const GAP = 3
const CONDITION = /^\.status\.conditions\[\?\(@\.type=="([A-Za-z]+)"\)\]\.([a-z]+)$/
const FIELDS = /^(\.[A-Za-z]+)+$/
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
    object.metadata.namespace ?? '',
    `${kind.singular}.${kind.resource.group}/${object.metadata.name}`,
    ...columns.map((column) => cellOf(column, object, nowMs)),
  ])
  const all = [['NAMESPACE', 'NAME', ...columns.map(({ name }) => name.toUpperCase())], ...rows]
  const widths = (all[0] ?? []).map((_, index) => Math.max(...all.map((row) => row[index]?.length ?? 0)))
  return all
    .map(
      (row) =>
        `${row
          .map((cell, index) => cell.padEnd((widths[index] ?? 0) + GAP))
          .join('')
          .trimEnd()}\n`,
    )
    .join('')
}

/** An age as kubectl writes it: two units while the first is small. */
export function ageOf(ms: number): string {
  if (ms < 0) return '0s'
  if (ms < 2 * MINUTE) return `${Math.floor(ms / SECOND)}s`
  if (ms < 10 * MINUTE) return inTwo(ms, MINUTE, 'm', SECOND, 's')
  if (ms < 3 * HOUR) return `${Math.floor(ms / MINUTE)}m`
  if (ms < 8 * HOUR) return inTwo(ms, HOUR, 'h', MINUTE, 'm')
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)}h`
  if (ms < 8 * DAY) return inTwo(ms, DAY, 'd', HOUR, 'h')
  if (ms < 2 * YEAR) return `${Math.floor(ms / DAY)}d`
  return ms < 8 * YEAR ? inTwo(ms, YEAR, 'y', DAY, 'd') : `${Math.floor(ms / YEAR)}y`
}

/** The value at a path of a column; undefined if the object has none. @throws TypeError for a path of another form */
export function valueAt(object: unknown, jsonPath: string): unknown {
  const [, type, field = ''] = CONDITION.exec(jsonPath) ?? []
  if (type !== undefined) {
    const list = valueAt(object, '.status.conditions')
    const found: unknown = Array.isArray(list) ? list.find((each) => fieldOf(each, 'type') === type) : undefined
    return fieldOf(found, field)
  }
  if (!FIELDS.test(jsonPath)) throw new TypeError(`the path ${jsonPath} of a column has an unknown form`)
  return jsonPath
    .slice(1)
    .split('.')
    .reduce((value: unknown, name) => fieldOf(value, name), object)
}

function cellOf({ type, jsonPath }: Column, object: KubeObject, nowMs: number): string {
  const value = valueAt(object, jsonPath)
  if (type === 'date') return typeof value === 'string' ? ageOf(nowMs - Date.parse(value)) : '<unknown>'
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

// oxlint-disable-next-line max-params -- a number and two units
function inTwo(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((ms % large) / small)
  return `${Math.floor(ms / large)}${largeName}${rest === 0 ? '' : `${rest}${smallName}`}`
}

function placeOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''} ${metadata.name}`
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined
}
