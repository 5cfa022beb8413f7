/** Tells password managers whose password a form asks for. Not shown, and skipped by keyboard and screen reader. */
import type { ReactNode } from 'react'

export function UserName({ email }: { readonly email: string }): ReactNode {
  return <input className="visually-hidden" type="email" autoComplete="username" value={email} tabIndex={-1} aria-hidden="true" readOnly />
}
