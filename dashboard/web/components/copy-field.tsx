/** A value to copy. The value wraps, so that it can be read whole. Where the browser refuses the clipboard, the value is selected instead. */
import { type ReactNode, useId, useRef, useState } from 'react'
import styles from './copy-field.module.css'
import { copyText } from './copy-text.ts'

export interface CopyFieldProps {
  readonly label: string
  readonly value: string
  /** The value as people read it; `value` is what is copied. */
  readonly shown?: string
}

/** What is said of a copy. The button alone changes its name, which most screen readers keep to themselves. */
const OUTCOMES = {
  none: '',
  copied: 'Copied',
  selected: 'The browser refused the clipboard. The value is selected: copy it with the keyboard.',
}

export function CopyField({ label, value, shown = value }: CopyFieldProps): ReactNode {
  const id = useId()
  const code = useRef<HTMLElement>(null)
  const [outcome, setOutcome] = useState<'none' | 'copied' | 'selected'>('none')
  const copy = async (): Promise<void> => {
    const isCopied = await copyText(value)
    if (!isCopied && code.current) getSelection()?.selectAllChildren(code.current)
    setOutcome(isCopied ? 'copied' : 'selected')
  }
  return (
    <div className="field" role="group" aria-labelledby={id}>
      <span className="label" id={id}>
        {label}
      </span>
      <div className={styles.value}>
        <code ref={code}>{shown}</code>
        <button className="button quiet compact" type="button" onClick={() => void copy()}>
          {outcome === 'copied' ? 'Copied' : 'Copy'}
          <span className="visually-hidden">: {label}</span>
        </button>
      </div>
      <p className={outcome === 'copied' ? 'visually-hidden' : 'hint'} role="status" hidden={outcome === 'none'}>
        {OUTCOMES[outcome]}
      </p>
    </div>
  )
}
