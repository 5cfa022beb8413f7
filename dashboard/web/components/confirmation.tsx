/** "Confirm it is you": opens when the server wants a fresh proof, and then lets the waiting request go on by itself. */
import { type ReactNode, useCallback, useState } from 'react'
import { missing, plainCode } from '../checks.ts'
import { useMe } from '../queries.ts'
import { signInPath } from '../sign-in-path.ts'
import { useSurroundings } from '../surroundings.ts'
import { type Ask, AskContext } from './ask.ts'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { Field, PasswordField } from './field.tsx'
import { Problem } from './problem.tsx'
import { UserName } from './user-name.tsx'
import { useForm } from './use-form.ts'

interface Question {
  readonly purpose: string
  readonly answer: (isProved: boolean) => void
}

export function Confirmation({ children }: { readonly children: ReactNode }): ReactNode {
  const [question, setQuestion] = useState<Question>()
  const ask = useCallback<Ask>(
    (purpose) =>
      new Promise((resolve) => {
        const answer = (isProved: boolean): void => {
          setQuestion(undefined)
          resolve(isProved)
        }
        setQuestion({ purpose, answer })
      }),
    [],
  )
  return (
    <AskContext value={ask}>
      {children}
      {question && <ConfirmDialog {...question} />}
    </AskContext>
  )
}

function ConfirmDialog({ purpose, answer }: Question): ReactNode {
  const person = useMe().data?.person
  const { leave, here } = useSurroundings()
  const cancel = (): void => answer(false)
  const signInAgain = (): void => leave(signInPath('confirm', here()))
  const about = `You signed in more than ten minutes ago. ${purpose} needs a fresh proof.`
  const { hasPassword = false, twoFactor = { isOn: false } } = person ?? {}
  if (person !== undefined && hasPassword)
    return <ProofForm needsCode={twoFactor.isOn} email={person.email} {...{ about, answer, cancel, signInAgain }} />
  return (
    <Dialog
      title="Confirm it is you"
      onClose={cancel}
      action={
        <Button look="primary" onClick={signInAgain}>
          Sign in again
        </Button>
      }
    >
      <p>
        {about} Sign in again{twoFactor.isOn ? ', with a code of your app' : ''}, and you are back here.
      </p>
    </Dialog>
  )
}

interface ProofFormProps {
  /** With two-factor on, the code follows the password as at a sign-in. */
  readonly needsCode: boolean
  readonly email: string
  readonly about: string
  readonly answer: (isProved: boolean) => void
  readonly cancel: () => void
  readonly signInAgain: () => void
}

function ProofForm({ needsCode, email, about, answer, cancel, signInAgain }: ProofFormProps): ReactNode {
  const { api } = useSurroundings()
  const { form, field, action } = useForm({
    purpose: 'Confirming',
    initial: { password: '', code: '' },
    checks: { password: missing('password'), ...(needsCode ? { code: missing('code') } : {}) },
    secret: 'password',
    submit: async ({ password, code }) => {
      await api.confirm({ password, ...(needsCode ? { code: plainCode(code) } : {}) })
      answer(true)
    },
  })
  const button = (
    <Button look="primary" type="submit" form="confirm-form" isBusy={action.isBusy}>
      Confirm
    </Button>
  )
  return (
    <Dialog title="Confirm it is you" about={about} onClose={cancel} action={button}>
      <form className="form" id="confirm-form" {...form}>
        <UserName email={email} />
        <PasswordField label="Password" autoComplete="current-password" {...field('password')} />
        {needsCode && (
          <Field label="Code" hint="Six digits from your app, or a backup code." autoComplete="one-time-code" isMono {...field('code')} />
        )}
        <Problem error={action.problem} />
      </form>
      <p className="small">
        <button className="link" type="button" onClick={signInAgain}>
          Sign in again instead
        </button>
      </p>
    </Dialog>
  )
}
