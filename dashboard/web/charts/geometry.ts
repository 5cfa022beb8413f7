/** Where the bars of a chart stand, in percent of the plot, and the numbers of its scale. Pure. */
import { columnTotals, type Series, type Stacks } from './stacks.ts'

/** Part of a column's width that its bar takes, in a plot of many columns and of few. */
const BAR_PART = { many: 0.78, few: 0.5 }
const FEW = 8
const QUARTERS = 4n
/** Steps of a scale: 1, 2, 2.5, 5, 10 … */
const STEPS = [10n, 20n, 25n, 50n]
/** Places on the axis that get a label, where not every column has room for one. */
const LABELS = 4

export interface Bar {
  readonly look: Series['look']
  /** Percent from the top. */
  readonly y: number
  readonly height: number
}

export interface ColumnBars {
  /** Percent from the left. */
  readonly x: number
  readonly width: number
  readonly barX: number
  readonly barWidth: number
  /** From the bottom up, without empty ones. */
  readonly bars: readonly Bar[]
}

/** @param top what the full height stands for */
export function barsOf(stacks: Stacks, top: bigint): readonly ColumnBars[] {
  const count = stacks.columns.length
  const width = 100 / Math.max(count, 1)
  const barWidth = width * (count < FEW ? BAR_PART.few : BAR_PART.many)
  return stacks.columns.map((_, index) => {
    const x = index * width
    return { x, width, barX: x + (width - barWidth) / 2, barWidth, bars: columnBars(stacks.series, index, top) }
  })
}

function columnBars(series: readonly Series[], index: number, top: bigint): readonly Bar[] {
  const bars: Bar[] = []
  let below = 0n
  for (const { look, values } of series) {
    const value = values[index] ?? 0n
    if (value <= 0n) continue
    const under = percentOf(below, top)
    below += value
    const over = percentOf(below, top)
    bars.push({ look, y: round(100 - over), height: round(over - under) })
  }
  return bars
}

/** The number at the top of the scale: its quarters are round numbers. @param least the smallest step: 1 call, 1 micro-unit */
export function scaleTop(stacks: Stacks, least = 1n): bigint {
  const most = columnTotals(stacks).reduce((found, total) => (total > found ? total : found), 0n)
  for (let power = 1n; ; power *= 10n) {
    for (const step of STEPS) {
      const quarter = (step * power) / 10n
      const isWhole = (step * power) % 10n === 0n
      if (isWhole && quarter >= least && quarter * QUARTERS >= most) return quarter * QUARTERS
    }
  }
}

/** The numbers beside the scale, from the top down. */
export function scaleMarks(top: bigint): readonly bigint[] {
  return [4n, 3n, 2n, 1n, 0n].map((quarters) => (top * quarters) / QUARTERS)
}

/** Which columns have a label on the axis: all of a few, else some at even distances with the first and the last. */
export function labelled(count: number): readonly number[] {
  if (count < FEW) return Array.from({ length: count }, (_, index) => index)
  return Array.from({ length: LABELS }, (_, index) => Math.round((index * (count - 1)) / (LABELS - 1)))
}

function percentOf(value: bigint, top: bigint): number {
  return Number((value * 1_000_000n) / top) / 10_000
}

function round(percent: number): number {
  return Math.round(percent * 100) / 100
}
