/** A page: its heading, one line of fact, its content. Sets the title of the document. */
import { type ReactNode, useEffect } from 'react'
import styles from './page.module.css'

export interface PageProps {
  /** Name of the page in the title of the document. */
  readonly name: string
  /** The heading, where it says more than the name. */
  readonly heading?: string
  readonly lead?: ReactNode
  readonly isNarrow?: boolean
  readonly children?: ReactNode
}

export function Page({ name, heading = name, lead, isNarrow = false, children }: PageProps): ReactNode {
  useEffect(() => {
    document.title = `${name} · Headgate`
  }, [name])
  return (
    <div className={isNarrow ? `${styles.page} ${styles.narrow}` : styles.page}>
      <div className={styles.head}>
        <h1 tabIndex={-1}>{heading}</h1>
        {lead !== undefined && <p>{lead}</p>}
      </div>
      {children}
    </div>
  )
}
