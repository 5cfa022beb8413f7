/** What the pages reach outside of React: the server, the drafts of forms, the way out of the app. Tests pass in their own. */
import { createContext, useContext } from 'react'
import type { API } from './api.ts'
import type { Drafts } from './drafts.ts'

export interface Surroundings {
  readonly api: API
  readonly drafts: Drafts
  /** The path of the page, with its query. */
  readonly here: () => string
  /** Leaves the app for another page. */
  readonly leave: (path: string) => void
}

export const SurroundingsContext = createContext<Surroundings | undefined>(undefined)

/** @throws Error outside of the context */
export function useSurroundings(): Surroundings {
  const surroundings = useContext(SurroundingsContext)
  if (surroundings === undefined) throw new Error('a component is outside of SurroundingsContext')
  return surroundings
}
