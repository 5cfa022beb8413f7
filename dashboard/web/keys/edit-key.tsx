/** `Edit limits`: the form of a new key, filled in. Its button is called after what the state of the key asks for. */
import { type ReactNode, useState } from 'react'
import type { KeyView, PlanView } from '../../server/page-data/keys.ts'
import { ChangeButton } from '../components/button.tsx'
import { useSurroundings } from '../surroundings.ts'
import { usedUpBudget } from './key-banner.ts'
import { valuesOf } from './key-form.ts'
import { KeyFormDialog } from './key-form-dialog.tsx'
import { expiresSoon } from './key-state.ts'
import { useKeptKey } from './use-key-change.ts'

export interface EditButtonProps {
  readonly view: KeyView
  readonly plan: PlanView | undefined
  readonly isPrimary: boolean
}

export function EditButton({ view, plan, isPrimary }: EditButtonProps): ReactNode {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <ChangeButton look={isPrimary ? 'primary' : 'default'} isBusy={isOpen && plan === undefined} onClick={() => setIsOpen(true)}>
        {editWords(view)}
      </ChangeButton>
      {isOpen && plan !== undefined && <EditKey view={view} plan={plan} close={() => setIsOpen(false)} />}
    </>
  )
}

function editWords(view: KeyView): string {
  if (view.state === 'BudgetUsedUp' && usedUpBudget(view.budgets)?.owner === 'key') return 'Raise budget'
  return view.state === 'Expired' || expiresSoon(view, new Date()) ? 'Extend' : 'Edit limits'
}

interface EditKeyProps {
  readonly view: KeyView
  readonly plan: PlanView
  readonly close: () => void
}

function EditKey({ view, plan, close }: EditKeyProps): ReactNode {
  const { api } = useSurroundings()
  const keep = useKeptKey(view.id)
  const [former] = useState(view) // the page reads the key again meanwhile, which must not change what is being edited
  return (
    <KeyFormDialog
      title="Edit limits"
      submitWords="Save changes"
      purpose="Changing a key"
      initial={valuesOf(former)}
      plan={plan}
      former={former}
      submit={async (form) => {
        keep(await api.editKey(view.id, form))
        close()
      }}
      close={close}
    />
  )
}
