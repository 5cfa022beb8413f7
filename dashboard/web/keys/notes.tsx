/** Sentences about a field, each with who sets the number. */
import { Fragment, type ReactNode } from 'react'
import { Source } from '../components/source.tsx'
import type { FieldNote } from './key-form.ts'

export function Notes({ notes }: { readonly notes: readonly FieldNote[] }): ReactNode {
  return notes.map(({ text, owner }, index) => (
    <Fragment key={text}>
      {index > 0 && <br />}
      {text} {owner !== undefined && <Source owner={owner} />}
    </Fragment>
  ))
}
