/** Two-factor: turn the authenticator app on or off, and make new backup codes. */
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { Me, TwoFactorStart } from '../../server/page-data/people.ts'
import { ChangeButton } from '../components/button.tsx'
import { Dialog } from '../components/dialog.tsx'
import { Problem } from '../components/problem.tsx'
import { Row, Rows } from '../components/rows.tsx'
import { type Action, useAction } from '../components/use-action.ts'
import { useSurroundings } from '../surroundings.ts'
import { BackupCodes } from './backup-codes.tsx'
import { focusSection, Section } from './section.tsx'
import { SetUpTwoFactor } from './set-up-two-factor.tsx'

type Open = 'nothing' | 'turn-off' | 'new-codes'

export function TwoFactor({ person }: Pick<Me, 'person'>): ReactNode {
  const { api } = useSurroundings()
  const [open, setOpen] = useState<Open>('nothing')
  const [start, setStart] = useState<TwoFactorStart>()
  const turnOn = useAction('Turning on two-factor', async () => setStart(await api.startTwoFactor()))
  const close = (): void => setOpen('nothing')
  return (
    <Section id="two-factor" title="Two-factor" about="A code from your phone at each sign-in, by password or provider.">
      {person.twoFactor.isOn ? <OnRows person={person} open={setOpen} /> : <OffRow turnOn={turnOn} />}
      {start && <SetUpTwoFactor start={start} close={() => setStart(undefined)} />}
      {open === 'turn-off' && <TurnOff close={close} />}
      {open === 'new-codes' && <NewCodes close={close} />}
    </Section>
  )
}

function OffRow({ turnOn: { isBusy, error, perform } }: { readonly turnOn: Action<[]> }): ReactNode {
  return (
    <Row
      title="Authenticator app"
      text={<span className="state off">Off</span>}
      error={error}
      button={
        <ChangeButton look="compact" label="Turn on two-factor" isBusy={isBusy} onClick={() => perform()}>
          Turn on
        </ChangeButton>
      }
    />
  )
}

function OnRows({ person, open }: Pick<Me, 'person'> & { readonly open: (dialog: Open) => void }): ReactNode {
  const left = person.twoFactor.backupCodesLeft
  return (
    <Rows>
      <Row
        title="Authenticator app"
        text={<span className="state ok">On</span>}
        button={
          <ChangeButton look="compact" label="Turn off two-factor" onClick={() => open('turn-off')}>
            Turn off
          </ChangeButton>
        }
      />
      <Row
        title="Backup codes"
        text={`${left === undefined ? '' : `${left} left. `}Each one signs you in once.`}
        button={
          <ChangeButton look="compact" label="Make new ones: backup codes" onClick={() => open('new-codes')}>
            Make new ones
          </ChangeButton>
        }
      />
    </Rows>
  )
}

function TurnOff({ close }: { readonly close: () => void }): ReactNode {
  const { api } = useSurroundings()
  const queries = useQueryClient()
  const { isBusy, error, perform } = useAction('Turning off two-factor', async () => {
    await api.turnOffTwoFactor()
    await queries.invalidateQueries({ queryKey: ['me'] })
    close()
    focusSection('two-factor')
  })
  return (
    <Dialog
      title="Turn off two-factor?"
      onClose={close}
      action={
        <ChangeButton look="danger solid" isBusy={isBusy} onClick={() => perform()}>
          Turn off
        </ChangeButton>
      }
    >
      <p>Then nothing but your password or your provider is asked for at sign-in. Your backup codes stop working.</p>
      <Problem error={error} />
    </Dialog>
  )
}

function NewCodes({ close }: { readonly close: () => void }): ReactNode {
  const { api } = useSurroundings()
  const queries = useQueryClient()
  const [codes, setCodes] = useState<readonly string[]>()
  const { isBusy, error, perform } = useAction('Making new backup codes', async () => {
    setCodes((await api.newBackupCodes()).backupCodes)
    await queries.invalidateQueries({ queryKey: ['me'] })
  })
  if (codes) return <BackupCodes title="Your new backup codes" fact="The former codes no longer work. " codes={codes} close={close} />
  return (
    <Dialog
      title="Make new backup codes?"
      onClose={close}
      action={
        <ChangeButton look="primary" isBusy={isBusy} onClick={() => perform()}>
          Make new ones
        </ChangeButton>
      }
    >
      <p>The codes that you have now stop working.</p>
      <Problem error={error} />
    </Dialog>
  )
}
