/** A page: its heading, one line of fact, its content. Sets the title of the document. */
import { type ReactNode, useEffect } from 'react'
import styles from './page.module.css'

export interface PageProps {
  /** Name of the page in the title of the document. */
  readonly name: string
  /** The heading, where it says more than the name. */
  readonly heading?: string
  readonly lead?: ReactNode
  /** A link above the heading, to the page from which a person comes. */
  readonly crumb?: ReactNode
  /** Beside the heading. */
  readonly state?: ReactNode
  /** Buttons of the page, on the right of the heading. */
  readonly actions?: ReactNode
  readonly isNarrow?: boolean
  readonly children?: ReactNode
}

export function Page({ name, heading = name, lead, crumb, state, actions, isNarrow = false, children }: PageProps): ReactNode {
  useEffect(() => {
    document.title = `${name} · Headgate`
  }, [name])
  return (
    <div className={isNarrow ? `${styles.page} ${styles.narrow}` : styles.page}>
      <div className={styles.head}>
        <div className={styles.words}>
          {crumb !== undefined && <div className={styles.crumb}>{crumb}</div>}
          <div className={styles.title}>
            <h1 tabIndex={-1}>{heading}</h1>
            {state}
          </div>
          {lead !== undefined && (typeof lead === 'string' ? <p>{lead}</p> : lead)}
        </div>
        {actions !== undefined && <div className="actions">{actions}</div>}
      </div>
      {children}
    </div>
  )
}
