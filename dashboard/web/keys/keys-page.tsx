/** API Keys: the list, its search, and `New key`. */
import type { UseQueryResult } from '@tanstack/react-query'
import { type ReactNode, useEffect, useState } from 'react'
import { Link, useLocation, useSearch } from 'wouter'
import type { Keys, KeyView, PlanView } from '../../server/page-data/keys.ts'
import { ChangeButton } from '../components/button.tsx'
import { CopyField } from '../components/copy-field.tsx'
import { Empty } from '../components/empty.tsx'
import { useKeptFocus } from '../components/keep-focus.ts'
import { Page } from '../components/page.tsx'
import { LoadProblem } from '../components/problem.tsx'
import { useKeys, useMe, usePlan } from '../queries.ts'
import { KeyList, LoadingKeys } from './key-list.tsx'
import styles from './keys-page.module.css'
import { NewKey } from './new-key.tsx'
import { PlanProblem } from './plan-problem.tsx'

export function KeysPage(): ReactNode {
  const keys = useKeys()
  const plan = usePlan()
  const isPersonKnown = !useMe().isPending // the form may have a draft of this person
  const [isOpen, setIsOpen] = useNewKey()
  const button = (
    <ChangeButton look="primary" onClick={() => setIsOpen(true)}>
      New key
    </ChangeButton>
  )
  const isEmpty = keys.data?.keys.length === 0
  return (
    <Page
      name="API Keys"
      lead={<Fact keys={keys.data} plan={plan.data} isLoading={keys.isPending} />}
      actions={isEmpty ? undefined : button}
    >
      {isOpen && <PlanProblem plan={plan} />}
      <Content keys={keys} plan={plan.data} button={button} />
      {isOpen && isPersonKnown && plan.data && <NewKey plan={plan.data} keys={keys.data} close={() => setIsOpen(false)} />}
    </Page>
  )
}

interface ContentProps {
  readonly keys: UseQueryResult<Keys>
  readonly plan: PlanView | undefined
  readonly button: ReactNode
}

function Content({ keys: { data, error, isFetching, refetch }, plan, button }: ContentProps): ReactNode {
  if (data !== undefined) return <KeysOrEmpty keys={data.keys} plan={plan} button={button} />
  if (error === null) return <LoadingKeys />
  return <LoadProblem what="The keys" error={error} isBusy={isFetching} again={() => void refetch()} />
}

/** `/keys?new` opens the form: other pages link to it. */
function useNewKey(): [boolean, (isOpen: boolean) => void] {
  const isAsked = new URLSearchParams(useSearch()).has('new')
  const [here, go] = useLocation()
  const [isOpen, setIsOpen] = useState(isAsked)
  useEffect(() => {
    if (!isAsked) return
    setIsOpen(true)
    go(here, { replace: true }) // a reload or the way back does not open the form again
  }, [isAsked, here, go])
  return [isOpen, setIsOpen]
}

interface FactProps {
  readonly keys: Keys | undefined
  readonly plan: PlanView | undefined
  readonly isLoading: boolean
}

function Fact({ keys, plan, isLoading }: FactProps): ReactNode {
  if (isLoading) return <p role="status">Loading…</p>
  if (keys === undefined) return null
  const count = keys.most === undefined ? `${keys.used} in use` : `${keys.used} of ${keys.most}`
  if (plan === undefined) return <p>{count}</p>
  return (
    <p>
      {count} in the <Link href="/billing/plan">{plan.displayName ?? plan.name} plan</Link>
    </p>
  )
}

interface KeysOrEmptyProps {
  readonly keys: readonly KeyView[]
  readonly plan: PlanView | undefined
  readonly button: ReactNode
}

function KeysOrEmpty({ keys, plan, button }: KeysOrEmptyProps): ReactNode {
  if (keys.length === 0) return <NoKeys button={button} />
  return (
    <>
      <KeyList keys={keys} plan={plan} />
      <BaseURL />
      <p className={styles.footnote}>
        RPM is requests a minute, TPM tokens a minute. “plan” or “account” after a number says who set it; without, the key did. “Last used”
        is exact to the hour.
      </p>
    </>
  )
}

function NoKeys({ button }: { readonly button: ReactNode }): ReactNode {
  useKeptFocus()
  return (
    <Empty title="No keys yet" text="A key lets one machine, project or environment call the models, within the limits that you set.">
      {button}
    </Empty>
  )
}

function BaseURL(): ReactNode {
  const apiURL = useMe().data?.installation.apiURL
  if (apiURL === undefined) return null
  return (
    <div className={styles.url}>
      <CopyField label="Base URL" value={`${apiURL}/v1`} />
      <p className="hint">
        For OpenAI SDKs. Anthropic SDKs take it without <code>/v1</code>.
      </p>
    </div>
  )
}
