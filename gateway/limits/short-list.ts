const NOTHING: never[] = []

/** One empty list for all: `appended` makes a new one of it. */
export function emptyList<T>(): T[] {
  return NOTHING
}

/** @returns the items that pass; the list itself if all of them do */
export function kept<T>(list: T[], passes: (item: T) => boolean): T[] {
  if (list.every(passes)) return list
  const rest = list.filter(passes)
  return rest.length === 0 ? NOTHING : rest
}

/** Lists that are mostly empty or hold one item, by the hundred thousand: `push` onto an empty array makes room for seventeen. */
export function appended<T>(list: T[], item: T): T[] {
  if (list.length === 0) return [item]
  list.push(item)
  return list
}
