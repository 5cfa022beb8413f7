/** A state: a dot with a shape of its own, and the word that says the same. */
import type { ReactNode } from 'react'

export type StateLook = 'ok' | 'wait' | 'warn' | 'danger' | 'off'

export function State({ look, word }: { readonly look: StateLook; readonly word: string }): ReactNode {
  return <span className={`state ${look}`}>{word}</span>
}
