/** What stands where there is nothing yet: what it is for, and the button. `plain` is for a search without a result. */
import type { ReactNode } from 'react'
import styles from './empty.module.css'
import { Gate } from './gate.tsx'

export interface EmptyProps {
  readonly title: string
  readonly text: string
  readonly isPlain?: boolean
  /** Buttons. */
  readonly children?: ReactNode
}

export function Empty({ title, text, isPlain = false, children }: EmptyProps): ReactNode {
  return (
    <div className={isPlain ? `${styles.empty} ${styles.plain}` : styles.empty}>
      {!isPlain && <Gate isOpen={false} isBig />}
      <h2>{title}</h2>
      <p>{text}</p>
      {children !== undefined && <div className="actions">{children}</div>}
    </div>
  )
}
