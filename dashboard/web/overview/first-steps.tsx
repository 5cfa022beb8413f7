/** The steps to the first answer. The page looks again every few seconds, so that they tick by themselves. */
import type { ReactNode } from 'react'
import type { Billing } from '../../server/page-data/billing.ts'
import type { KeyView, PlanView } from '../../server/page-data/keys.ts'
import type { Me } from '../../server/page-data/people.ts'
import { Code } from '../components/code.tsx'
import { CopyField } from '../components/copy-field.tsx'
import { Icon } from '../components/icons.tsx'
import { LinkButton } from '../components/link-button.tsx'
import { modelFor, snippets } from '../keys/snippets.ts'
import { microsOf, moneyIn } from '../micros.ts'
import styles from './first-steps.module.css'
import { type StepName, type StepState, stepsOf } from './progress.ts'

interface FirstStepsProps {
  readonly me: Me
  readonly billing: Billing
  readonly keys: readonly KeyView[]
  readonly plan: PlanView | undefined
}

export function FirstSteps(props: FirstStepsProps): ReactNode {
  return (
    <ol className={styles.steps}>
      {stepsOf(props.billing, props.keys).map(({ name, state }, index) => (
        <Step number={index + 1} title={TITLES[name]} state={state} key={name}>
          <StepBody name={name} state={state} {...props} />
        </Step>
      ))}
    </ol>
  )
}

const TITLES: Readonly<Record<StepName, string>> = {
  verify: 'Verify your email',
  topUp: 'Top up',
  key: 'Make a key',
  call: 'Call a model',
}

interface StepProps {
  readonly number: number
  readonly title: string
  readonly state: StepState
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

function StepBody({
  name,
  state,
  me,
  billing,
  keys,
  plan,
}: FirstStepsProps & { readonly name: StepName; readonly state: StepState }): ReactNode {
  switch (name) {
    case 'verify':
      return <p>{me.person.email}</p>
    case 'topUp':
      return <TopUpStep billing={billing} state={state} />
    case 'key':
      return <KeyStep keys={keys} state={state} />
    case 'call':
      return <CallStep apiURL={me.installation.apiURL} plan={plan} />
  }
}

function TopUpStep({ billing, state }: { readonly billing: Billing; readonly state: StepState }): ReactNode {
  const balance = `Your balance is ${moneyIn(billing.currency).text(microsOf(billing.balance))}.`
  if (state === 'done') return <p>{balance}</p>
  const { provider, command } = billing.payments
  if (provider === 'stripe')
    return (
      <>
        <p>{balance} Calls are answered once there is credit; nothing renews by itself.</p>
        <div className="actions">
          <LinkButton href="/billing" text="Top up" look="primary" />
        </div>
      </>
    )
  return (
    <>
      <p>{balance} Calls are answered once there is credit. Ask your administrator, and name your account.</p>
      <div className={styles.values}>
        <CopyField label="Account" value={billing.account} />
        {command !== undefined && <CopyField label="Command, on your own machine" value={command} />}
      </div>
    </>
  )
}

function KeyStep({ keys, state }: { readonly keys: readonly KeyView[]; readonly state: StepState }): ReactNode {
  if (state === 'done') return <p>{keys.length === 1 ? keys[0]?.name : `${keys.length} keys`}</p>
  return (
    <>
      <p>One for each machine, project or environment, so that one can be revoked without the others.</p>
      {state === 'now' && (
        <div className="actions">
          <LinkButton href="/keys?new" text="New key" look="primary" />
        </div>
      )}
    </>
  )
}

function CallStep({ apiURL, plan }: { readonly apiURL: string; readonly plan: PlanView | undefined }): ReactNode {
  const model = modelFor({ models: ['*'] }, plan)
  const curl = snippets({ value: '', apiURL, model }).find(({ name }) => name === 'curl')
  return (
    <>
      <p>With any OpenAI or Anthropic SDK. Change the base URL, keep your code.</p>
      {curl && (
        <div className={styles.code}>
          <Code name="the command" text={curl.text} />
        </div>
      )}
    </>
  )
}
