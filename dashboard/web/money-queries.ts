/** What the pages of usage and billing read from the server. */
import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query'
import type { Billing, TopUpState } from '../server/page-data/billing.ts'
import type { Usage } from '../server/page-data/usage.ts'
import type { DayRange } from './days.ts'
import { useSurroundings } from './surroundings.ts'

/** Time after which a page reads counts and balances again: they change with every call. */
const LATER_MS = 15_000
/** The same while a person waits: for the first call, for a payment. */
const SOON_MS = 5000

/** The rows of all keys and models: the page filters them, so that another filter needs no request. The former range stays until the new one is there. */
export function useUsage({ from, to }: DayRange): UseQueryResult<Usage> {
  const { api } = useSurroundings()
  return useQuery({
    queryKey: ['usage', from, to],
    queryFn: () => api.usage(from, to),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state: { data } }) => (data?.rows.length === 0 ? SOON_MS : LATER_MS),
  })
}

/** @param isWaited whether a change is expected at any moment */
export function useBilling(isWaited: (billing: Billing) => boolean = () => false): UseQueryResult<Billing> {
  const { api } = useSurroundings()
  return useQuery({
    queryKey: ['billing'],
    queryFn: () => api.billing(),
    refetchInterval: ({ state: { data } }) => (data !== undefined && isWaited(data) ? SOON_MS : LATER_MS),
  })
}

/** Asks how the payment stands from which a person comes back, until that is decided. The question settles the payment. @param session '' for none */
export function useTopUpState(session: string): UseQueryResult<TopUpState> {
  const { api } = useSurroundings()
  return useQuery({
    queryKey: ['top-up', session],
    queryFn: () => api.checkTopUp(session),
    enabled: session !== '',
    refetchInterval: ({ state: { data } }) => (data?.state === 'open' || data?.state === 'processing' ? SOON_MS : false),
  })
}
