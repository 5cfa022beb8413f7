/** The state of a key in words, and the proof of its newest change. Pure. */
import type { KeyState, KeyView } from '../../server/page-data/keys.ts'
import type { ProofProps } from '../components/proof.tsx'
import type { StateLook } from '../components/state.tsx'
import { dayAndTime, shortDay } from '../times.ts'
import { usedUpBudget } from './key-banner.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** From this time on before the end of a key, its state says so. */
const SOON_MS = 7 * DAY_MS

export interface StateWords {
  readonly look: StateLook
  readonly word: string
  /** A second line below the word. */
  readonly note?: string
}

const STATES: Readonly<Record<KeyState, StateWords>> = {
  Active: { look: 'ok', word: 'Active' },
  Activating: { look: 'wait', word: 'Activating' },
  NotAccepted: { look: 'danger', word: 'Not accepted' },
  Suspending: { look: 'wait', word: 'Suspending' },
  Suspended: { look: 'off', word: 'Suspended' },
  Expired: { look: 'off', word: 'Expired' },
  BudgetUsedUp: { look: 'danger', word: 'Budget used up' },
  BalanceUsedUp: { look: 'danger', word: 'Balance used up' },
  AccountSuspended: { look: 'danger', word: 'Account suspended' },
  Revoking: { look: 'wait', word: 'Revoking' },
  Revoked: { look: 'off', word: 'Revoked' },
}

export function stateWords(key: KeyView, now: Date): StateWords {
  const words = STATES[key.state]
  if (key.state === 'Expired' && key.expiresAt !== undefined) return { ...words, word: `Expired ${shortDay(new Date(key.expiresAt))}` }
  if (key.state === 'BudgetUsedUp') return { ...words, ...resetNote(key) }
  if (key.state !== 'Active') return words
  if (expiresSoon(key, now)) return { look: 'warn', word: `Expires in ${timeLeft(key.expiresAt, now)}` }
  return { ...words, ...(key.formerValueUntil !== undefined && { note: `Old value until ${shortDay(new Date(key.formerValueUntil))}` }) }
}

function resetNote({ budgets }: KeyView): Pick<StateWords, 'note'> {
  const resetsAt = usedUpBudget(budgets)?.resetsAt
  return resetsAt === undefined ? {} : { note: `Resets ${shortDay(new Date(resetsAt))}` }
}

export function expiresSoon({ expiresAt }: KeyView, now: Date): boolean {
  const left = expiresAt === undefined ? Infinity : Date.parse(expiresAt) - now.getTime()
  return left > 0 && left <= SOON_MS
}

/** `5 days`, `3 h` */
function timeLeft(expiresAt: string | undefined, now: Date): string {
  const left = Date.parse(expiresAt ?? '') - now.getTime()
  if (left <= DAY_MS) return `${Math.ceil(left / HOUR_MS)} h`
  const days = Math.ceil(left / DAY_MS)
  return `${days} days`
}

/** Whether gateways are still taking over a change, so that the page looks again every second. */
export function isMoving({ state, programmed }: KeyView): boolean {
  if (state === 'Activating' || state === 'Suspending' || state === 'Revoking') return true
  return PROVEN.has(state) && programmed !== undefined && programmed.ready < programmed.total
}

/** States whose proof the page shows. */
const PROVEN: ReadonlySet<KeyState> = new Set<KeyState>(['Active', 'Activating', 'Suspending', 'Suspended', 'Revoking', 'Revoked'])

const PROOFS: Readonly<Partial<Record<KeyState, Pick<ProofProps, 'isOpen'> & { readonly verb: string; readonly note?: string }>>> = {
  Activating: { verb: 'Active', isOpen: { ready: true, others: false }, note: 'You can call in a moment.' },
  Active: { verb: 'Active', isOpen: { ready: true, others: true } },
  Suspending: { verb: 'Suspended', isOpen: { ready: false, others: true }, note: 'The other gateways still answer calls.' },
  Suspended: { verb: 'Suspended', isOpen: { ready: false, others: false }, note: 'Calls with it answer 401.' },
  Revoking: {
    verb: 'Revoked',
    isOpen: { ready: false, others: true },
    note: 'The page waits for the other gateways. A gateway that does not answer for 10 s gets no calls.',
  },
  Revoked: { verb: 'Revoked', isOpen: { ready: false, others: false }, note: 'Calls with it answer 401.' },
}

/** "Revoked on 2/3 gateways". @returns undefined where nothing is proven: before the operator has seen the key, and for keys that do not work anyway */
export function proofOf({ state, programmed }: KeyView): ProofProps | undefined {
  const proof = PROOFS[state]
  if (proof === undefined || programmed === undefined || programmed.total === 0) return undefined
  const { ready, total } = programmed
  const { verb, isOpen, note } = proof
  const on = `on ${ready}/${total} gateways`
  const isEdit = state === 'Active' && ready < total
  return { ready, total, isOpen, words: isEdit ? `The newest change holds ${on}` : `${verb} ${on}`, ...(note !== undefined && { note }) }
}

/** When the former value ends: `25 Nov 2026, 12:03 UTC`. */
export function formerValueEnd({ formerValueUntil }: KeyView, now: Date): string | undefined {
  if (formerValueUntil === undefined || Date.parse(formerValueUntil) <= now.getTime()) return undefined
  return dayAndTime(new Date(formerValueUntil))
}
