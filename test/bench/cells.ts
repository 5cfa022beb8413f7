/** The measurements to make, as data. */

/** The contenders. `direct` is the load without a contender. */
export type ContenderName = 'direct' | 'bare' | 'gateway' | 'nginx'

/** One comparison: the same load on each of its contenders in turn. */
export interface Cell {
  readonly name: string
  /**
   * `plain`: JSON answers of a mock that answers at once. `stream`: 64 events, 20 ms apart. `refused`: keys that the contender does not
   * know, so every answer must be a 401.
   */
  readonly kind: 'plain' | 'stream' | 'refused'
  /** Size of the request body. */
  readonly bodyBytes: number
  readonly connections: number
  readonly contenders: readonly ContenderName[]
}

const ALL = ['direct', 'bare', 'gateway', 'nginx'] as const

/** Cell whose forwarded requests the refusals are compared with. */
export const FORWARDED_CELL = '1.5k-c32'

/** Every cell, in the order in which a round runs them. */
export const CELLS: readonly Cell[] = [
  { name: '1.5k-c1', kind: 'plain', bodyBytes: 1_500, connections: 1, contenders: ALL },
  { name: FORWARDED_CELL, kind: 'plain', bodyBytes: 1_500, connections: 32, contenders: ALL },
  { name: '20k-c1', kind: 'plain', bodyBytes: 20_000, connections: 1, contenders: ALL },
  { name: '20k-c32', kind: 'plain', bodyBytes: 20_000, connections: 32, contenders: ALL },
  { name: '200k-c8', kind: 'plain', bodyBytes: 200_000, connections: 8, contenders: ALL },
  { name: 'sse-c256', kind: 'stream', bodyBytes: 1_500, connections: 256, contenders: ['bare', 'gateway', 'nginx'] },
  { name: '401-c32', kind: 'refused', bodyBytes: 1_500, connections: 32, contenders: ['gateway', 'nginx'] },
]

/** Events of one streamed answer, including the finish event and the end marker. */
export const STREAM_EVENTS = 64
/** Time between two events of a stream, ms. */
export const STREAM_GAP_MS = 20

/** The order of the contenders in a round: reversed in every second round (A B, B A), so that slow changes of the machine favour no contender. */
export function turnOrder<T>(contenders: readonly T[], round: number): readonly T[] {
  return round % 2 === 0 ? contenders : contenders.toReversed()
}
