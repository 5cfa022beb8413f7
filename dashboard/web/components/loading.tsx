/** Grey bars in place of what is being loaded, from 200 ms on: a fast answer shows no bars. */
import { type ReactNode, useEffect, useState } from 'react'
import styles from './loading.module.css'

const PATIENCE_MS = 200

/** @param children bars where the content will be */
export function Loading({ children }: { readonly children: ReactNode }): ReactNode {
  const [isLate, setIsLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setIsLate(true), PATIENCE_MS)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div aria-busy="true">
      <p className="visually-hidden" role="status">
        {isLate ? 'Loading' : ''}
      </p>
      {isLate && <div aria-hidden="true">{children}</div>}
    </div>
  )
}

export function Bar({ size = 'text' }: { readonly size?: 'text' | 'short' | 'tall' }): ReactNode {
  return <span className={size === 'text' ? styles.bar : `${styles.bar} ${styles[size]}`} />
}
