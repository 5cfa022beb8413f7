/** The condition Programmed, for every kind with records. Pure. */
import type { Confirmation } from './acknowledgements.ts'
import type { Projection } from './projection.ts'

/** Maximum number of pods that a message, a log line or a metric names. */
export const NAMED_PODS = 10

/** How far the record of an object has come. */
export interface RecordProgress {
  /** The revision of the record, and ms since then; undefined until the projection is known to have it. */
  readonly projected: ReturnType<Projection['present']>
  /** undefined until the record is projected. */
  readonly confirmation: Confirmation | undefined
  readonly storeAvailable: boolean
}

interface Outcome {
  readonly reason: 'Programmed' | 'Pending' | 'NoGateways' | 'StoreUnreachable' | 'Unconfirmed'
  readonly message: string
}

/** Whether every serving pod has the present record, or no pod serves. */
export function isSettled({ projected, confirmation }: RecordProgress): boolean {
  return projected !== undefined && (confirmation?.state === 'Acknowledged' || confirmation?.state === 'NoGateways')
}

/** @param noun of the object, for the message */
export function progressOf(progress: RecordProgress, noun: string): Outcome {
  const { confirmation, projected, storeAvailable } = progress
  if (!storeAvailable || confirmation?.state === 'Unknown')
    return { reason: 'StoreUnreachable', message: `Redis does not answer, so it is unknown which gateways have the ${noun}.` }
  if (projected === undefined || !confirmation) return { reason: 'Pending', message: `The record of the ${noun} is not in Redis yet.` }
  const { ready, total, missing } = confirmation
  if (total === 0) return { reason: 'NoGateways', message: `No gateway pod serves. Start one; the ${noun} is in Redis already.` }
  const count = `${ready} of ${total} gateway pods have acknowledged revision ${projected.revision}`
  if (isSettled(progress)) return { reason: 'Programmed', message: `${count}.` }
  const named = missing.slice(0, NAMED_PODS).join(', ')
  return { reason: 'Unconfirmed', message: `${count}; not yet: ${named}${missing.length > NAMED_PODS ? ', …' : ''}.` }
}
