/** Tabs that change the page: links, so that each has its own address. */
import type { ReactNode } from 'react'
import { Link, useLocation } from 'wouter'
import styles from './tabs.module.css'

export interface PageTabsProps {
  readonly label: string
  readonly tabs: readonly { readonly name: string; readonly path: string }[]
}

export function PageTabs({ label, tabs }: PageTabsProps): ReactNode {
  const [here] = useLocation()
  return (
    <nav className={styles.tabs} aria-label={label}>
      {tabs.map(({ name, path }) => (
        <Link href={path} aria-current={here === path ? 'page' : undefined} key={path}>
          {name}
        </Link>
      ))}
    </nav>
  )
}
