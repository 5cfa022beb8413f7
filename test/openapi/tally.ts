/** The statuses that each operation answered in a run of `make openapi`. Pure. */

/** Numbers of answers by operation and status. */
export type Tally = Readonly<Record<string, Readonly<Record<string, number>>>>

const COLUMNS = ['200', '400', '401', '402', '403', '404', '413', '415', '429'] as const

/** The table by operation. */
export function rowsOf(tally: Tally): Array<Readonly<Record<string, string>>> {
  return Object.entries(tally).map(([operation, statuses]) => {
    const known = COLUMNS.map((status) => [`${status} `, String(statuses[status] ?? '')]) // a name of digits alone would come before `operation`
    const others = Object.keys(statuses).filter((status) => !(COLUMNS as readonly string[]).includes(status))
    return { operation, ...Object.fromEntries(known), other: others.map((status) => `${statuses[status]} × ${status}`).join(', ') }
  })
}

/** What must not be: an operation that was not called, or without a good answer, so that the run shows nothing about one; an error of 5xx. */
export function failuresOf(tally: Tally, operations: readonly string[]): string[] {
  return operations.flatMap((operation) => {
    const statuses = tally[operation] ?? {}
    const broken = Object.keys(statuses).filter((status) => status >= '500')
    return [
      ...(statuses['200'] === undefined ? [`${operation} never answered 200`] : []),
      ...broken.map((status) => `${operation} answered ${status}, ${statuses[status]} times`),
    ]
  })
}
