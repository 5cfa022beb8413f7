/** Why the plan could not be loaded: the forms of a key need the plan, and open by themselves once it is there. */
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { PlanView } from '../../server/page-data/keys.ts'
import { LoadProblem } from '../components/problem.tsx'

export function PlanProblem({ plan: { data, error, isFetching, refetch } }: { readonly plan: UseQueryResult<PlanView> }): ReactNode {
  if (data !== undefined || error === null) return null
  return <LoadProblem what="The plan" error={error} isBusy={isFetching} again={() => void refetch()} />
}
