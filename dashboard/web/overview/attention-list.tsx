/** What needs attention: a few rows with a button each, or the sentence that all is well. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Keys, PlanView } from '../../server/page-data/keys.ts'
import { LinkButton } from '../components/link-button.tsx'
import { PageSection } from '../components/page-section.tsx'
import { State } from '../components/state.tsx'
import styles from './attention-list.module.css'
import { type Concern, concernsOf } from './attention.ts'

/** More rows would hide the rest of the page. */
const MAX_ROWS = 6

export function AttentionList({ keys, plan }: { readonly keys: Keys; readonly plan: PlanView }): ReactNode {
  const concerns = concernsOf(keys.keys, plan, new Date())
  const more = concerns.length - MAX_ROWS
  return (
    <PageSection title="Needs attention">
      {concerns.length === 0 && <p className="muted">{keys.keys.length === 0 ? 'There are no keys.' : 'All keys are well.'}</p>}
      {concerns.length > 0 && (
        <ul className={styles.rows}>
          {concerns.slice(0, MAX_ROWS).map((concern) => (
            <ConcernRow concern={concern} key={concern.id} />
          ))}
        </ul>
      )}
      {more > 0 && (
        <p className="small">
          <Link href="/keys">{more === 1 ? 'One more' : `${more} more`} in API Keys</Link>
        </p>
      )}
    </PageSection>
  )
}

function ConcernRow({ concern: { name, path, text, state, action } }: { readonly concern: Concern }): ReactNode {
  return (
    <li className={styles.row}>
      <div className={styles.text}>
        <h3>{path === '' ? name : <Link href={path}>{name}</Link>}</h3>
        <p>{text}</p>
      </div>
      <span className={styles.state}>
        <State {...state} />
      </span>
      {action !== '' && <LinkButton href={path} text={action} look="compact" label={`${action}: ${name}`} />}
    </li>
  )
}
