/** The few statistics of a report. Pure. */

/** The summary of repeated measurements in a report. */
export interface Spread {
  readonly min: number
  readonly median: number
  readonly max: number
}

/** @returns undefined without any value */
export function spread(values: readonly number[]): Spread | undefined {
  if (values.length === 0) return undefined
  return { min: Math.min(...values), median: quantile(values, 0.5), max: Math.max(...values) }
}

/**
 * The value at a share of the sorted values, interpolated between neighbours.
 * @param share 0 to 1
 * @returns NaN without any value
 */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const place = share * (sorted.length - 1)
  const below = sorted[Math.floor(place)] ?? Number.NaN
  const above = sorted[Math.ceil(place)] ?? Number.NaN
  return below + (above - below) * (place - Math.floor(place))
}

/** Quotients of two series measured in the same rounds; a round that lacks either, or whose divisor is 0, has none. */
export function ratios(over: readonly (number | undefined)[], under: readonly (number | undefined)[]): number[] {
  return over.flatMap((value, round) => {
    const divisor = under[round]
    return value === undefined || !divisor ? [] : [value / divisor]
  })
}

/** Relative range of the values: (max - min) / median; 0 for fewer than two values. */
export function variation(values: readonly number[]): number {
  const found = spread(values)
  return found === undefined || values.length < 2 ? 0 : (found.max - found.min) / found.median
}

/**
 * Slope of the line that fits the points best (least squares), in units of y per unit of x.
 * @returns 0 for fewer than two different x
 */
export function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const meanX = mean(points.map(([x]) => x))
  const meanY = mean(points.map(([, y]) => y))
  const square = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
  return square === 0 ? 0 : points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / square
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
}
