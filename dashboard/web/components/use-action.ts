/** A change that a person asks for: busy while it runs, once at a time, with its outcome beside the button. */
import { useCallback, useRef, useState } from 'react'
import { Cancelled, confirmed } from '../confirmed.ts'
import { useAsk } from './ask.ts'

export interface Action<A extends readonly unknown[]> {
  readonly isBusy: boolean
  readonly isDone: boolean
  readonly error: Error | undefined
  /** Does nothing while the action is busy. */
  readonly perform: (...args: A) => void
  /** Forgets the outcome. */
  readonly reset: () => void
}

type Outcome = 'none' | 'busy' | 'done' | Error

/**
 * @param purpose names the change in the dialog that asks for a fresh proof: `Turning off two-factor`
 * @param run the change, with all that follows it
 */
export function useAction<A extends readonly unknown[]>(purpose: string, run: (...args: A) => Promise<unknown>): Action<A> {
  const [outcome, setOutcome] = useState<Outcome>('none')
  const isBusy = useRef(false)
  const ask = useAsk()
  const perform = (...args: A): void => {
    if (isBusy.current) return
    isBusy.current = true
    setOutcome('busy')
    const finish = (result: Outcome): void => {
      isBusy.current = false
      setOutcome(result)
    }
    confirmed(
      () => run(...args),
      () => ask(purpose),
    ).then(
      () => finish('done'),
      (error: unknown) => finish(error instanceof Cancelled ? 'none' : asError(error)),
    )
  }
  const reset = useCallback(() => {
    if (!isBusy.current) setOutcome('none')
  }, [])
  const error = outcome instanceof Error ? outcome : undefined
  return { isBusy: outcome === 'busy', isDone: outcome === 'done', error, perform, reset }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
