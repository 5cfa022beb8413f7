/** A native radio button or tick box, with its words and a hint. */
import type { ReactNode } from 'react'

export interface ChoiceProps {
  readonly type: 'radio' | 'checkbox'
  readonly name: string
  readonly isChosen: boolean
  readonly onChange: (isChosen: boolean) => void
  readonly hint?: string
  readonly children: ReactNode
}

export function Choice({ type, name, isChosen, onChange, hint, children }: ChoiceProps): ReactNode {
  return (
    <label className="choice">
      <input type={type} name={name} checked={isChosen} onChange={(event) => onChange(event.target.checked)} />
      <span>
        {children}
        {hint !== undefined && <span className="hint">{hint}</span>}
      </span>
    </label>
  )
}
