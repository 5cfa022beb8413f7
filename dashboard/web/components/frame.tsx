/** What stands around every page: skip link, page-wide banner, navigation, the person and `Sign out`. */
import type { ReactNode } from 'react'
import { Link, useLocation } from 'wouter'
import { useMe } from '../queries.ts'
import styles from './frame.module.css'
import { Icon, Mark } from './icons.tsx'
import { SignOut } from './sign-out.tsx'
import { StandingBanner } from './standing-banner.tsx'

const PAGES = [
  { path: '/', name: 'Overview', icon: 'house' },
  { path: '/keys', name: 'API Keys', icon: 'key' },
  { path: '/usage', name: 'Usage', icon: 'bars' },
  { path: '/billing', name: 'Billing', icon: 'card' },
  { path: '/settings', name: 'Settings', icon: 'sliders' },
] as const

export function Frame({ children }: { readonly children: ReactNode }): ReactNode {
  return (
    <div className={styles.app}>
      <a className="skip" href="#main">
        Skip to content
      </a>
      <div className={styles.banner}>
        <StandingBanner />
      </div>
      <header className={styles.sidebar}>
        <div className={styles.inner}>
          <Link className="logo" href="/">
            <Mark />
            Headgate
          </Link>
          <Navigation />
          <Person />
        </div>
      </header>
      <main className={styles.main} id="main">
        {children}
      </main>
    </div>
  )
}

function Navigation(): ReactNode {
  const [here] = useLocation()
  return (
    <nav aria-label="Main">
      <ul className={styles.nav}>
        {PAGES.map(({ path, name, icon }) => (
          <li key={path}>
            <Link href={path} aria-current={isWithin(here, path) ? 'page' : undefined}>
              <Icon name={icon} />
              {name}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  )
}

/** Whether the page is the one of the link, or lies below it: `/keys/k-1` below `/keys`. */
function isWithin(here: string, path: string): boolean {
  return here === path || (path !== '/' && here.startsWith(`${path}/`))
}

function Person(): ReactNode {
  const person = useMe().data?.person
  return (
    <div className={styles.person}>
      <div className={styles.who}>
        {person?.name && <b>{person.name}</b>}
        <span title={person?.email}>{person?.email}</span>
      </div>
      <SignOut />
    </div>
  )
}
