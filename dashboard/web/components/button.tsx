/** A button that can be busy, and that is disabled while nothing can be changed. */
import type { ReactNode } from 'react'
import { STANDING_ID, useStanding } from '../standing.ts'

export type Look = 'default' | 'primary' | 'quiet' | 'danger' | 'danger solid' | 'compact'

export interface ButtonProps {
  readonly children: ReactNode
  readonly look?: Look
  readonly type?: 'button' | 'submit'
  /** Id of the form that the button submits, where the button stands outside of it. */
  readonly form?: string
  /** The name for screen readers, where the words need their row: `Unlink GitHub`. */
  readonly label?: string
  readonly isBusy?: boolean
  readonly onClick?: () => void
}

export function Button({ children, look = 'default', type = 'button', form, label, isBusy = false, onClick }: ButtonProps): ReactNode {
  return (
    <button
      className={classOf(look)}
      type={type}
      form={form}
      aria-label={label}
      aria-busy={isBusy || undefined}
      onClick={isBusy ? undefined : onClick}
    >
      {children}
    </button>
  )
}

/** A button that changes something. While nothing can be changed it is disabled, and the page-wide banner says why. */
export function ChangeButton(props: ButtonProps): ReactNode {
  if (useStanding() === 'usual') return <Button {...props} />
  return (
    <button className={classOf(props.look)} type="button" disabled aria-label={props.label} aria-describedby={STANDING_ID}>
      {props.children}
    </button>
  )
}

function classOf(look: Look = 'default'): string {
  return look === 'default' ? 'button' : `button ${look}`
}
