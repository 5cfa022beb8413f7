/** The operations of JSON-Patch (RFC 6902) that the Kubernetes port uses: test, add, replace, remove. */
import { isDeepStrictEqual } from 'node:util'
import type { PatchOperation } from '#kube/port.ts'

/** A patch that does not fit the document: a failed `test`, or a missing path. The API server answers 422 to both. */
export class PatchError extends Error {
  override readonly name = 'PatchError'
}

/**
 * Applies the operations in order to a copy.
 * @throws PatchError at the first operation that does not fit; the document is then unchanged
 */
export function applyJsonPatch<T>(document: T, operations: readonly PatchOperation[]): T {
  const copy = structuredClone(document)
  for (const operation of operations) applyOne(copy, operation)
  return copy
}

function applyOne(document: unknown, operation: PatchOperation): void {
  const { op, path } = operation
  const steps = path.split('/').map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  const name = steps.slice(1).pop()
  const parent = steps.slice(1, -1).reduce((at: unknown, step) => (isContainer(at) ? at[step] : undefined), document)
  if (name === undefined || !isContainer(parent)) throw new PatchError(`path ${path} does not exist`)
  if (op === 'test') {
    if (!isDeepStrictEqual(parent[name], operation.value)) throw new PatchError(`test of ${path} failed`)
  } else if (Array.isArray(parent)) changeList(parent, name, operation)
  else if (op !== 'add' && !Object.hasOwn(parent, name)) throw new PatchError(`path ${path} does not exist`)
  else if (op === 'remove') delete parent[name]
  else parent[name] = structuredClone(operation.value)
}

function changeList(list: unknown[], name: string, operation: PatchOperation): void {
  const index = name === '-' ? list.length : Number(name)
  const end = operation.op === 'add' ? list.length : list.length - 1
  if (!Number.isInteger(index) || index < 0 || index > end) throw new PatchError(`path ${operation.path} is outside the list`)
  if (operation.op === 'remove') list.splice(index, 1)
  else list.splice(index, operation.op === 'add' ? 0 : 1, structuredClone(operation.value))
}

/** An object, or a list, whose items have their index as name. */
function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
