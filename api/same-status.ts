/** @returns whether two statuses are equal, in any order of keys: the API server may return another order than the applied one */
export function sameStatus(a: object, b: object | undefined): boolean {
  return b !== undefined && canonical(a) === canonical(b)
}

function canonical(value: object): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}
