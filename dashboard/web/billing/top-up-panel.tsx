/** How credit is added: at the payment provider, or by an administrator, who then needs the name of the account. */
import { type ReactNode, useId, useRef, useState } from 'react'
import type { Billing } from '../../server/page-data/billing.ts'
import { newAttempt } from '../keys/attempt.ts'
import { ChangeButton } from '../components/button.tsx'
import { CopyField } from '../components/copy-field.tsx'
import { Problem } from '../components/problem.tsx'
import { useAction } from '../components/use-action.ts'
import { microsOf, type Money } from '../micros.ts'
import { useSurroundings } from '../surroundings.ts'
import { leastTopUp } from './balance.ts'
import styles from './billing.module.css'
import { offerOf } from './top-up.ts'

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

function TopUpForm({ billing, money }: TopUpPanelProps): ReactNode {
  const { api, leave } = useSurroundings()
  const { amounts, usual, isTooSmall } = offerOf(billing, money.cent)
  const [picked, setPicked] = useState('')
  const amount = amounts.includes(picked) ? picked : usual
  const attempts = useRef(new Map<string, string>()) // an amount that is tried again is the same payment
  const { isBusy, error, perform } = useAction('Topping up', async () => {
    const attempt = attempts.current.get(amount) ?? newAttempt()
    attempts.current.set(amount, attempt)
    leave((await api.topUp(amount, attempt)).url)
  })
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault()
        perform()
      }}
    >
      <fieldset className="field">
        <legend>Amount</legend>
        <div className={styles.chips}>
          {amounts.map((each) => (
            <label key={each}>
              <input type="radio" name="amount" value={each} checked={each === amount} onChange={() => setPicked(each)} />
              {money.exact(microsOf(each))}
            </label>
          ))}
        </div>
        {isTooSmall && (
          <p className="hint">
            One top-up is not enough: calls are answered again once {money.text(leastTopUp(microsOf(billing.balance), money.cent))} is paid.
          </p>
        )}
      </fieldset>
      <Problem error={error} />
      <ChangeButton look="primary" type="submit" isBusy={isBusy}>
        Top up
      </ChangeButton>
      <p className="small muted">You pay at Stripe and come back here. Nothing renews by itself.</p>
    </form>
  )
}
