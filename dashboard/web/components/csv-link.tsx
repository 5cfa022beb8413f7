/** `Download CSV`: a link, so that its address can be copied for a script. A click reads the file first, so that a refusal is said on the page. */
import type { MouseEvent, ReactNode } from 'react'
import { useSurroundings } from '../surroundings.ts'
import { problemText } from './problem.tsx'
import { saveAs } from './save-as.ts'
import { useAction } from './use-action.ts'

export interface CsvLinkProps {
  /** Path below the origin. */
  readonly path: string
  /** Name of the file. */
  readonly name: string
  /** What the file has, for people who hear the link alone: `the ledger`. */
  readonly content: string
  readonly isButton?: boolean
}

export function CsvLink({ path, name, content, isButton = false }: CsvLinkProps): ReactNode {
  const { api } = useSurroundings()
  const { isBusy, error, perform } = useAction('Downloading', async () => saveAs(name, await api.file(path)))
  const onClick = (event: MouseEvent): void => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return // another tab, as the person asks
    event.preventDefault()
    perform()
  }
  return (
    <>
      <a className={isButton ? 'button' : undefined} href={path} download={name} aria-busy={isBusy} onClick={onClick}>
        Download CSV<span className="visually-hidden"> of {content}</span>
      </a>
      {error && (
        <span className="error" role="alert">
          {problemText(error)}
        </span>
      )}
    </>
  )
}
