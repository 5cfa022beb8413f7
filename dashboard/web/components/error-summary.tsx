/** The errors of a form, as a list that leads to each field. Takes the focus, so that a screen reader begins there. */
import type { MouseEvent, ReactNode } from 'react'

export interface ErrorSummaryProps {
  /** Names of the fields with an error. Fewer than two need no list. */
  readonly names: readonly string[]
  /** `Name is missing`, by name of the field. */
  readonly titles: Readonly<Record<string, string>>
}

const NUMBERS = ['', '', 'Two', 'Three', 'Four', 'Five', 'Six', 'Seven', 'Eight']

export function ErrorSummary({ names, titles }: ErrorSummaryProps): ReactNode {
  if (names.length < 2) return null
  return (
    <div className="summary" role="alert" tabIndex={-1}>
      <b>{NUMBERS[names.length] ?? names.length} things to change</b>
      {names.map((name) => (
        <button className="link" type="button" key={name} onClick={(event) => focusField(event, name)}>
          {titles[name] ?? name}
        </button>
      ))}
    </div>
  )
}

function focusField({ currentTarget }: MouseEvent<HTMLElement>, name: string): void {
  currentTarget.closest('form')?.querySelector<HTMLElement>(`[name="${name}"]`)?.focus()
}
