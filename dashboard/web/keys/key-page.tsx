/** One key: its state with proof, its budgets, the limits in force, and what can be changed. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { KeyView, PlanView } from '../../server/page-data/keys.ts'
import { Refused } from '../api.ts'
import { Budget, Budgets } from '../components/budget.tsx'
import { Bar, Loading } from '../components/loading.tsx'
import { Page } from '../components/page.tsx'
import { PageSection } from '../components/page-section.tsx'
import { LoadProblem } from '../components/problem.tsx'
import { State } from '../components/state.tsx'
import { NotFound } from '../not-found.tsx'
import { useKey, usePlan } from '../queries.ts'
import { day } from '../times.ts'
import { KeyUsage } from '../usage/key-usage.tsx'
import { EditButton } from './edit-key.tsx'
import { KeyBanners } from './key-banners.tsx'
import { KeyChanges, ResumeButton } from './key-changes.tsx'
import { KeyProof } from './key-proof.tsx'
import { PlanProblem } from './plan-problem.tsx'
import { stateWords } from './key-state.ts'
import { lastUsedFact } from './key-words.ts'
import { LimitsInForce } from './limits-in-force.tsx'
import styles from './key-page.module.css'

export function KeyPage({ id }: { readonly id: string }): ReactNode {
  const { data, error, isFetching, refetch } = useKey(id)
  const plan = usePlan()
  if (error instanceof Refused && error.code === 'not-found') return <NotFound />
  if (data !== undefined) return <KeyPageOf view={data} plan={plan.data} planProblem={<PlanProblem plan={plan} />} />
  return (
    <Page name="API key" crumb={<Crumb />}>
      {error === null ? (
        <Loading>
          <Bar />
          <Bar />
          <Bar size="short" />
        </Loading>
      ) : (
        <LoadProblem what="The key" error={error} isBusy={isFetching} again={() => void refetch()} />
      )}
    </Page>
  )
}

function Crumb(): ReactNode {
  return <Link href="/keys">API Keys</Link>
}

interface KeyPageOfProps {
  readonly view: KeyView
  readonly plan: PlanView | undefined
  /** Why there is no plan. */
  readonly planProblem?: ReactNode
}

function KeyPageOf({ view, plan, planProblem }: KeyPageOfProps): ReactNode {
  const { look, word } = stateWords(view, new Date())
  const isEnding = view.wanted === 'Revoked'
  const isChangeable = !isEnding && !view.isManaged
  return (
    <Page
      name={view.name}
      crumb={<Crumb />}
      state={<State look={look} word={word} />}
      lead={<Facts view={view} />}
      actions={isChangeable ? <Actions view={view} plan={plan} /> : undefined}
    >
      {isChangeable && planProblem}
      <KeyBanners view={view} />
      {!isEnding && (
        <>
          <KeyBudgets view={view} currency={plan?.currency} />
          <LimitsInForce view={view} plan={plan} />
        </>
      )}
      <KeyUsage id={view.id} lastUsed={lastUsedFact(view.lastUsedAt, new Date())} />
      {view.isManaged && <p>Your administrator made this key. Ask there for a change.</p>}
      {isChangeable && <KeyChanges view={view} plan={plan} />}
    </Page>
  )
}

function Facts({ view }: { readonly view: KeyView }): ReactNode {
  return (
    <>
      <p className="small">
        <code>{view.hint}</code> · made on {day(new Date(view.createdAt))}
      </p>
      {view.wanted !== 'Revoked' && (
        <div className={styles.proof}>
          <KeyProof view={view} />
        </div>
      )}
    </>
  )
}

function Actions({ view, plan }: KeyPageOfProps): ReactNode {
  const isSuspended = view.wanted === 'Suspended'
  return (
    <>
      <EditButton view={view} plan={plan} isPrimary={!isSuspended} />
      {isSuspended && <ResumeButton id={view.id} />}
    </>
  )
}

function KeyBudgets({ view: { budgets }, currency }: { readonly view: KeyView; readonly currency: string | undefined }): ReactNode {
  if (budgets.length === 0)
    return (
      <PageSection title="Budgets">
        <p className="small muted">Neither key nor plan nor account sets a budget. On a prepaid account the balance ends calls.</p>
      </PageSection>
    )
  return (
    <PageSection title="Budgets" fact={budgets.length > 1 ? 'All apply; the first one used up stops the key' : undefined}>
      <Budgets>
        {budgets.map((budget) => (
          <Budget budget={budget} currency={currency} key={`${budget.owner}/${budget.name}/${String(budget.isShared)}`} />
        ))}
      </Budgets>
    </PageSection>
  )
}
