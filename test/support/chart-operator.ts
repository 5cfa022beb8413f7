/** The chart's own election times, with which a leader under load on a small machine does not lose its Lease for lack of CPU time. */
export const CHART_LEASE = { LEASE_DURATION_SECONDS: '15', LEASE_RENEW_SECONDS: '10', LEASE_RETRY_SECONDS: '2' }

/** The chart's heap of the operator for its memory limit of 512 MiB. */
export const CHART_HEAP = { NODE_OPTIONS: '--max-old-space-size=256 --max-semi-space-size=16' }
