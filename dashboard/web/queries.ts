/** What the pages read from the server, by TanStack Query: data stays on screen while it is refreshed, and on every return to the tab. */
import { QueryClient, useQuery, type UseQueryResult } from '@tanstack/react-query'
import type { Keys, KeyView, PlanView } from '../server/page-data/keys.ts'
import type { LinkedProviders, Me, Sessions } from '../server/page-data/people.ts'
import { Refused, Unreachable } from './api.ts'
import { isMoving } from './keys/key-state.ts'
import { useSurroundings } from './surroundings.ts'

/** Time after which a page reads again what may change by itself: an Account that is not ready, a server that does not answer. */
const SOON_MS = 5000
/** The same while gateways take over a change of a key: a person waits for it. */
const AT_ONCE_MS = 1000
/** The same for what changes with every call: budgets, the last use. */
const LATER_MS = 15_000

export function createQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        networkMode: 'always', // a machine without a network reaches the dashboard on localhost
        staleTime: 5000,
        retry: (failures, error) => failures < 2 && navigator.onLine && isPassing(error),
        retryDelay: (failures) => 500 * 2 ** failures,
      },
    },
  })
}

/** Whether the same request may succeed a moment later. */
export function isPassing(error: Error): boolean {
  return error instanceof Unreachable || (error instanceof Refused && (error.code === 'unavailable' || error.code === 'internal'))
}

export function useMe(): UseQueryResult<Me> {
  const { api } = useSurroundings()
  return useQuery({
    queryKey: ['me'],
    queryFn: () => api.me(),
    refetchInterval: ({ state }) =>
      state.error !== null || hasNoNetwork() || (state.data !== undefined && isUnsettled(state.data)) ? SOON_MS : false,
  })
}

/** The first answer after a network was lost may still come over it. */
function hasNoNetwork(): boolean {
  return navigator.onLine === false
}

/** Whether the page waits for the cluster. */
function isUnsettled({ account, readOnlySince }: Me): boolean {
  return readOnlySince !== undefined || account.state === 'Unknown' || (account.state === 'Active' && !account.isReady)
}

export function useProviders(): UseQueryResult<LinkedProviders> {
  const { api } = useSurroundings()
  return useQuery({ queryKey: ['providers'], queryFn: () => api.providers() })
}

export function useSessions(): UseQueryResult<Sessions> {
  const { api } = useSurroundings()
  return useQuery({ queryKey: ['sessions'], queryFn: () => api.sessions() })
}

/** @param isWaited whether a person waits for a key or for its first use */
export function useKeys(isWaited = false): UseQueryResult<Keys> {
  const { api } = useSurroundings()
  return useQuery({
    queryKey: ['keys'],
    queryFn: () => api.keys(),
    refetchInterval: ({ state: { data } }) => (data?.keys.some(isMoving) ? AT_ONCE_MS : isWaited ? SOON_MS : LATER_MS),
  })
}

export function useKey(id: string): UseQueryResult<KeyView> {
  const { api } = useSurroundings()
  return useQuery({
    queryKey: ['key', id],
    queryFn: () => api.key(id),
    refetchInterval: ({ state: { data } }) => (data !== undefined && isMoving(data) ? AT_ONCE_MS : LATER_MS),
  })
}

export function usePlan(): UseQueryResult<PlanView> {
  const { api } = useSurroundings()
  return useQuery({ queryKey: ['plan'], queryFn: () => api.plan() })
}
