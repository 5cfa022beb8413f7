/** The units that one process may admit while the store is unavailable: the limit divided by the number of processes that share it. */
export interface LocalShare {
  /** Units in any rolling window. */
  readonly units: number
  /** Least ms between two admissions; 0 unless the share is below one unit. */
  readonly spacingMs: number
}

/**
 * @param live processes that share the limit, at least 1
 * @param windowMs length of the rolling window
 */
export function localShare(limit: number, live: number, windowMs: number): LocalShare {
  const units = Math.floor(limit / live)
  return units >= 1 ? { units, spacingMs: 0 } : { units: 1, spacingMs: Math.ceil((windowMs * live) / Math.max(1, limit)) }
}
