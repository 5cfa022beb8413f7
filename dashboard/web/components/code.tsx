/** Code that is ready to paste: wraps, never scrolls, and has its own `Copy`. */
import { type ReactNode, useRef, useState } from 'react'
import styles from './code.module.css'
import { copyText } from './copy-text.ts'

export interface CodeProps {
  /** What `Copy` copies, for screen readers: `.env` */
  readonly name: string
  readonly text: string
  /** After the text was copied. */
  readonly onCopied?: () => void
}

export function Code({ name, text, onCopied }: CodeProps): ReactNode {
  const code = useRef<HTMLElement>(null)
  const [outcome, setOutcome] = useState<'none' | 'copied' | 'selected'>('none')
  const copy = async (): Promise<void> => {
    const isCopied = await copyText(text)
    if (isCopied) onCopied?.()
    else if (code.current) getSelection()?.selectAllChildren(code.current)
    setOutcome(isCopied ? 'copied' : 'selected')
  }
  return (
    <div className={styles.code}>
      <pre>
        <code ref={code}>{text}</code>
      </pre>
      <button
        className="button compact"
        type="button"
        aria-label={`${outcome === 'copied' ? 'Copied' : 'Copy'} ${name}`}
        onClick={() => void copy()}
      >
        {outcome === 'copied' ? 'Copied' : 'Copy'}
      </button>
      <p className={styles.note} role="status">
        {outcome === 'selected' ? 'The browser refused the clipboard. The text is selected: copy it with the keyboard.' : ''}
      </p>
      <span className="visually-hidden" role="status">
        {outcome === 'copied' ? 'Copied' : ''}
      </span>
    </div>
  )
}
