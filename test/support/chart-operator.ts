/** The heap that the chart gives an operator with a memory limit of 512 MiB. The default limit is 1 GiB: tests find a growing need of memory early. */
export const CHART_HEAP = { NODE_OPTIONS: '--max-old-space-size=256 --max-semi-space-size=16' }
