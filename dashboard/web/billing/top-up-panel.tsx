/** How credit is added: at the payment provider, or by an administrator, who then needs the name of the account. */
import { type ReactNode, useId } from 'react'
import type { Billing } from '../../server/page-data/billing.ts'
import { CopyField } from '../components/copy-field.tsx'
import type { Money } from '../micros.ts'
import styles from './billing.module.css'
import { TopUpForm } from './top-up-form.tsx'

interface TopUpPanelProps {
  readonly billing: Billing
  readonly money: Money
}

export function TopUpPanel({ billing, money }: TopUpPanelProps): ReactNode {
  const id = useId()
  return (
    <section className={styles.panel} aria-labelledby={id}>
      <h2 id={id}>Top up</h2>
      {billing.payments.provider === 'stripe' ? <TopUpForm billing={billing} money={money} /> : <AskAdministrator billing={billing} />}
    </section>
  )
}

function AskAdministrator({ billing: { account, payments } }: Pick<TopUpPanelProps, 'billing'>): ReactNode {
  return (
    <>
      <p className="small muted">
        {payments.provider === 'manual'
          ? 'Ask your administrator: credit is added by the people who run this installation. Give them the name of your account.'
          : 'Nothing is paid here. If your keys need credit, ask your administrator, and name your account.'}
      </p>
      <CopyField label="Account" value={account} />
      {payments.command !== undefined && (
        <>
          <p className="small muted">On your own machine you are the administrator. This command adds credit:</p>
          <CopyField label="Command" value={payments.command} />
        </>
      )}
    </>
  )
}
