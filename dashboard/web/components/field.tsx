/** A field: label above, hint below, an error or a notice in place of the hint. */
import { type ReactNode, useId, useState } from 'react'

export interface FieldProps {
  readonly label: string
  readonly hint?: ReactNode
  /** Something to know about what was typed, which is not an error. */
  readonly notice?: ReactNode
  readonly error?: string | undefined
  readonly name: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly onBlur?: () => void
  readonly type?: 'text' | 'email' | 'password' | 'date'
  readonly autoComplete?: string
  readonly inputMode?: 'numeric' | 'decimal'
  readonly placeholder?: string
  readonly maxLength?: number
  /** The least day of a date. */
  readonly min?: string
  readonly isOptional?: boolean
  /** For codes: figures of one width. */
  readonly isMono?: boolean
  /** Stands within the field, at its right end. */
  readonly inside?: ReactNode
  /** What the number counts, within the field at its right end: `EUR`. */
  readonly unit?: string
  /** A second control beside the field, of the same thing. */
  readonly beside?: ReactNode
}

export function Field(props: FieldProps): ReactNode {
  const { label, hint, notice, error, isOptional = false, isMono = false, inside, unit, beside, onChange, ...rest } = props
  const id = useId()
  const help = `${id}-help`
  const input = (
    <input
      className={isMono ? 'input mono' : 'input'}
      {...{ id, ...rest }}
      onChange={(event) => onChange(event.target.value)}
      aria-invalid={error === undefined ? undefined : true}
      aria-describedby={describedBy(isOptional && optionalID(id), (error ?? notice ?? hint) !== undefined && help)}
    />
  )
  const control = <Affixed input={input} inside={inside} unit={unit} />
  return (
    <div className="field">
      <Label id={id} text={label} isOptional={isOptional} />
      {beside === undefined ? (
        control
      ) : (
        <div className="join">
          {control}
          {beside}
        </div>
      )}
      <Help id={help} hint={hint} notice={notice} error={error} />
    </div>
  )
}

function optionalID(id: string): string {
  return `${id}-optional`
}

/** "Optional" is beside the label and not within: the name of the field stays its name. */
function Label({ id, text, isOptional }: { readonly id: string; readonly text: string; readonly isOptional: boolean }): ReactNode {
  if (!isOptional) return <label htmlFor={id}>{text}</label>
  return (
    <div className="label">
      <label htmlFor={id}>{text}</label>
      <span className="optional" id={optionalID(id)}>
        Optional
      </span>
    </div>
  )
}

function describedBy(...ids: readonly (string | false)[]): string | undefined {
  const present = ids.filter((id) => id !== false)
  return present.length === 0 ? undefined : present.join(' ')
}

interface AffixedProps {
  readonly input: ReactNode
  readonly inside?: ReactNode
  readonly unit?: string | undefined
}

function Affixed({ input, inside, unit }: AffixedProps): ReactNode {
  if (inside === undefined && unit === undefined) return input
  return (
    <div className={unit === undefined ? 'affix has-inside' : 'affix has-unit'}>
      {input}
      {inside}
      {unit !== undefined && <span className="unit">{unit}</span>}
    </div>
  )
}

export interface HelpProps extends Pick<FieldProps, 'hint' | 'notice' | 'error'> {
  /** The control names it as its description. */
  readonly id: string
}

/** What stands below a control: the error, else the notice, else the hint. */
export function Help({ id, hint, notice, error }: HelpProps): ReactNode {
  const text = error ?? notice ?? hint
  if (text === undefined) return null
  return (
    <p className={error !== undefined ? 'error' : notice !== undefined ? 'notice' : 'hint'} id={id}>
      {text}
    </p>
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
