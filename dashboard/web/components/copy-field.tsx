/** A value to copy. Where the browser refuses the clipboard, the value is selected, and the page says so. */
import { type ReactNode, useId, useRef, useState } from 'react'
import { copyText } from './copy-text.ts'

export interface CopyFieldProps {
  readonly label: string
  readonly value: string
  /** The value as people read it; `value` is what is copied. */
  readonly shown?: string
  readonly hint?: string
}

export function CopyField({ label, value, shown = value, hint }: CopyFieldProps): ReactNode {
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  const [outcome, setOutcome] = useState<'none' | 'copied' | 'selected'>('none')
  const copy = async (): Promise<void> => {
    const isCopied = await copyText(value)
    if (!isCopied) input.current?.select()
    setOutcome(isCopied ? 'copied' : 'selected')
  }
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <div className="affix has-inside">
        <input className="input mono" id={id} ref={input} value={shown} readOnly aria-describedby={`${id}-help`} />
        <button className="button quiet compact inside" type="button" onClick={() => void copy()}>
          {outcome === 'copied' ? 'Copied' : 'Copy'}
          <span className="visually-hidden"> {label}</span>
        </button>
      </div>
      <p className="hint" id={`${id}-help`} role="status">
        {outcome === 'selected' ? 'The browser refused the clipboard. The value is selected: copy it with the keyboard.' : hint}
      </p>
    </div>
  )
}
