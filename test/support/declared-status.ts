/** The schema of a status, as a real API server enforces it. */
import { API_KINDS } from '#api/kinds.ts'
import { refKey } from '#kube/port.ts'
import type { StoreChange } from '../../standalone/object-store.ts'

/** A real API server refuses a status with a field that the schema lacks. @throws Error that names the object */
export function requireDeclared({ resource, ref, after }: StoreChange): void {
  const kind = API_KINDS.find((one) => one.resource.kind === resource.kind)
  const status = (after as { readonly status?: unknown } | undefined)?.status
  if (kind === undefined || status === undefined) return
  const declared = JSON.stringify(kind.status.parse(status), sorted)
  if (declared === JSON.stringify(status, sorted)) return
  const text = `the status of ${resource.kind} ${refKey(ref)} has a field that the schema lacks: ${JSON.stringify(status)}`
  process.stderr.write(`${text}\n`)
  throw new Error(text)
}

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
