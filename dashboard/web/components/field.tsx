/** A field: label above, hint below, an error in place of the hint. */
import { type ReactNode, useId, useState } from 'react'

export interface FieldProps {
  readonly label: string
  readonly hint?: string
  readonly error?: string | undefined
  readonly name: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly onBlur?: () => void
  readonly type?: 'text' | 'email' | 'password'
  readonly autoComplete?: string
  readonly inputMode?: 'numeric'
  /** For codes: figures of one width. */
  readonly isMono?: boolean
  /** Stands within the field, at its right end. */
  readonly inside?: ReactNode
}

export function Field({ label, hint, error, name, value, onChange, onBlur, isMono = false, inside, ...rest }: FieldProps): ReactNode {
  const id = useId()
  const help = `${id}-help`
  const input = (
    <input
      className={isMono ? 'input mono' : 'input'}
      {...{ id, name, value, onBlur, ...rest }}
      onChange={(event) => onChange(event.target.value)}
      aria-invalid={error === undefined ? undefined : true}
      aria-describedby={error === undefined && hint === undefined ? undefined : help}
    />
  )
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {inside ? (
        <div className="affix has-inside">
          {input}
          {inside}
        </div>
      ) : (
        input
      )}
      {error !== undefined && (
        <p className="error" id={help}>
          {error}
        </p>
      )}
      {error === undefined && hint !== undefined && (
        <p className="hint" id={help}>
          {hint}
        </p>
      )}
    </div>
  )
}

export function PasswordField({ autoComplete, ...props }: FieldProps & { readonly autoComplete: string }): ReactNode {
  const [isShown, setIsShown] = useState(false)
  const show = (
    <button className="button quiet compact inside" type="button" onClick={() => setIsShown(!isShown)}>
      {isShown ? 'Hide' : 'Show'}
      <span className="visually-hidden"> {props.label.toLowerCase()}</span>
    </button>
  )
  return <Field {...props} type={isShown ? 'text' : 'password'} autoComplete={autoComplete} inside={show} />
}
