/** Rows: a thing, what it means in one sentence, its button. */
import type { ReactNode } from 'react'
import { Problem } from './problem.tsx'
import styles from './rows.module.css'

export function Rows({ children }: { readonly children: ReactNode }): ReactNode {
  return <div className={styles.rows}>{children}</div>
}

export interface RowProps {
  readonly title: string
  readonly text?: ReactNode
  /** The button at the end of the row. */
  readonly button?: ReactNode
  /** In place of a button: a state, or why there is no button. */
  readonly end?: ReactNode
  /** Why the button's change has failed. */
  readonly error?: Error | undefined
}

export function Row({ title, text, button, end, error }: RowProps): ReactNode {
  return (
    <div className={styles.row}>
      <div className={styles.text}>
        <h3>{title}</h3>
        {text !== undefined && <p>{text}</p>}
      </div>
      {button}
      {end !== undefined && <span className={styles.end}>{end}</span>}
      {error && (
        <div className={styles.problem}>
          <Problem error={error} />
        </div>
      )}
    </div>
  )
}
