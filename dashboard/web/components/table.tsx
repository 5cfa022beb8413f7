/**
 * A table. `stack` is for objects: on a phone each row becomes pairs of label and value. `figures` is for numbers and stays a table. The roles
 * are written out, because a table that is laid out as a grid has none for screen readers.
 */
import type { ReactNode } from 'react'
import styles from './table.module.css'

export interface Column {
  readonly title: ReactNode
  /** Numbers stand at the end of their column. */
  readonly isNumber?: boolean
}

export interface TableProps {
  readonly label: string
  readonly columns: readonly Column[]
  readonly look: 'stack' | 'figures'
  /** The first link of a row is the link of the whole row. */
  readonly hasRowLinks?: boolean
  /** Rows of the sums. */
  readonly foot?: ReactNode
  readonly isBusy?: boolean
  readonly children: ReactNode
}

/* oxlint-disable jsx-a11y/no-redundant-roles -- the head of this file says why */
export function Table({ label, columns, look, hasRowLinks = false, foot, isBusy, children }: TableProps): ReactNode {
  const className = `${styles.table} ${styles[look]} ${hasRowLinks ? styles.links : ''}`
  return (
    <table className={className} role="table" aria-label={label} aria-busy={isBusy}>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map(({ title, isNumber }, index) => (
            <th scope="col" role="columnheader" className={isNumber ? styles.end : undefined} key={index}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">{children}</tbody>
      {foot !== undefined && <tfoot role="rowgroup">{foot}</tfoot>}
    </table>
  )
}

export function TableRow({ children }: { readonly children: ReactNode }): ReactNode {
  return <tr role="row">{children}</tr>
}

/** The header of a row: the name of its object. */
export function RowHead({ children }: { readonly children: ReactNode }): ReactNode {
  return (
    <th scope="row" role="rowheader" className={styles.whole}>
      {children}
    </th>
  )
}

export interface CellProps {
  /** Title of the column, where the row is stacked. */
  readonly label?: string
  readonly isNumber?: boolean
  /** Takes the whole width where the row is stacked. */
  readonly isWhole?: boolean
  /** For names of any length, which break within a word. */
  readonly hasNames?: boolean
  readonly children?: ReactNode
}

export function Cell({ label, isNumber = false, isWhole = false, hasNames = false, children }: CellProps): ReactNode {
  const className = [isNumber && styles.end, isWhole && styles.whole, hasNames && styles.names].filter(Boolean).join(' ')
  return (
    <td role="cell" className={className === '' ? undefined : className}>
      {label !== undefined && (
        <span className={styles.label} aria-hidden="true">
          {label}
        </span>
      )}
      {children}
    </td>
  )
}

/** A second line of a cell. */
export function Sub({ children, isMono = false }: { readonly children: ReactNode; readonly isMono?: boolean }): ReactNode {
  return <span className={isMono ? `${styles.sub} ${styles.mono}` : styles.sub}>{children}</span>
}
