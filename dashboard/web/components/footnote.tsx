/** What holds for all numbers of a page, below them. */
import type { ReactNode } from 'react'
import styles from './footnote.module.css'

export function Footnote({ children }: { readonly children: ReactNode }): ReactNode {
  return <p className={styles.footnote}>{children}</p>
}
