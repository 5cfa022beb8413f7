/** A native list of choices. */
import type { ReactNode } from 'react'

export interface SelectProps {
  readonly name: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly options: readonly { readonly value: string; readonly text: string }[]
  readonly id?: string
  /** The name for screen readers, where no label stands above. */
  readonly label?: string
  readonly describedBy?: string | undefined
}

export function Select({ name, value, onChange, options, id, label, describedBy }: SelectProps): ReactNode {
  return (
    <select
      className="input"
      {...{ id, name, value }}
      aria-label={label}
      aria-describedby={describedBy}
      onChange={(event) => onChange(event.target.value)}
    >
      {options.map(({ value: one, text }) => (
        <option value={one} key={one}>
          {text}
        </option>
      ))}
    </select>
  )
}
