/** The form of a key in its dialog, for a new key and for an edit. */
import type { ReactNode } from 'react'
import type { KeyForm, KeyView, PlanView } from '../../server/page-data/keys.ts'
import { Refused } from '../api.ts'
import { ChangeButton } from '../components/button.tsx'
import { Dialog } from '../components/dialog.tsx'
import { Problem } from '../components/problem.tsx'
import { useForm } from '../components/use-form.ts'
import { formOf, keyChecks, type KeyValues } from './key-form.ts'
import { KeyFields } from './key-fields.tsx'
import { AlreadyIssued } from './already-issued.tsx'

export interface KeyFormDialogProps {
  readonly title: string
  readonly about?: string
  /** The words of the button. */
  readonly submitWords: string
  readonly purpose: string
  readonly initial: KeyValues
  readonly plan: PlanView
  /** The key that is edited. */
  readonly former?: KeyView
  /** A sentence above the fields. */
  readonly notice?: ReactNode
  readonly onChange?: (values: KeyValues) => void
  readonly submit: (form: KeyForm) => Promise<void>
  readonly close: () => void
}

export function KeyFormDialog(props: KeyFormDialogProps): ReactNode {
  const { title, about, submitWords, purpose, initial, plan, former, notice, onChange, submit, close } = props
  const form = useForm({
    purpose,
    initial,
    checks: keyChecks(() => new Date()),
    ...(onChange && { onChange }),
    submit: (values) => submit(formOf(values, new Date(), former)),
  })
  const { problem, isBusy } = form.action
  const issued = problem instanceof Refused && problem.code === 'conflict' ? problem.fields['key'] : undefined
  if (issued !== undefined) return <AlreadyIssued id={issued} close={close} />
  const button = (
    <ChangeButton look="primary" type="submit" form="key-form" isBusy={isBusy}>
      {submitWords}
    </ChangeButton>
  )
  // while the request is on its way the dialog stays: the answer may have a value that is shown only once
  const leave = (): void => (isBusy ? undefined : close())
  return (
    <Dialog title={title} {...(about !== undefined && { about })} action={button} isWide onClose={leave}>
      {notice}
      <form className="form" id="key-form" {...form.form}>
        <KeyFields form={form} plan={plan} createdAt={former === undefined ? new Date() : new Date(former.createdAt)} />
        <Problem error={problem} />
      </form>
    </Dialog>
  )
}
