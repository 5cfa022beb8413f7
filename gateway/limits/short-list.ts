/** Lists that are mostly empty or hold one item, by the hundred thousand: `push` onto an empty array makes room for seventeen. */
export function appended<T>(list: T[], item: T): T[] {
  if (list.length === 0) return [item]
  list.push(item)
  return list
}
