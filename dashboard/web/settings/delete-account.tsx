/** Delete account: only after typing the email. */
import { type ReactNode, useState } from 'react'
import { isSameEmail } from '../checks.ts'
import { ChangeButton } from '../components/button.tsx'
import { Dialog } from '../components/dialog.tsx'
import { Field } from '../components/field.tsx'
import { Problem } from '../components/problem.tsx'
import { useForm } from '../components/use-form.ts'
import { signInPath } from '../sign-in-path.ts'
import { useSurroundings } from '../surroundings.ts'
import { Section } from './section.tsx'

export function DeleteAccount({ email }: { readonly email: string }): ReactNode {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <Section id="delete-account" title="Delete account" about="Stops all keys. Usage and payments stay with the administrator.">
      <div className="actions">
        <ChangeButton look="danger" onClick={() => setIsOpen(true)}>
          Delete account
        </ChangeButton>
      </div>
      {isOpen && <DeleteDialog email={email} close={() => setIsOpen(false)} />}
    </Section>
  )
}

function DeleteDialog({ email, close }: { readonly email: string; readonly close: () => void }): ReactNode {
  const { api, drafts, leave } = useSurroundings()
  const { form, field, action } = useForm({
    purpose: 'Deleting your account',
    initial: { email: '' },
    checks: { email: (typed) => (isSameEmail(typed, email) ? undefined : `This is not ${email}.`) },
    submit: async (values) => {
      await api.deleteAccount(values.email.trim())
      drafts.forget()
      leave(signInPath('account-deleted'))
    },
  })
  const button = (
    <ChangeButton look="danger solid" type="submit" form="delete-form" isBusy={action.isBusy}>
      Delete account
    </ChangeButton>
  )
  return (
    <Dialog title="Delete your account?" action={button} onClose={close}>
      <p>
        Calls with your keys answer 401 from now on, and you are signed out everywhere. A balance is not paid out by itself: ask your
        administrator first.
      </p>
      <form className="form" id="delete-form" {...form}>
        <Field label="Type your email to confirm" type="email" autoComplete="off" {...field('email')} />
        <Problem error={action.problem} />
      </form>
    </Dialog>
  )
}
