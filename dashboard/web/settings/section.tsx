/** A section of the settings: what it is about on the left, its controls on the right. */
import type { ReactNode } from 'react'
import styles from './section.module.css'

export function Sections({ children }: { readonly children: ReactNode }): ReactNode {
  return <div className={styles.sections}>{children}</div>
}

export interface SectionProps {
  /** Id of the heading, for links and for the focus. */
  readonly id: string
  readonly title: string
  /** What the settings mean, in a sentence or two. */
  readonly about: string
  readonly children: ReactNode
}

export function Section({ id, title, about, children }: SectionProps): ReactNode {
  return (
    <section className={styles.section} aria-labelledby={id}>
      <div className={styles.about}>
        <h2 id={id} tabIndex={-1}>
          {title}
        </h2>
        {about !== '' && <p>{about}</p>}
      </div>
      <div className={styles.content}>{children}</div>
    </section>
  )
}

/** Moves the focus to a section whose button has disappeared with the change. */
export function focusSection(id: string): void {
  requestAnimationFrame(() => document.getElementById(id)?.focus()) // after a dialog has given the focus back
}
