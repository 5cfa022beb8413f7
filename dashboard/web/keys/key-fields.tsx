/** The fields of a key: the same where it is made and where it is edited. */
import type { ReactNode } from 'react'
import type { PlanView } from '../../server/page-data/keys.ts'
import { budgetAmount, windowWords } from '../budget-words.ts'
import { ErrorSummary } from '../components/error-summary.tsx'
import { Field } from '../components/field.tsx'
import { Select } from '../components/select.tsx'
import { Source } from '../components/source.tsx'
import type { Form } from '../components/use-form.ts'
import { whole } from '../money.ts'
import { ExpiryField } from './expiry-field.tsx'
import { type KeyField, type RateName, rateHint, rateNotice } from './key-form.ts'
import { ModelChoice } from './model-choice.tsx'
import { Notes } from './notes.tsx'

const SUMMARY: Readonly<Record<KeyField, string>> = {
  name: 'Name is missing, or too long',
  models: 'No model is ticked',
  budget: 'Maximum budget is not an amount',
  window: 'Budget window',
  requestsPerMinute: 'Requests per minute is not a whole number',
  tokensPerMinute: 'Tokens per minute is not a whole number',
  expires: 'Expires',
  expiresAt: 'Expires is not a day in the future',
}
const WINDOWS = (['Day', 'Week', 'Month', 'Lifetime'] as const).map((value) => ({ value, text: windowWords(value) }))

export interface KeyFieldsProps {
  readonly form: Pick<Form<KeyField>, 'field' | 'values' | 'summary'>
  readonly plan: PlanView
  /** When the key begins, for the time that the plan allows. */
  readonly createdAt: Date
}

export function KeyFields({ form: { field, values, summary }, plan, createdAt }: KeyFieldsProps): ReactNode {
  return (
    <>
      <ErrorSummary names={summary} titles={SUMMARY} />
      <Field
        label="Name"
        autoComplete="off"
        maxLength={63}
        hint="Where it lives: one key for each machine, project or environment."
        {...field('name')}
      />
      <ModelChoice {...field('models')} plan={plan} />
      <Field
        label="Maximum budget"
        isOptional
        inputMode="decimal"
        autoComplete="off"
        unit={plan.currency}
        beside={<Select label="Budget window" options={WINDOWS} {...plain(field('window'))} />}
        hint={<BudgetHint plan={plan} />}
        {...field('budget')}
      />
      <div className="pair">
        <RateField limit="requestsPerMinute" label="Requests per minute" {...{ plan, values, field }} />
        <RateField limit="tokensPerMinute" label="Tokens per minute" {...{ plan, values, field }} />
      </div>
      <ExpiryField choice={field('expires')} date={field('expiresAt')} {...{ values, plan, createdAt }} />
    </>
  )
}

/** A list has no errors of its own. */
function plain({ name, value, onChange }: ReturnType<Form<KeyField>['field']>): {
  readonly name: string
  readonly value: string
  readonly onChange: (value: string) => void
} {
  return { name, value, onChange }
}

interface RateFieldProps extends Pick<Form<KeyField>, 'field' | 'values'> {
  readonly limit: RateName
  readonly label: string
  readonly plan: PlanView
}

function RateField({ limit, label, plan, field, values }: RateFieldProps): ReactNode {
  const usual = plan.limits.find((one) => one.limit === limit)?.default
  const notice = rateNotice(limit, values[limit], plan)
  return (
    <Field
      label={label}
      isOptional
      inputMode="numeric"
      autoComplete="off"
      {...(usual !== undefined && { placeholder: whole(usual) })}
      hint={<Notes notes={rateHint(limit, plan)} />}
      {...(notice && { notice: <Notes notes={[notice]} /> })}
      {...field(limit)}
    />
  )
}

/** The budgets that hold beside the one of the form. */
function BudgetHint({ plan }: { readonly plan: PlanView }): ReactNode {
  const others = plan.budgets.filter(({ isAudit }) => !isAudit)
  if (others.length === 0) return 'Empty: the key has no budget of its own.'
  return (
    <>
      Beside it hold{' '}
      {others.map((budget, index) => (
        <span key={`${budget.owner}/${budget.name}/${String(budget.isShared)}`}>
          {index > 0 && ' and '}
          {budgetAmount(budget, budget.amount, plan.currency)} {windowWords(budget.window)}{' '}
          {budget.isShared ? 'for all keys together' : 'for each key'} <Source owner={budget.owner} />
        </span>
      ))}
    </>
  )
}
