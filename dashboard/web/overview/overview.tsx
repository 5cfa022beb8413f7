/** Overview: the first steps, and the state of the Account. */
import type { ReactNode } from 'react'
import type { AccountView, Me } from '../../server/page-data/people.ts'
import { CopyField } from '../components/copy-field.tsx'
import { Icon } from '../components/icons.tsx'
import { Bar, Loading } from '../components/loading.tsx'
import { Page } from '../components/page.tsx'
import { LoadProblem } from '../components/problem.tsx'
import { useMe } from '../queries.ts'
import styles from './overview.module.css'
import { type AccountStanding, standingOf } from './standing-of-account.ts'

export function Overview(): ReactNode {
  const { data, error, isFetching, refetch } = useMe()
  if (data !== undefined) return <OverviewOf me={data} />
  return (
    <Page name="Overview" isNarrow>
      {error === null ? (
        <Loading>
          <Bar />
          <Bar />
          <Bar size="short" />
        </Loading>
      ) : (
        <LoadProblem what="Your account" error={error} isBusy={isFetching} again={() => void refetch()} />
      )}
    </Page>
  )
}

export function OverviewOf({ me: { person, account, installation } }: { readonly me: Me }): ReactNode {
  const standing = standingOf(account)
  const heading = person.name === '' ? 'Welcome' : `Welcome, ${person.name}`
  const isStopped = account.state === 'Suspended' || account.state === 'Closed'
  return (
    <Page name="Overview" heading={heading} isNarrow>
      {isStopped ? (
        <div className="banner danger" role="status">
          <div>
            <b>Your account is {standing.word.toLowerCase()}</b>
            <p>{standing.consequence}</p>
          </div>
        </div>
      ) : (
        <ol className={styles.steps}>
          <Step number={1} title="Verify your email" state="done">
            <p>{person.email}</p>
          </Step>
          <Step number={2} title="Get your account" state={standing.isUsable ? 'done' : 'now'}>
            <p role="status">{standing.isUsable ? 'Your account is ready.' : standing.consequence}</p>
          </Step>
          <Step number={3} title="Call a model" state={standing.isUsable ? 'now' : 'later'}>
            <p>Take a key from your administrator, and change the base URL of your OpenAI or Anthropic SDK.</p>
            {standing.isUsable && <BaseURLs apiURL={installation.apiURL} />}
          </Step>
        </ol>
      )}
      <AccountFacts account={account} standing={standing} />
    </Page>
  )
}

interface StepProps {
  readonly number: number
  readonly title: string
  readonly state: 'done' | 'now' | 'later'
  readonly children: ReactNode
}

function Step({ number, title, state, children }: StepProps): ReactNode {
  return (
    <li className={`${styles.step} ${styles[state]}`} aria-current={state === 'now' ? 'step' : undefined}>
      <span className={styles.dot} aria-hidden="true">
        {state === 'done' ? <Icon name="tick" weight={2} /> : number}
      </span>
      <div className={styles.body}>
        <h2>
          {title}
          {state === 'done' && <span className="visually-hidden"> (done)</span>}
        </h2>
        {children}
      </div>
    </li>
  )
}

function BaseURLs({ apiURL }: { readonly apiURL: string }): ReactNode {
  return (
    <div className={styles.urls}>
      <CopyField label="Base URL for OpenAI SDKs" value={`${apiURL}/v1`} />
      <CopyField label="Base URL for Anthropic SDKs" value={apiURL} />
    </div>
  )
}

function AccountFacts({ account, standing }: { readonly account: AccountView; readonly standing: AccountStanding }): ReactNode {
  if (account.state !== 'Active' && account.state !== 'Suspended') return null
  return (
    <section className={styles.section} aria-labelledby="account">
      <h2 id="account">Account</h2>
      <dl className={styles.facts}>
        <div>
          <dt>State</dt>
          <dd>
            <span className={`state ${standing.look}`}>{standing.word}</span>
          </dd>
        </div>
        <div>
          <dt>Plan</dt>
          <dd>{account.plan}</dd>
        </div>
        <div>
          <dt>Name</dt>
          <dd>
            {account.displayName} <code>{account.name}</code>
          </dd>
        </div>
      </dl>
    </section>
  )
}
