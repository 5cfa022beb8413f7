/** Suspend, Resume, Replace and Revoke. */
import { type ReactNode, useEffect, useState } from 'react'
import { useLocation, useSearch } from 'wouter'
import type { KeyView, NewKey as Issued, PlanView } from '../../server/page-data/keys.ts'
import { ChangeButton } from '../components/button.tsx'
import { useKeptFocus } from '../components/keep-focus.ts'
import { PageSection } from '../components/page-section.tsx'
import { Problem } from '../components/problem.tsx'
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
        <StopRow view={view} />
        <ReplaceRow view={view} plan={plan} />
        <RevokeRow view={view} />
      </Rows>
    </PageSection>
  )
}

/** One row for both, so that the focus stays on the button whose words change. */
function StopRow({ view: { id, wanted } }: { readonly view: KeyView }): ReactNode {
  const { api } = useSurroundings()
  const isSuspended = wanted === 'Suspended'
  const purpose = isSuspended ? 'Resuming a key' : 'Suspending a key'
  const { isBusy, error, perform } = useKeyChange(id, purpose, () => (isSuspended ? api.resumeKey(id) : api.suspendKey(id)))
  const words = isSuspended ? 'Resume' : 'Suspend'
  return (
    <Row
      title={words}
      text={
        isSuspended
          ? 'Calls are answered again within a second, with the same value.'
          : 'Calls answer 401 within a second. Resume brings the same value back.'
      }
      error={error}
      button={
        <ChangeButton isBusy={isBusy} onClick={() => perform()}>
          {words}
        </ChangeButton>
      }
    />
  )
}

/** Beside the heading of a suspended key. */
export function ResumeButton({ id }: { readonly id: string }): ReactNode {
  const { api } = useSurroundings()
  const { isBusy, error, perform } = useKeyChange(id, 'Resuming a key', () => api.resumeKey(id))
  useKeptFocus()
  return (
    <>
      <ChangeButton look="primary" isBusy={isBusy} onClick={() => perform()}>
        Resume
      </ChangeButton>
      <Problem error={error} />
    </>
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
  useKeptFocus()
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
