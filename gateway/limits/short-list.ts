const NOTHING: never[] = []

/** A shared empty list, which `appended` replaces with a new list. */
export function emptyList<T>(): T[] {
  return NOTHING
}

/** @returns the items that pass; the list itself if all of them do */
export function kept<T>(list: T[], passes: (item: T) => boolean): T[] {
  if (list.every(passes)) return list
  const rest = list.filter(passes)
  return rest.length === 0 ? NOTHING : rest
}

/** For hundreds of thousands of lists with at most one item: `push` onto an empty array would reserve room for seventeen. */
export function appended<T>(list: T[], item: T): T[] {
  if (list.length === 0) return [item]
  list.push(item)
  return list
}
