/** Turn on two-factor, in two dialogs: the secret with the first code, then the backup codes. Nothing is on before the code was right. */
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { TwoFactorStart } from '../../server/page-data/people.ts'
import { appCodeError, plainCode } from '../checks.ts'
import { ChangeButton } from '../components/button.tsx'
import { CopyField } from '../components/copy-field.tsx'
import { Dialog } from '../components/dialog.tsx'
import { Field } from '../components/field.tsx'
import { Problem } from '../components/problem.tsx'
import { useForm } from '../components/use-form.ts'
import { useSurroundings } from '../surroundings.ts'
import { BackupCodes } from './backup-codes.tsx'
import { focusSection } from './section.tsx'

interface SetUpProps {
  readonly start: TwoFactorStart
  readonly close: () => void
}

export function SetUpTwoFactor({ start, close }: SetUpProps): ReactNode {
  const [isOn, setIsOn] = useState(false)
  const finish = (): void => {
    close()
    focusSection('two-factor')
  }
  if (!isOn) return <CodeStep start={start} close={close} onDone={() => setIsOn(true)} />
  return <BackupCodes title="Your backup codes" fact="Two-factor is on. " codes={start.backupCodes} close={finish} />
}

interface CodeStepProps extends SetUpProps {
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
      title="Turn on two-factor"
      about="Add this secret to an authenticator app, on your phone or in your password manager. Then type the code that the app shows."
      onClose={close}
      action={
        <ChangeButton look="primary" type="submit" form="two-factor-code" isBusy={action.isBusy}>
          Turn on
        </ChangeButton>
      }
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

/** `JBSW Y3DP EHPK`: groups of four are easier to type. */
function inGroups(secret: string): string {
  return secret.replaceAll(/(.{4})(?=.)/g, '$1 ')
}
