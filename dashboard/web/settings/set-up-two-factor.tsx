/** Turn on two-factor, in three dialogs: proof, secret and first code, backup codes. Nothing is on before the code was right. */
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { Me, TwoFactorStart } from '../../server/page-data.ts'
import { appCodeError, missing, plainCode } from '../checks.ts'
import { Button, ChangeButton } from '../components/button.tsx'
import { CopyField } from '../components/copy-field.tsx'
import { Dialog } from '../components/dialog.tsx'
import { Field, PasswordField } from '../components/field.tsx'
import { Problem } from '../components/problem.tsx'
import { useForm } from '../components/use-form.ts'
import { UserName } from '../components/user-name.tsx'
import { useSurroundings } from '../surroundings.ts'
import { BackupCodes } from './backup-codes.tsx'
import { focusSection } from './section.tsx'

const TITLE = 'Turn on two-factor'

interface SetUpProps {
  readonly person: Me['person']
  readonly close: () => void
}

export function SetUpTwoFactor({ person, close }: SetUpProps): ReactNode {
  const [start, setStart] = useState<TwoFactorStart>()
  const [isOn, setIsOn] = useState(false)
  const finish = (): void => {
    close()
    focusSection('two-factor')
  }
  if (start === undefined) return <ProofStep person={person} close={close} onStart={setStart} />
  if (!isOn) return <CodeStep start={start} close={close} onDone={() => setIsOn(true)} />
  return <BackupCodes title="Two-factor is on: your backup codes" codes={start.backupCodes} close={finish} />
}

function ProofStep({ person, close, onStart }: SetUpProps & { readonly onStart: (start: TwoFactorStart) => void }): ReactNode {
  const { api } = useSurroundings()
  const { hasPassword } = person
  const { form, field, action } = useForm({
    purpose: 'Turning on two-factor',
    initial: { password: '' },
    checks: hasPassword ? { password: missing('password') } : {},
    secret: 'password',
    submit: async ({ password }) => onStart(await api.startTwoFactor(hasPassword ? password : undefined)),
  })
  const about = 'You need an authenticator app, on your phone or in your password manager.'
  return (
    <Dialog
      title={TITLE}
      about={about}
      onClose={close}
      footer={<StepButtons form="two-factor-proof" name="Continue" isBusy={action.isBusy} close={close} />}
    >
      <form className="form" id="two-factor-proof" {...form}>
        <UserName email={person.email} />
        {hasPassword && <PasswordField label="Password" autoComplete="current-password" {...field('password')} />}
        <Problem error={action.problem} />
      </form>
    </Dialog>
  )
}

interface CodeStepProps {
  readonly start: TwoFactorStart
  readonly close: () => void
  readonly onDone: () => void
}

function CodeStep({ start, close, onDone }: CodeStepProps): ReactNode {
  const { api } = useSurroundings()
  const queries = useQueryClient()
  const { form, field, action } = useForm({
    purpose: 'Turning on two-factor',
    initial: { code: '' },
    checks: { code: appCodeError },
    secret: 'code',
    submit: async ({ code }) => {
      await api.turnOnTwoFactor(plainCode(code))
      onDone()
      await queries.invalidateQueries({ queryKey: ['me'] })
    },
  })
  return (
    <Dialog
      title={TITLE}
      about="Add the secret to your app: type or paste it there as a time-based code."
      onClose={close}
      footer={<StepButtons form="two-factor-code" name="Turn on" isBusy={action.isBusy} close={close} />}
    >
      <CopyField label="Secret" value={start.secret} shown={inGroups(start.secret)} />
      <p className="small">
        <a href={start.uri}>Open in an app on this device</a>
      </p>
      <form className="form" id="two-factor-code" {...form}>
        <Field
          label="Code"
          inputMode="numeric"
          autoComplete="one-time-code"
          isMono
          hint="Six digits from the app. Then we show your backup codes, once."
          {...field('code')}
        />
        <Problem error={action.problem} />
      </form>
    </Dialog>
  )
}

interface StepButtonsProps {
  /** Id of the form of the step. */
  readonly form: string
  readonly name: string
  readonly isBusy: boolean
  readonly close: () => void
}

function StepButtons({ form, name, isBusy, close }: StepButtonsProps): ReactNode {
  return (
    <>
      <Button look="quiet" onClick={close}>
        Cancel
      </Button>
      <ChangeButton look="primary" type="submit" form={form} isBusy={isBusy}>
        {name}
      </ChangeButton>
    </>
  )
}

/** `JBSW Y3DP EHPK`: groups of four are easier to type. */
function inGroups(secret: string): string {
  return secret.replaceAll(/(.{4})(?=.)/g, '$1 ')
}
