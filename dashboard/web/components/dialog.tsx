/** A native modal dialog. Escape and the cross close it like `Cancel`; the focus goes to its first field, and afterwards back to the opener. */
import { type ReactNode, useId, useLayoutEffect, useRef } from 'react'
import { Button } from './button.tsx'
import styles from './dialog.module.css'
import { Icon } from './icons.tsx'

export interface DialogProps {
  readonly title: string
  /** One or two sentences below the title. */
  readonly about?: ReactNode
  /** The button beside `Cancel`. */
  readonly action?: ReactNode
  /** Replaces `Cancel` and the action. */
  readonly footer?: ReactNode
  /** For forms and long contents. Fills the screen of a phone. */
  readonly isWide?: boolean
  readonly children?: ReactNode
  readonly onClose: () => void
}

export function Dialog({ title, about, action, footer, isWide = false, children, onClose }: DialogProps): ReactNode {
  const id = useId()
  const ref = useRef<HTMLDialogElement>(null)
  // a layout effect: its clean-up runs while the dialog is still in the document, so that the browser can give the focus back
  useLayoutEffect(() => {
    const dialog = ref.current
    dialog?.showModal()
    firstField(dialog)?.focus()
    return () => dialog?.close()
  }, [])
  // the browser may close the dialog by itself: at the second Escape
  const onClosed = (): void => {
    if (ref.current === null || ref.current.open) return
    onClose()
    // a dialog that must not be closed now is still there, and would be out of reach
    requestAnimationFrame(() => {
      if (ref.current?.isConnected && !ref.current.open) ref.current.showModal()
    })
  }
  const onCancel = (event: { preventDefault: () => void }): void => {
    event.preventDefault()
    onClose()
  }
  return (
    <dialog
      className={isWide ? `${styles.dialog} ${styles.wide}` : styles.dialog}
      ref={ref}
      aria-labelledby={id}
      onCancel={onCancel}
      onClose={onClosed}
    >
      <header className={styles.head}>
        <div>
          <h2 id={id} tabIndex={-1}>
            {title}
          </h2>
          {about !== undefined && <p>{about}</p>}
        </div>
        <button className={styles.close} type="button" aria-label="Close" onClick={onClose}>
          <Icon name="cross" />
        </button>
      </header>
      <div className={styles.body}>{children}</div>
      <footer className={styles.foot}>
        {footer ?? (
          <>
            <Button look="quiet" onClick={onClose}>
              Cancel
            </Button>
            {action}
          </>
        )}
      </footer>
    </dialog>
  )
}

/** Where a person types or chooses, else the first button of the footer: `Cancel`. */
function firstField(dialog: HTMLDialogElement | null): HTMLElement | null {
  const field = dialog?.querySelector<HTMLElement>('input:not([readonly], [type="radio"]:not(:checked))')
  return field ?? dialog?.querySelector<HTMLElement>('footer button') ?? null
}
