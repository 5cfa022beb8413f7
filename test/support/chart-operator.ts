/** The chart's heap of the operator for its memory limit of 512 MiB. */
export const CHART_HEAP = { NODE_OPTIONS: '--max-old-space-size=256 --max-semi-space-size=16' }
