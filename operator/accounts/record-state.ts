/** The record of an Account or a Plan on its way to the gateways: what both kinds observe, and the steps that both take. */
import type { Level } from '../loop/level.ts'
import type { StepBase, Wait } from '../loop/reconciler.ts'
import { isSettled, progressOf, type RecordProgress } from '../projection/programmed.ts'
import type { Acknowledgements } from '../projection/acknowledgements.ts'
import type { Projection } from '../projection/projection.ts'
import type { AccountRecordKind, AccountRecords, RecordRefusal } from './account-records.ts'

/** Longest wait for the gateways before the status is written, ms. The wait lets one write report the result. */
const STATUS_WAIT_MS = 1_000

export interface RecordState extends RecordProgress {
  /** The wanted text; undefined if the gateways must not have a record. */
  readonly wanted: string | undefined
  /** Whether the Secrets hold or will hold exactly this text. */
  readonly isStored: boolean
  readonly isProjecting: boolean
  /** Why the newest text is not durable. */
  readonly refusal: RecordRefusal | undefined
}

export type RecordStep = StepBase & { readonly do: 'publish' | 'project' }

interface Context {
  readonly projection: Pick<Projection, 'present' | 'isPending' | 'available'>
  readonly acknowledgements: Pick<Acknowledgements, 'confirmation'>
  readonly accounts: { readonly records: Pick<AccountRecords, 'textOf' | 'refusal'> }
}

/** @param wanted the text that the gateways must have */
export function recordState(kind: AccountRecordKind, uid: string, wanted: string | undefined, context: Context): RecordState {
  const { projection, acknowledgements, accounts } = context
  const projected = projection.present(kind, uid, wanted)
  return {
    wanted,
    isStored: accounts.records.textOf(uid) === wanted,
    refusal: accounts.records.refusal(uid, wanted),
    projected,
    isProjecting: projection.isPending(kind, uid),
    confirmation: projected && acknowledgements.confirmation(projected.revision, uid),
    storeAvailable: projection.available,
  }
}

/** Sends a changed record to the Secrets and to the gateways at once: a suspension waits neither for etcd nor for Redis. */
export function publishStep({ isStored, refusal }: RecordState, level: Level): RecordStep | undefined {
  return isStored || (refusal?.retryInMs ?? 0) > 0 ? undefined : { do: 'publish', level }
}

/** Whether a text is written to the Secrets once more, after a refusal: the gateways have it. */
export function isRepeated({ refusal, projected }: RecordState): boolean {
  return refusal !== undefined && projected !== undefined
}

export function projectStep({ wanted, projected, isProjecting, storeAvailable }: RecordState): RecordStep | undefined {
  if (wanted === undefined || projected !== undefined || isProjecting || !storeAvailable) return undefined
  return { do: 'project', level: 'change' }
}

/** Delays the status, so that one write reports the result of the gateways. */
export function awaitGateways({ wanted, projected, isProjecting, storeAvailable, ...state }: RecordState): Wait | undefined {
  if (wanted === undefined || !storeAvailable) return undefined
  if (isProjecting) return { do: 'wait', forMs: STATUS_WAIT_MS }
  if (projected === undefined || isSettled({ projected, storeAvailable, ...state })) return undefined
  return projected.forMs < STATUS_WAIT_MS ? { do: 'wait', forMs: STATUS_WAIT_MS - projected.forMs } : undefined
}

/** Waits for acknowledgements, for Redis or for the next try of a refused write. */
export function awaitEvents(state: RecordState): Wait | undefined {
  if (state.refusal !== undefined && !state.isStored) return { do: 'wait', forMs: state.refusal.retryInMs }
  return state.wanted !== undefined && !isSettled(state) ? { do: 'wait' } : undefined
}

interface Outcome {
  readonly reason: ReturnType<typeof progressOf>['reason'] | 'NotAccepted' | 'RecordsFull'
  readonly message: string
}

/** The condition Programmed. @param noun of the object */
export function programmedOf(state: RecordState, noun: string): Outcome {
  if (state.wanted === undefined) return { reason: 'NotAccepted', message: `Gateways have no record of the ${noun}.` }
  if (state.refusal !== undefined)
    return {
      reason: 'RecordsFull',
      message: `The newest edit is not durable (${state.refusal.message}). The operator tries again by itself.`,
    }
  return progressOf(state, noun)
}

/** The counts for the status; undefined if they are unknown. */
export function programmedCount({ projected, confirmation }: RecordState) {
  if (projected === undefined || confirmation === undefined || confirmation.state === 'Unknown') return undefined
  return { revision: projected.revision, ready: confirmation.ready, total: confirmation.total }
}
