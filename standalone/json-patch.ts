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
  const { parent, key } = locate(document, operation.path)
  if (operation.op === 'test') return assertEqual(parent, key, operation)
  if (Array.isArray(parent)) return changeArray(parent, key, operation)
  if (operation.op !== 'add' && !Object.hasOwn(parent, key)) throw new PatchError(`path ${operation.path} does not exist`)
  if (operation.op === 'remove') delete parent[key]
  else parent[key] = structuredClone(operation.value)
}

function assertEqual(parent: Container, key: string, operation: PatchOperation & { op: 'test' | 'add' | 'replace' }): void {
  const present: unknown = Array.isArray(parent) ? parent[Number(key)] : parent[key]
  if (!isDeepStrictEqual(present, operation.value)) throw new PatchError(`test of ${operation.path} failed`)
}

function changeArray(parent: unknown[], key: string, operation: PatchOperation): void {
  const index = key === '-' ? parent.length : Number(key)
  const end = operation.op === 'add' ? parent.length : parent.length - 1
  if (!Number.isInteger(index) || index < 0 || index > end) throw new PatchError(`path ${operation.path} is outside the list`)
  if (operation.op === 'remove') parent.splice(index, 1)
  else parent.splice(index, operation.op === 'add' ? 0 : 1, structuredClone(operation.value))
}

type Container = Record<string, unknown> | unknown[]

function locate(document: unknown, path: string): { parent: Container; key: string } {
  const parts = path
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const key = parts.pop()
  let parent: unknown = document
  for (const part of parts) {
    if (!isContainer(parent)) break
    parent = Array.isArray(parent) ? parent[Number(part)] : parent[part]
  }
  if (key === undefined || !isContainer(parent)) throw new PatchError(`path ${path} does not exist`)
  return { parent, key }
}

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null
}
