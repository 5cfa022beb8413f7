/** Whether changes are possible now. */
import { Unreachable } from './api.ts'
import { useMe } from './queries.ts'

/** Id of the page-wide banner: buttons that are disabled for its reason name it as their description. */
export const STANDING_ID = 'standing'

export type Standing = 'usual' | 'offline' | 'unreachable' | 'read-only'

export function useStanding(): Standing {
  const { data, error } = useMe()
  if (error instanceof Unreachable) return navigator.onLine ? 'unreachable' : 'offline'
  return data?.readOnlySince === undefined ? 'usual' : 'read-only'
}
