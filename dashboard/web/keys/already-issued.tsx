/** An answer got lost and the request was sent again: the key is there, and its value is not. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { Dialog } from '../components/dialog.tsx'

export function AlreadyIssued({ id, close }: { readonly id: string; readonly close: () => void }): ReactNode {
  const replace = (
    <Link className="button primary" href={`/keys/${encodeURIComponent(id)}?replace`}>
      Replace
    </Link>
  )
  return (
    <Dialog title="Already created" action={replace} onClose={close}>
      <p role="alert">Already created. Its value cannot be shown again. Replace gives the same key another value, shown once.</p>
    </Dialog>
  )
}
