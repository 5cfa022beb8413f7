/** Two or three numbers that answer the question of a page: a label, the number, one note. */
import type { ReactNode } from 'react'
import styles from './figures.module.css'

/** @param isColumn one below the other, beside a panel */
export function Figures({ isColumn = false, children }: { readonly isColumn?: boolean; readonly children: ReactNode }): ReactNode {
  return <dl className={isColumn ? `${styles.figures} ${styles.column}` : styles.figures}>{children}</dl>
}

export interface FigureProps {
  readonly label: string
  readonly value: ReactNode
  readonly isNegative?: boolean
  readonly note?: ReactNode
}

export function Figure({ label, value, isNegative = false, note }: FigureProps): ReactNode {
  return (
    <div className={styles.figure}>
      <dt>{label}</dt>
      <dd className={isNegative ? `${styles.value} ${styles.negative}` : styles.value}>{value}</dd>
      {note !== undefined && note !== '' && <dd className={styles.note}>{note}</dd>}
    </div>
  )
}
