/** Sizes of tests under load: `SIZES=full make integration FILES="exits takeover"` runs them with as much as Headgate is designed for. */
const sizes = process.env['SIZES'] ?? 'usual'
if (sizes !== 'usual' && sizes !== 'full') throw new TypeError(`SIZES is ${JSON.stringify(sizes)}; use usual or full`)

/** @param usual fits into every run of the CI @param full the promised size */
export function sized(usual: number, full: number): number {
  return sizes === 'full' ? full : usual
}

/** Longest time of a test whose size follows `SIZES`, ms. @param usualMs of the usual size */
export function timeLimit(usualMs: number): number {
  return sized(usualMs, 4 * usualMs)
}
