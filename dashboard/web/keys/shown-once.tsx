/**
 * The value of a key, shown once: `Copy`, then `Done`. Who closes without a copy is asked once. No live region ever holds the value, and closing
 * takes it out of the page.
 */
import { type ReactNode, type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react'
import type { NewKey as Issued, PlanView } from '../../server/page-data/keys.ts'
import { Button } from '../components/button.tsx'
import { Code } from '../components/code.tsx'
import { copyText } from '../components/copy-text.ts'
import { Dialog } from '../components/dialog.tsx'
import { Icon } from '../components/icons.tsx'
import { State } from '../components/state.tsx'
import { Tabs } from '../components/tabs.tsx'
import { useKey, useMe } from '../queries.ts'
import { bannerOf } from './key-banner.ts'
import { KeyProof } from './key-proof.tsx'
import styles from './shown-once.module.css'
import { modelFor, snippets } from './snippets.ts'

export interface ShownOnceProps {
  readonly issued: Issued
  readonly plan: PlanView | undefined
  readonly close: () => void
}

type Copying = 'not yet' | 'selected' | 'copied'

export function ShownOnce({ issued: { key, value }, plan, close }: ShownOnceProps): ReactNode {
  const [copying, setCopying] = useState<Copying>('not yet')
  const [isAsked, setIsAsked] = useState(false)
  const apiURL = useMe().data?.installation.apiURL ?? ''
  const copyButton = useRef<HTMLButtonElement>(null)
  const field = useRef<HTMLTextAreaElement>(null)
  useLayoutEffect(() => copyButton.current?.focus(), [])
  useWarningBeforeUnload(copying !== 'copied')
  const copied = (): void => {
    setCopying('copied')
    setIsAsked(false)
  }
  const copy = async (): Promise<void> => {
    if (await copyText(value)) return copied()
    field.current?.focus()
    field.current?.select()
    setCopying('selected')
    setIsAsked(false)
  }
  const leave = (): void => (copying === 'copied' || isAsked ? close() : setIsAsked(true))
  const model = modelFor(key, plan)
  return (
    <Dialog
      title="Copy your key now"
      about={
        <>
          The value of <b>{key.name}</b> is shown this once. We keep only its hash.
        </>
      }
      isWide
      onClose={leave}
      footer={<Footer {...{ isAsked, copying, close, leave }} copy={() => void copy()} />}
    >
      <Value {...{ value, field, copying, copied }}>
        <button className={copying === 'copied' ? 'button' : 'button primary'} type="button" ref={copyButton} onClick={() => void copy()}>
          <Icon name={copying === 'copied' ? 'tick' : 'copy'} />
          {copying === 'copied' ? 'Copied' : 'Copy'}
        </button>
      </Value>
      <LiveProof id={key.id} />
      <Tabs
        label="Ready to paste"
        tabs={snippets({ value, apiURL, model }).map(({ name, text }) => ({
          name,
          panel: <Code name={name} text={text} {...(name === '.env' && { onCopied: copied })} />,
        }))}
      />
    </Dialog>
  )
}

interface ValueProps {
  readonly value: string
  readonly field: RefObject<HTMLTextAreaElement | null>
  readonly copying: Copying
  readonly copied: () => void
  /** The button. */
  readonly children: ReactNode
}

function Value({ value, field, copying, copied, children }: ValueProps): ReactNode {
  return (
    <div className="field">
      <label htmlFor="api-key">API key</label>
      <textarea
        className={`input ${styles.secret}`}
        id="api-key"
        ref={field}
        rows={2}
        readOnly
        spellCheck={false}
        autoComplete="off"
        aria-describedby="value-help"
        value={value}
        onCopy={({ currentTarget: { selectionStart, selectionEnd } }) => {
          if (selectionEnd - selectionStart === value.length) copied()
        }}
      />
      <div className={styles.foot}>
        <ValueHelp copying={copying} />
        {children}
      </div>
      <span className="visually-hidden" role="status">
        {copying === 'copied' ? 'Copied' : ''}
      </span>
    </div>
  )
}

function ValueHelp({ copying }: { readonly copying: Copying }): ReactNode {
  if (copying !== 'selected')
    return (
      <p className="hint" id="value-help">
        Keep it in a secrets manager or the environment, never in a repository.
      </p>
    )
  return (
    <p className="error" id="value-help" role="status">
      This browser did not let us copy. The key is selected: press Ctrl C, or ⌘ C.
    </p>
  )
}

interface FooterProps {
  readonly isAsked: boolean
  readonly copying: Copying
  readonly copy: () => void
  readonly close: () => void
  readonly leave: () => void
}

function Footer({ isAsked, copying, copy, close, leave }: FooterProps): ReactNode {
  if (!isAsked)
    return (
      <Button look={copying === 'copied' ? 'primary' : 'default'} onClick={leave}>
        Done
      </Button>
    )
  return (
    <>
      <p role="alert">
        <b>The key has not been copied.</b> After closing, it can only be replaced.
      </p>
      <Button look="danger" onClick={close}>
        Close anyway
      </Button>
      <Button look="primary" onClick={copy}>
        Go back and copy
      </Button>
    </>
  )
}

/** Counts the gateways that admit the key, or says why calls with it are refused. */
function LiveProof({ id }: { readonly id: string }): ReactNode {
  const { data } = useKey(id)
  if (data === undefined) return null
  const banner = bannerOf(data)
  return (
    <>
      <div role="status" hidden={banner === undefined}>
        {banner && (
          <div className={`banner ${banner.look}`}>
            <div>
              <b>{banner.title}</b>
              <p>{banner.text}</p>
            </div>
          </div>
        )}
      </div>
      {data.state === 'Activating' && data.programmed === undefined && <State look="wait" word="Activating. You can call in a moment." />}
      <KeyProof view={data} activeNote="You can call now." />
    </>
  )
}

/** The browser asks before the tab is closed or reloaded with a value that nobody has copied. */
function useWarningBeforeUnload(isNeeded: boolean): void {
  useEffect(() => {
    if (!isNeeded) return
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault()
    addEventListener('beforeunload', warn)
    return () => removeEventListener('beforeunload', warn)
  }, [isNeeded])
}
