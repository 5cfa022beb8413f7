/** An allow-list of model names. Gateways decide by it, and the operator finds by it which models a key may call. */

/** A list that is prepared for many names. An entry is a name, `*`, or a name with `*` at one end. */
export interface NameList {
  readonly all: boolean
  readonly exact: ReadonlySet<string>
  readonly prefixes: readonly string[]
  readonly suffixes: readonly string[]
}

/** Prepares the entries of an allow-list. */
export function nameList(entries: readonly string[]): NameList {
  const wild = entries.filter((entry) => entry !== '*' && entry.includes('*'))
  return {
    all: entries.includes('*'),
    exact: new Set(entries.filter((entry) => !entry.includes('*'))),
    prefixes: wild.filter((entry) => entry.indexOf('*') === entry.length - 1).map((entry) => entry.slice(0, -1)),
    suffixes: wild.filter((entry) => entry.lastIndexOf('*') === 0).map((entry) => entry.slice(1)),
  }
}

/** Whether an entry admits the name. */
export function listAdmits(list: NameList, name: string): boolean {
  return (
    list.all ||
    list.exact.has(name) ||
    list.prefixes.some((prefix) => name.startsWith(prefix)) ||
    list.suffixes.some((suffix) => name.endsWith(suffix))
  )
}
