/** Expires: never, in some days, or on a day. */
import { type ReactNode, useId } from 'react'
import type { PlanView } from '../../server/page-data/keys.ts'
import { Help } from '../components/field.tsx'
import { Select } from '../components/select.tsx'
import type { Form } from '../components/use-form.ts'
import { EXPIRES, expiryHint, expiryNotice, type KeyField, type KeyValues, neverWords } from './key-form.ts'
import { Notes } from './notes.tsx'

export interface ExpiryFieldProps {
  readonly choice: ReturnType<Form<KeyField>['field']>
  readonly date: ReturnType<Form<KeyField>['field']>
  readonly values: KeyValues
  readonly plan: PlanView
  readonly createdAt: Date
}

export function ExpiryField({ choice, date, values, plan, createdAt }: ExpiryFieldProps): ReactNode {
  const id = useId()
  const help = `${id}-help`
  const now = new Date()
  const error = choice.error ?? date.error
  const notice = expiryNotice(values, plan, { now, createdAt })
  const options = [
    { value: EXPIRES.never, text: neverWords(plan) },
    ...EXPIRES.inDays.map((days) => ({ value: days, text: `In ${days} days` })),
    { value: EXPIRES.date, text: 'On a date' },
  ]
  return (
    <div className="field">
      <label htmlFor={id}>Expires</label>
      <div className="join">
        <Select id={id} describedBy={help} options={options} name={choice.name} value={choice.value} onChange={choice.onChange} />
        {choice.value === EXPIRES.date && (
          <input
            className="input"
            type="date"
            aria-label="Last day"
            aria-describedby={help}
            aria-invalid={error === undefined ? undefined : true}
            min={now.toISOString().slice(0, '2026-11-24'.length)}
            name={date.name}
            value={date.value}
            onChange={(event) => date.onChange(event.target.value)}
            onBlur={date.onBlur}
          />
        )}
      </div>
      <Help id={help} error={error} notice={notice && <Notes notes={[notice]} />} hint={expiryHint(values, plan, now)} />
    </div>
  )
}
