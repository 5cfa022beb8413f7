/** Revoke: only after typing the name. The page of the key then counts the gateways. */
import type { ReactNode } from 'react'
import type { KeyView } from '../../server/page-data/keys.ts'
import { ChangeButton } from '../components/button.tsx'
import { Dialog } from '../components/dialog.tsx'
import { Field } from '../components/field.tsx'
import { Problem } from '../components/problem.tsx'
import { useForm } from '../components/use-form.ts'
import { useSurroundings } from '../surroundings.ts'
import { lastUsedFact } from './key-words.ts'
import { useKeptKey } from './use-key-change.ts'

export function RevokeDialog({ view, close }: { readonly view: KeyView; readonly close: () => void }): ReactNode {
  const { api } = useSurroundings()
  const keep = useKeptKey(view.id)
  const { id, name, hint, lastUsedAt } = view
  const { form, field, action } = useForm({
    purpose: 'Revoking a key',
    initial: { name: '' },
    checks: { name: (typed) => (typed.trim() === name ? undefined : `This is not ${name}.`) },
    submit: async (values) => {
      const revoked = await api.revokeKey(id, values.name.trim())
      close()
      keep(revoked)
    },
  })
  const button = (
    <ChangeButton look="danger solid" type="submit" form="revoke-form" isBusy={action.isBusy}>
      Revoke
    </ChangeButton>
  )
  return (
    <Dialog title={`Revoke ${name}?`} action={button} onClose={close}>
      <p>
        Every call with <code>{hint}</code> will answer 401, at once and for good. {lastUsedFact(lastUsedAt, new Date())}. Your other keys
        go on.
      </p>
      <form className="form" id="revoke-form" {...form}>
        <Field label="Type the name to confirm" autoComplete="off" hint={name} {...field('name')} />
        <Problem error={action.problem} />
      </form>
    </Dialog>
  )
}
