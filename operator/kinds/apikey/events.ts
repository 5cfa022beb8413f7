/** Derives Events from a change of status. Pure. */
import type { ApiKeyStatus } from '#api/apikey.ts'
import { findCondition } from '#api/condition-list.ts'
import { type EventReason, isEventReason } from '#api/event-table.ts'
import type { Observed } from './observed.ts'
import { newlyReached, untilWhen } from '../usage-status.ts'
import { secretName } from './user-secret.ts'

export interface StatusEvent {
  readonly reason: EventReason
  readonly note: string
}

/** Condition types whose new reason becomes an Event with the same name. */
const REPORTED = ['Ready', 'Accepted', 'SecretIssued', 'Programmed', 'ValueNamedElsewhere'] as const
const OWN_RULES: ReadonlySet<string> = new Set(['Revoked', 'Issued', 'Unconfirmed', 'BudgetExhausted', 'BalanceExhausted'])

export function eventsOf(observed: Observed, next: ApiKeyStatus): readonly StatusEvent[] {
  const before = reasons(observed.apiKey.status)
  const after = reasons(next)
  const note = (type: string): string => findCondition(next.conditions, type)?.message ?? ''
  const entered = REPORTED.flatMap((type): StatusEvent[] => {
    const reason = after.get(type)
    const isNew = reason !== undefined && before.get(type) !== reason && isEventReason(reason) && !OWN_RULES.has(reason)
    return isNew ? [{ reason, note: note(type) }] : []
  })
  const resumed = before.get('Ready') === 'Suspended' && observed.apiKey.spec.state === 'Active'
  return [
    ...issueEvents(observed, next, before, after),
    ...hashEvents(observed, next, after),
    ...once(entered),
    ...budgetEvents(observed, next),
    ...lossEvents(observed.apiKey.status, next),
    ...(resumed ? [{ reason: 'Resumed', note: 'The key works again.' } as const] : []),
    ...revocationEvents(before, after, note('Programmed')),
  ]
}

/** Removes repeated reasons: two conditions may get one reason together, such as KeyLost. */
function once(events: readonly StatusEvent[]): readonly StatusEvent[] {
  return events.filter(({ reason }, index) => events.findIndex((other) => other.reason === reason) === index)
}

type Reasons = ReadonlyMap<string, string>
/** No pod serves, or every serving pod has acknowledged the record. */
const PROVEN: ReadonlySet<string | undefined> = new Set(['Programmed', 'NoGateways'])

/** A proven revocation is an Event of its own, even long after the revocation was written. */
function revocationEvents(before: Reasons, after: Reasons, note: string): StatusEvent[] {
  if (after.get('Ready') !== 'Revoked') return []
  const isNew = before.get('Ready') !== 'Revoked'
  const isProven = PROVEN.has(after.get('Programmed'))
  if (isProven && (isNew || !PROVEN.has(before.get('Programmed')))) return [{ reason: 'Revoked', note }]
  return isNew ? [{ reason: 'RevocationUnconfirmed', note }] : []
}

/** Reasons of SecretIssued for a Secret that was already issued. */
const ISSUED_BEFORE: ReadonlySet<string | undefined> = new Set([
  'Issued',
  'SecretMissing',
  'SecretModified',
  'SecretUnreadable',
  'EntryUnreadable',
])

function issueEvents(observed: Observed, next: ApiKeyStatus, before: Reasons, after: Reasons): StatusEvent[] {
  if (after.get('SecretIssued') !== 'Issued' || ISSUED_BEFORE.has(before.get('SecretIssued'))) return []
  if (observed.apiKey.status?.keyID === next.keyID) return []
  const issued: StatusEvent = { reason: 'Issued', note: `The key ${next.prefix ?? ''} is in Secret ${secretName(observed.apiKey)}.` }
  return [issued, ...unconfirmedEvents(next, after)]
}

/** Events of a key with source.type Hash: the first value of the manifest, or another value. */
function hashEvents({ apiKey: { status } }: Observed, next: ApiKeyStatus, after: Reasons): StatusEvent[] {
  if (after.get('SecretIssued') !== 'NotApplicable' || next.keyID === undefined || status?.keyID === next.keyID) return []
  const id = `The value has the id ${next.keyID}.`
  const taken: StatusEvent =
    status?.keyID === undefined
      ? { reason: 'Imported', note: `Gateways accept the value whose SHA-256 is in spec.source.hash. ${id}` }
      : { reason: 'Rotated', note: `Gateways accept the value of the new SHA-256. ${id}` }
  return [taken, ...unconfirmedEvents(next, after)]
}

function unconfirmedEvents(next: ApiKeyStatus, after: Reasons): StatusEvent[] {
  if (after.get('Programmed') !== 'Unconfirmed') return []
  return [{ reason: 'Unconfirmed', note: findCondition(next.conditions, 'Programmed')?.message ?? '' }]
}

/** One Event per window at 80 %, and one at 100 %. */
function budgetEvents({ apiKey, entry }: Observed, next: ApiKeyStatus): StatusEvent[] {
  const budgets = new Map((entry?.budgets ?? []).map((budget) => [budget.name, budget]))
  return newlyReached(apiKey.status, next).flatMap(({ budget: name, percent }): StatusEvent[] => {
    const budget = budgets.get(name)
    if (budget === undefined) return []
    if (percent < 100) return [{ reason: 'BudgetNearlyUsed', note: `${percent} % of budget ${name} are used.` }]
    const effect = budget.onExceeded === 'Audit' ? 'It only audits, so the key works on.' : `Requests answer 402 ${untilWhen(budget)}.`
    return [{ reason: 'BudgetExhausted', note: `Budget ${name} is used up. ${effect}` }]
  })
}

/** One Event per loss, and per set of budgets that are held back. A second loss while the status shows the first has another period in its message. */
function lossEvents(before: ApiKeyStatus | undefined, next: ApiKeyStatus): StatusEvent[] {
  const [former, present] = [before, next].map((status) => findCondition(status?.conditions, 'LimitsEnforceable'))
  const reason = (['SpendHeldBack', 'SpendUncertain'] as const).find((one) => one === present?.reason)
  if (present === undefined || reason === undefined || former?.message === present.message) return []
  return [{ reason, note: present.message }]
}

function reasons(status: ApiKeyStatus | undefined): Map<string, string> {
  return new Map((status?.conditions ?? []).map((condition) => [condition.type, condition.reason]))
}
