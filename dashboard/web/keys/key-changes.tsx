/** Suspend, Resume, Replace and Revoke. */
import { type ReactNode, useEffect, useState } from 'react'
import { useLocation, useSearch } from 'wouter'
import type { KeyView, NewKey as Issued, PlanView } from '../../server/page-data/keys.ts'
import { ChangeButton, type Look } from '../components/button.tsx'
import { PageSection } from '../components/page-section.tsx'
import { Row, Rows } from '../components/rows.tsx'
import { useSurroundings } from '../surroundings.ts'
import { ReplaceDialog } from './replace-dialog.tsx'
import { RevokeDialog } from './revoke-dialog.tsx'
import { ShownOnce } from './shown-once.tsx'
import { useKeyChange } from './use-key-change.ts'

interface KeyChangesProps {
  readonly view: KeyView
  readonly plan: PlanView | undefined
}

export function KeyChanges({ view, plan }: KeyChangesProps): ReactNode {
  return (
    <PageSection title="Stop or change the value">
      <Rows>
        {view.wanted === 'Suspended' ? <ResumeRow id={view.id} /> : <SuspendRow id={view.id} />}
        <ReplaceRow view={view} plan={plan} />
        <RevokeRow view={view} />
      </Rows>
    </PageSection>
  )
}

function SuspendRow({ id }: { readonly id: string }): ReactNode {
  const { api } = useSurroundings()
  const { isBusy, error, perform } = useKeyChange(id, 'Suspending a key', () => api.suspendKey(id))
  return (
    <Row
      title="Suspend"
      text="Calls answer 401 within a second. Resume brings the same value back."
      error={error}
      button={
        <ChangeButton isBusy={isBusy} onClick={() => perform()}>
          Suspend
        </ChangeButton>
      }
    />
  )
}

function ResumeRow({ id }: { readonly id: string }): ReactNode {
  return (
    <Row
      title="Resume"
      text="Calls are answered again within a second, with the same value."
      button={<ResumeButton id={id} look="default" />}
    />
  )
}

export function ResumeButton({ id, look }: { readonly id: string; readonly look: Look }): ReactNode {
  const { api } = useSurroundings()
  const { isBusy, perform } = useKeyChange(id, 'Resuming a key', () => api.resumeKey(id))
  return (
    <ChangeButton look={look} isBusy={isBusy} onClick={() => perform()}>
      Resume
    </ChangeButton>
  )
}

function ReplaceRow({ view, plan }: KeyChangesProps): ReactNode {
  const [isOpen, setIsOpen] = useReplaceAsked()
  const [issued, setIssued] = useState<Issued>()
  return (
    <>
      <Row
        title="Replace"
        text="A new value for the same key, limits and history. The old one can go on for a while."
        button={<ChangeButton onClick={() => setIsOpen(true)}>Replace</ChangeButton>}
      />
      {isOpen && (
        <ReplaceDialog
          view={view}
          issued={(made) => {
            setIssued(made)
            setIsOpen(false)
          }}
          close={() => setIsOpen(false)}
        />
      )}
      {issued && <ShownOnce issued={issued} plan={plan} close={() => setIssued(undefined)} />}
    </>
  )
}

/** `/keys/:key?replace` opens the dialog: for a key whose value was lost on its way. */
function useReplaceAsked(): [boolean, (isOpen: boolean) => void] {
  const isAsked = new URLSearchParams(useSearch()).has('replace')
  const [here, go] = useLocation()
  const [isOpen, setIsOpen] = useState(isAsked)
  useEffect(() => {
    if (isAsked) go(here, { replace: true })
  }, [isAsked, here, go])
  return [isOpen, setIsOpen]
}

function RevokeRow({ view }: { readonly view: KeyView }): ReactNode {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <Row
        title="Revoke"
        text="Ends the key for good, on every gateway. Its usage stays."
        button={
          <ChangeButton look="danger" onClick={() => setIsOpen(true)}>
            Revoke
          </ChangeButton>
        }
      />
      {isOpen && <RevokeDialog view={view} close={() => setIsOpen(false)} />}
    </>
  )
}
