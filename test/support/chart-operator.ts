/** The chart's heap of the operator for a memory limit of 512 MiB: half of its default, so that what needs more shows early. */
export const CHART_HEAP = { NODE_OPTIONS: '--max-old-space-size=256 --max-semi-space-size=16' }
