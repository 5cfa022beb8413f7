/** The amounts that the server offers, another one that the person types, and the way to the payment provider. */
import { type ReactNode, useRef } from 'react'
import type { Billing } from '../../server/page-data/billing.ts'
import { ChangeButton } from '../components/button.tsx'
import { Field, type FieldProps } from '../components/field.tsx'
import { Problem } from '../components/problem.tsx'
import { useForm } from '../components/use-form.ts'
import { newAttempt } from '../keys/attempt.ts'
import { microsOf, type Money } from '../micros.ts'
import { useSurroundings } from '../surroundings.ts'
import { plainNumber } from '../typed-number.ts'
import { leastTopUp } from './balance.ts'
import styles from './billing.module.css'
import { amountError, type Bounds, missingAfter, type Offer, offerOf, OTHER } from './top-up.ts'

export interface TopUpFormProps {
  readonly billing: Billing
  readonly money: Money
}

export function TopUpForm({ billing, money }: TopUpFormProps): ReactNode {
  const offer = offerOf(billing, money.cent)
  const pay = usePay()
  const isOther = ({ picked }: { readonly picked: string }): boolean => pickOf(offer, picked) === OTHER
  const { form, field, action, values } = useForm({
    purpose: 'Topping up',
    initial: { picked: '', amount: '' },
    checks: { amount: (text, all) => (isOther(all) && offer.bounds ? amountError(text, offer.bounds, money) : undefined) },
    submit: (all) => pay(isOther(all) ? plainNumber(all.amount) : pickOf(offer, all.picked)),
  })
  const { amount, picked } = { amount: field('amount'), picked: field('picked') }
  const least = leastTopUp(microsOf(billing.balance), money.cent)
  return (
    <form className="form" {...form}>
      <fieldset className="field">
        <legend>Amount</legend>
        <Chips offer={offer} picked={pickOf(offer, picked.value)} onPick={picked.onChange} money={money} />
        {!isOther(values) && amount.error !== undefined && <p className="error">{amount.error}</p>}
        {offer.isTooSmall && <p className="hint">One top-up is not enough: calls are answered again once {money.text(least)} is paid.</p>}
      </fieldset>
      {isOther(values) && offer.bounds && <OtherAmount field={amount} billing={billing} money={money} bounds={offer.bounds} />}
      <Problem error={action.problem} />
      <ChangeButton look="primary" type="submit" isBusy={action.isBusy}>
        Top up
      </ChangeButton>
      <p className="small muted">You pay at Stripe and come back here. Nothing renews by itself.</p>
    </form>
  )
}

/** What is picked: the person's choice as long as it is offered. */
function pickOf({ amounts, usual, bounds }: Offer, picked: string): string {
  return amounts.includes(picked) || (picked === OTHER && bounds !== undefined) ? picked : usual
}

/** Leads to the payment provider. An amount that is tried again is the same payment. */
function usePay(): (amount: string) => Promise<void> {
  const { api, leave } = useSurroundings()
  const attempts = useRef(new Map<bigint, string>())
  return async (amount) => {
    const micros = microsOf(amount)
    const attempt = attempts.current.get(micros) ?? newAttempt()
    attempts.current.set(micros, attempt)
    leave((await api.topUp(amount, attempt)).url)
  }
}

interface ChipsProps {
  readonly offer: Offer
  readonly picked: string
  readonly onPick: (pick: string) => void
  readonly money: Money
}

function Chips({ offer: { amounts, bounds }, picked, onPick, money }: ChipsProps): ReactNode {
  const chip = (value: string, words: string): ReactNode => (
    <label key={value}>
      <input type="radio" name="picked" value={value} checked={value === picked} onChange={() => onPick(value)} />
      {words}
    </label>
  )
  return (
    <div className={styles.chips}>
      {amounts.map((each) => chip(each, money.exact(microsOf(each))))}
      {bounds !== undefined && chip(OTHER, 'Other')}
    </div>
  )
}

interface OtherAmountProps extends TopUpFormProps {
  readonly field: Pick<FieldProps, 'name' | 'value' | 'error' | 'onChange' | 'onBlur'>
  readonly bounds: Bounds
}

function OtherAmount({ field, billing, money, bounds: { least, most } }: OtherAmountProps): ReactNode {
  const missing = missingAfter(field.value, billing, money.cent)
  const notice = missing > 0n ? `Not enough: ${money.text(missing)} more, and calls are answered again.` : undefined
  return (
    <Field
      label="Other amount"
      inputMode="decimal"
      autoComplete="off"
      unit={money.currency}
      hint={`From ${money.exact(least)} to ${money.exact(most)}.`}
      {...(notice !== undefined && { notice })}
      {...field}
    />
  )
}
