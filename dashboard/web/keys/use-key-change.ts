/** A change of a key: the page shows the answer at once, and the list is read again. */
import { useQueryClient } from '@tanstack/react-query'
import { useCallback } from 'react'
import type { KeyView } from '../../server/page-data/keys.ts'
import { type Action, useAction } from '../components/use-action.ts'

/** @param purpose see useAction */
export function useKeyChange<A extends readonly unknown[]>(
  id: string,
  purpose: string,
  change: (...args: A) => Promise<KeyView>,
): Action<A> {
  const keep = useKeptKey(id)
  return useAction(purpose, async (...args: A) => keep(await change(...args)))
}

/** Puts a key as the server has just answered it before the page. */
export function useKeptKey(id: string): (view: KeyView) => void {
  const queries = useQueryClient()
  return useCallback(
    (view) => {
      void queries.cancelQueries({ queryKey: ['key', id] }) // an answer from before the change would replace the newer one
      queries.setQueryData(['key', id], view)
      void queries.invalidateQueries({ queryKey: ['key', id] })
      void queries.invalidateQueries({ queryKey: ['keys'] })
    },
    [queries, id],
  )
}
