/** A gateway as a small square: water in it while calls pass, a board in it once they are stopped. Decoration. */
import type { ReactNode } from 'react'
import styles from './gate.module.css'

export function Gate({ isOpen, isBig = false }: { readonly isOpen: boolean; readonly isBig?: boolean }): ReactNode {
  const size = isBig ? 40 : 20
  return (
    <svg className={isBig ? styles.big : styles.gate} viewBox="0 0 24 24" width={size} height={size} aria-hidden="true">
      {isOpen && <path className={styles.flow} d="M3 13q4.5-3.5 9 0t9 0v4a4 4 0 0 1-4 4H7a4 4 0 0 1-4-4z" />}
      <rect className={styles.frame} x="3" y="3" width="18" height="18" rx="4" />
      {!isOpen && <rect className={styles.board} x="7" y="7" width="10" height="10" rx="1.5" />}
    </svg>
  )
}
