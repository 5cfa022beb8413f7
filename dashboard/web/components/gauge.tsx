/** The bar of a budget, with marks at its quarters. Decoration: the words beside the bar say the same. */
import type { ReactNode } from 'react'
import styles from './gauge.module.css'

const WARN_PERCENT = 80
const FULL_PERCENT = 100

export function Gauge({ percent }: { readonly percent: number }): ReactNode {
  const shown = Math.min(Math.max(percent, 0), FULL_PERCENT)
  const look = percent >= FULL_PERCENT ? styles.full : percent >= WARN_PERCENT ? styles.warn : ''
  return (
    <svg className={`${styles.gauge} ${look}`} width="100%" height="6" aria-hidden="true">
      <rect className={styles.track} width="100%" height="100%" />
      <rect className={styles.fill} width={`${shown}%`} height="100%" rx="3" />
      {['25%', '50%', '75%'].map((x) => (
        <line className={styles.tick} x1={x} x2={x} y2="100%" key={x} />
      ))}
    </svg>
  )
}
