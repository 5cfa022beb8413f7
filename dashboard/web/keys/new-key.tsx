/** New key: the form, then the value, shown once. The value lives in this component alone: no cache, no storage and no address has it. */
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { Keys, NewKey as Issued, PlanView } from '../../server/page-data/keys.ts'
import { keepFocus } from '../components/keep-focus.ts'
import { useMe } from '../queries.ts'
import { useSurroundings } from '../surroundings.ts'
import { newAttempt } from './attempt.ts'
import { type KeyField, NEW_KEY } from './key-form.ts'
import { KeyFormDialog } from './key-form-dialog.tsx'
import { ShownOnce } from './shown-once.tsx'

export interface NewKeyProps {
  readonly plan: PlanView
  readonly keys: Keys | undefined
  readonly close: () => void
}

const DRAFT = 'new-key'

export function NewKey({ plan, keys, close }: NewKeyProps): ReactNode {
  const { api, drafts } = useSurroundings()
  const queries = useQueryClient()
  const person = useMe().data?.person.id ?? ''
  const [attempt] = useState(newAttempt)
  const [issued, setIssued] = useState<Issued>()
  const [initial] = useState(() => ({ ...NEW_KEY, ...(drafts.read(person, DRAFT) as Partial<Record<KeyField, string>>) }))
  const finish = (): void => {
    close()
    keepFocus() // the button of the empty list is gone with the first key
  }
  if (issued !== undefined) return <ShownOnce issued={issued} plan={plan} close={finish} />
  const leave = (): void => {
    drafts.keep(person, DRAFT, {})
    close()
  }
  const isFull = keys?.most !== undefined && keys.used >= keys.most
  return (
    <KeyFormDialog
      title="New key"
      about={`${plan.displayName ?? plan.name} plan. You can change all of this later, except the value.`}
      submitWords="Create key"
      purpose="Creating a key"
      notice={isFull && <Full most={keys.most} />}
      initial={initial}
      plan={plan}
      onChange={(values) => drafts.keep(person, DRAFT, values)}
      submit={async (form) => {
        const made = await api.createKey(form, attempt)
        drafts.keep(person, DRAFT, {})
        queries.setQueryData(['key', made.key.id], made.key)
        setIssued(made)
        void queries.invalidateQueries({ queryKey: ['keys'] })
      }}
      close={leave}
    />
  )
}

function Full({ most }: { readonly most: number | undefined }): ReactNode {
  return (
    <div className="banner warn">
      <div>
        <b>All {most} keys of the plan are in use</b>
        <p>Revoke one that is not used, or ask your administrator.</p>
      </div>
    </div>
  )
}
