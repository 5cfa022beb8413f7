/** Two-factor: turn the authenticator app on or off, and make new backup codes. */
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { Me } from '../../server/page-data.ts'
import { Button, ChangeButton } from '../components/button.tsx'
import { Dialog } from '../components/dialog.tsx'
import { Problem } from '../components/problem.tsx'
import { Row, Rows } from '../components/rows.tsx'
import { useAction } from '../components/use-action.ts'
import { useSurroundings } from '../surroundings.ts'
import { BackupCodes } from './backup-codes.tsx'
import { focusSection, Section } from './section.tsx'
import { SetUpTwoFactor } from './set-up-two-factor.tsx'

type Open = 'none' | 'set-up' | 'turn-off' | 'new-codes'

export function TwoFactor({ person }: Pick<Me, 'person'>): ReactNode {
  const [open, setOpen] = useState<Open>('none')
  const { isOn, backupCodesLeft } = person.twoFactor
  const close = (): void => setOpen('none')
  return (
    <Section id="two-factor" title="Two-factor" about="A code from your phone at each sign-in, by password or provider.">
      <Rows>
        <Row
          title="Authenticator app"
          text={isOn ? <span className="state ok">On</span> : <span className="state off">Off</span>}
          button={
            <ChangeButton
              look="compact"
              label={`${isOn ? 'Turn off' : 'Turn on'} two-factor`}
              onClick={() => setOpen(isOn ? 'turn-off' : 'set-up')}
            >
              {isOn ? 'Turn off' : 'Turn on'}
            </ChangeButton>
          }
        />
        {isOn && (
          <Row
            title="Backup codes"
            text={backupCodesLeft === undefined ? 'Each one signs you in once.' : `${backupCodesLeft} left. Each one signs you in once.`}
            button={
              <ChangeButton look="compact" label="Make new ones: backup codes" onClick={() => setOpen('new-codes')}>
                Make new ones
              </ChangeButton>
            }
          />
        )}
      </Rows>
      {open === 'set-up' && <SetUpTwoFactor person={person} close={close} />}
      {open === 'turn-off' && <TurnOff close={close} />}
      {open === 'new-codes' && <NewCodes close={close} />}
    </Section>
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
      footer={
        <>
          <Button look="quiet" onClick={close}>
            Cancel
          </Button>
          <ChangeButton look="danger solid" isBusy={isBusy} onClick={() => perform()}>
            Turn off
          </ChangeButton>
        </>
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
  if (codes) return <BackupCodes title="Your new backup codes" codes={codes} close={close} />
  return (
    <Dialog
      title="Make new backup codes?"
      onClose={close}
      footer={
        <>
          <Button look="quiet" onClick={close}>
            Cancel
          </Button>
          <ChangeButton look="primary" isBusy={isBusy} onClick={() => perform()}>
            Make new ones
          </ChangeButton>
        </>
      }
    >
      <p>The codes that you have now stop working.</p>
      <Problem error={error} />
    </Dialog>
  )
}
