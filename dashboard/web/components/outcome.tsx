/** A word beside the button: what was done. Screen readers hear it when it appears. */
import type { ReactNode } from 'react'

/** @param text '' while there is nothing to say */
export function Outcome({ text }: { readonly text: string }): ReactNode {
  return <span role="status">{text !== '' && <span className="state ok">{text}</span>}</span>
}
