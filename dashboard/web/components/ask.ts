/** How a change asks the person for a fresh proof of identity. `Confirmation` answers. */
import { createContext, useContext } from 'react'

/** @param purpose subject of a sentence: `Turning off two-factor` @returns whether the server has accepted a proof */
export type Ask = (purpose: string) => Promise<boolean>

export const AskContext = createContext<Ask>(() => Promise.resolve(false))

export function useAsk(): Ask {
  return useContext(AskContext)
}
