/** A link that looks like a button, to a page where something is changed. While nothing can be changed it is disabled, and the page-wide banner says why. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { useStanding } from '../standing.ts'
import { ChangeButton, type Look } from './button.tsx'

export interface LinkButtonProps {
  readonly href: string
  readonly text: string
  readonly look?: Look
  /** The name for screen readers, where the words need their row: `Extend: ci-smoke-tests`. */
  readonly label?: string
}

export function LinkButton({ href, text, look = 'default', label }: LinkButtonProps): ReactNode {
  const standing = useStanding()
  if (standing !== 'usual')
    return (
      <ChangeButton look={look} {...(label !== undefined && { label })}>
        {text}
      </ChangeButton>
    )
  return (
    <Link className={look === 'default' ? 'button' : `button ${look}`} href={href} aria-label={label}>
      {text}
    </Link>
  )
}
