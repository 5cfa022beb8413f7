/** Backup codes, shown once: `Copy`, then `Done`. Who closes without a copy is asked once. No live region ever holds the codes. */
import { type ReactNode, useRef, useState } from 'react'
import { Button } from '../components/button.tsx'
import { copyText } from '../components/copy-text.ts'
import { Dialog } from '../components/dialog.tsx'
import styles from './backup-codes.module.css'

export interface BackupCodesProps {
  readonly title: string
  /** What has just happened, as a sentence with a space behind it. */
  readonly fact: string
  readonly codes: readonly string[]
  readonly close: () => void
}

type Copying = 'not yet' | 'selected' | 'copied' | 'asked'

export function BackupCodes({ title, fact, codes, close }: BackupCodesProps): ReactNode {
  const [copying, setCopying] = useState<Copying>('not yet')
  const list = useRef<HTMLOListElement>(null)
  const copy = async (): Promise<void> => {
    const isCopied = await copyText(codes.join('\n'))
    if (!isCopied && list.current) getSelection()?.selectAllChildren(list.current)
    setCopying(isCopied ? 'copied' : 'selected')
  }
  const leave = (): void => (copying === 'copied' || copying === 'asked' ? close() : setCopying('asked'))
  const copyButton = (
    <Button look="primary" onClick={() => void copy()} key="copy">
      {copying === 'asked' ? 'Go back and copy' : 'Copy'}
    </Button>
  )
  return (
    <Dialog
      title={title}
      about={`${fact}Each code signs you in once, if you lose your phone. Keep the codes with your passwords: we cannot show them again.`}
      onClose={leave}
      footer={
        <>
          <p className={styles.note} role="status">
            {NOTES[copying]}
          </p>
          {copying === 'copied' && (
            <Button look="primary" onClick={close}>
              Done
            </Button>
          )}
          {copying === 'asked' && (
            <Button look="quiet" onClick={close}>
              Close anyway
            </Button>
          )}
          {copying !== 'copied' && copyButton}
        </>
      }
    >
      <ol className={styles.codes} ref={list} onCopy={() => setCopying('copied')}>
        {codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ol>
    </Dialog>
  )
}

const NOTES: Readonly<Record<Copying, string>> = {
  'not yet': '',
  selected: 'The browser refused the clipboard. The codes are selected: copy them with the keyboard.',
  copied: 'Copied',
  asked: 'The codes are not copied yet.',
}
