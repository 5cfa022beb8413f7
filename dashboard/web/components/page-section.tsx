/** A part of a page: its heading, a line of fact beside it, its content. */
import { type ReactNode, useId } from 'react'
import styles from './page-section.module.css'

export interface PageSectionProps {
  readonly title: string
  readonly fact?: ReactNode
  readonly children: ReactNode
}

export function PageSection({ title, fact, children }: PageSectionProps): ReactNode {
  const id = useId()
  return (
    <section className={styles.section} aria-labelledby={id}>
      <div className={styles.head}>
        <h2 id={id} tabIndex={-1}>
          {title}
        </h2>
        {fact !== undefined && <p>{fact}</p>}
      </div>
      {children}
    </section>
  )
}
