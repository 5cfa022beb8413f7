/**
 * A chart of stacked bars, with the same numbers as a table below it: the table is what a screen reader and a keyboard get. Sizes are in
 * percent of the plot, so that no text shrinks on a phone. The folder owns how stacks are drawn, and not what is in them.
 */
import type { ReactNode } from 'react'
import styles from './chart.module.css'
import { barsOf, labelled, scaleMarks, scaleTop } from './geometry.ts'
import { columnTotals, type Series, type Stacks, totalOf, type Units } from './stacks.ts'
import { Twin } from './twin.tsx'

export interface ChartProps {
  readonly stacks: Stacks
  readonly units: Units
  /** What the chart shows, in one sentence. */
  readonly summary: string
  /** Name of the table, and of its first column. */
  readonly table: { readonly title: string; readonly column: string }
  /** Low, without a scale, and with the value of each column below it. */
  readonly isShort?: boolean
}

export function Chart({ stacks, units, summary, table, isShort = false }: ChartProps): ReactNode {
  const top = scaleTop(stacks)
  return (
    <>
      {stacks.series.length > 1 && <Legend stacks={stacks} units={units} />}
      <div className={isShort ? `${styles.chart} ${styles.short}` : styles.chart}>
        <Plot stacks={stacks} units={units} summary={summary} top={top} hasGrid={!isShort} />
        {!isShort && (
          <div className={styles.scale} aria-hidden="true">
            {scaleMarks(top).map((mark) => (
              <span key={String(mark)}>{units.mark(mark)}</span>
            ))}
          </div>
        )}
        <Axis stacks={stacks} units={units} hasValues={isShort} />
      </div>
      <Twin stacks={stacks} units={units} {...table} />
    </>
  )
}

function Legend({ stacks, units }: Pick<ChartProps, 'stacks' | 'units'>): ReactNode {
  return (
    <ul className={styles.legend}>
      {stacks.series.map((series, index) => (
        <li key={index}>
          <span className={`${styles.swatch} ${lookOf(series.look)}`} />
          {series.name} <b>{units.text(totalOf({ ...stacks, series: [series] }))}</b>
        </li>
      ))}
    </ul>
  )
}

interface PlotProps extends Pick<ChartProps, 'stacks' | 'units' | 'summary'> {
  readonly top: bigint
  readonly hasGrid: boolean
}

function Plot({ stacks, units, summary, top, hasGrid }: PlotProps): ReactNode {
  const totals = columnTotals(stacks)
  return (
    <svg className={styles.plot} width="100%" height={hasGrid ? 208 : 104} role="img" aria-label={summary}>
      {hasGrid && ['0%', '25%', '50%', '75%'].map((y) => <line className={styles.grid} x1="0" x2="100%" y1={y} y2={y} key={y} />)}
      <line className={styles.base} x1="0" x2="100%" y1="100%" y2="100%" />
      {barsOf(stacks, top).map(({ x, width, barX, barWidth, bars }, index) => (
        <g className={styles.column} key={index}>
          <title>{`${stacks.columns[index]?.name ?? ''}: ${units.text(totals[index] ?? 0n)}`}</title>
          <rect className={styles.hit} x={`${x}%`} width={`${width}%`} height="100%" />
          {bars.map(({ look, y, height }, part) => (
            <rect
              className={`${styles.bar} ${lookOf(look)}`}
              x={`${barX}%`}
              width={`${barWidth}%`}
              y={`${y}%`}
              height={`${height}%`}
              key={part}
            />
          ))}
        </g>
      ))}
    </svg>
  )
}

/** The labels below the plot. On the whole width they are as far apart as their columns. */
function Axis({ stacks, units, hasValues }: Pick<ChartProps, 'stacks' | 'units'> & { readonly hasValues: boolean }): ReactNode {
  const { columns } = stacks
  const places = labelled(columns.length)
  const totals = columnTotals(stacks)
  return (
    <div className={places.length === columns.length ? `${styles.days} ${styles.each}` : styles.days} aria-hidden="true">
      {places.map((place) => (
        <span key={place}>
          {hasValues && <b>{units.text(totals[place] ?? 0n)}</b>}
          {columns[place]?.label}
        </span>
      ))}
    </div>
  )
}

function lookOf(look: Series['look']): string {
  return styles[look === 'other' ? 'other' : `s${look}`] ?? ''
}
