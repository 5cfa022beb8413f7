/** The numbers of a chart as a table, newest first, with sums. Wide ones scroll sideways in a region that a keyboard reaches. */
import type { ReactNode } from 'react'
import styles from './chart.module.css'
import { columnTotals, type Stacks, totalOf, type Units } from './stacks.ts'

interface TwinProps {
  readonly stacks: Stacks
  readonly units: Units
  readonly title: string
  /** Head of the first column: `Day`. */
  readonly column: string
}

export function Twin({ stacks, units, title, column }: TwinProps): ReactNode {
  const { columns } = stacks
  const parts = stacks.series.length > 1 ? stacks.series : []
  const totals = columnTotals(stacks)
  const newestFirst = columns.map((_, index) => columns.length - 1 - index)
  return (
    <details className={styles.twin}>
      <summary>{title}</summary>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls must be reached by the keyboard */}
      <div className={styles.scroll} tabIndex={0} role="region" aria-label={title}>
        <table className={styles.table}>
          <thead>
            <tr>
              <th scope="col">{column}</th>
              {parts.map(({ name }, part) => (
                <th scope="col" key={part}>
                  {name}
                </th>
              ))}
              <th scope="col">{units.name}</th>
            </tr>
          </thead>
          <tbody>
            {newestFirst.map((index) => (
              <tr key={index}>
                <th scope="row">{columns[index]?.name}</th>
                {parts.map(({ values }, part) => (
                  <td key={part}>{units.cell(values[index] ?? 0n)}</td>
                ))}
                <td>{units.cell(totals[index] ?? 0n)}</td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">All</th>
              {parts.map((series, part) => (
                <td key={part}>{units.cell(totalOf({ columns, series: [series] }))}</td>
              ))}
              <td>{units.cell(totalOf(stacks))}</td>
            </tr>
          </tfoot>
        </table>
      </div>
    </details>
  )
}
