/** The status of an ApiKey, and the Events that follow from its change. Pure. */
import type { ApiKey, ApiKeyStatus } from '../api/apikey.ts'
import { conditionList, findCondition } from '../api/condition-list.ts'
import { API_KEY_CONDITIONS, type ApiKeyJudgement, type EventReason } from '../api/conditions.ts'
import { isAcknowledged, isKeyLost, wasProgrammed } from './decide.ts'
import type { Observed, ObservedConfirmation } from './observed.ts'
import { currentVerifier } from './policy.ts'
import { secretName } from './user-secret.ts'

type JudgementFor<Type extends ApiKeyJudgement['type']> = Extract<ApiKeyJudgement, { type: Type }>
/** Longest list of models in a column. */
const MODELS_COLUMN = 60
/** Most pods that a message names. */
const NAMED_PODS = 10

/** The whole status: server-side apply removes what is not sent. */
export function describe(observed: Observed): ApiKeyStatus {
  const { apiKey } = observed
  const generation = apiKey.metadata.generation ?? 0
  const programmed = programmedOf(observed)
  return {
    observedGeneration: generation,
    ...materialOf(observed),
    ...(programmed ? { programmed } : {}),
    summary: { programmed: programmed ? `${programmed.ready}/${programmed.total}` : '0/0', models: modelsColumn(apiKey) },
    conditions: conditionList(API_KEY_CONDITIONS, judge(observed), {
      previous: apiKey.status?.conditions,
      generation,
      nowMs: observed.now,
    }),
  }
}

/** What the status says about the key material. The id of a lost key stays: it is what tells that there was one. */
function materialOf({ apiKey, line, secret }: Observed): Partial<ApiKeyStatus> {
  const verifier = currentVerifier(line)
  const former = apiKey.status?.keyID
  if (!line) return former === undefined ? {} : { keyID: former }
  const issued = line.ver.filter(({ state }) => state === 'Issued')
  return {
    ...(verifier ? { keyID: verifier.id, prefix: verifier.prefix } : {}),
    ...(secret.state === 'Ours' && verifier?.state === 'Issued' ? { secretRef: { name: secretName(apiKey) } } : {}),
    verifiers: issued.map(({ id, created }) => ({ id, createTime: seconds(created) })),
    ...(line.exp === null ? {} : { expirationTime: seconds(line.exp) }),
  }
}

/** One Event that a change of status is worth. */
export interface StatusEvent {
  readonly reason: EventReason
  readonly note: string
}

/** A condition that begins to have a reason, and the Event for it, whose note is the condition's message. */
const ENTERED: ReadonlyArray<readonly [type: ApiKeyJudgement['type'], reason: string, event: EventReason]> = [
  ['SecretIssued', 'SecretConflict', 'SecretConflict'],
  ['SecretIssued', 'SecretMissing', 'SecretMissing'],
  ['SecretIssued', 'SecretModified', 'SecretModified'],
  ['Ready', 'Suspended', 'Suspended'],
  ['Ready', 'Expired', 'Expired'],
  ['Ready', 'KeyLost', 'KeyLost'],
]

/** Events for what changed between two statuses. */
export function eventsOf(observed: Observed, next: ApiKeyStatus): readonly StatusEvent[] {
  const before = reasons(observed.apiKey.status)
  const after = reasons(next)
  const entered = (type: string, reason: string): boolean => after.get(type) === reason && before.get(type) !== reason
  const note = (type: string): string => findCondition(next.conditions, type)?.message ?? ''
  const events: StatusEvent[] = issueEvents(observed, next, before, after)
  for (const [type, reason, event] of ENTERED) if (entered(type, reason)) events.push({ reason: event, note: note(type) })
  if (before.get('Ready') === 'Suspended' && observed.apiKey.spec.state === 'Active')
    events.push({ reason: 'Resumed', note: 'The key works again.' })
  return [...events, ...revocationEvents(before, after, note('Programmed'))]
}

type Reasons = ReadonlyMap<string, string>
/** Nobody serves, or all who do have acknowledged it. */
const PROVEN: ReadonlySet<string | undefined> = new Set(['Programmed', 'NoGateways'])

/** Told as proven only once it is: when the last pod acknowledges it after all, that is an Event of its own. */
function revocationEvents(before: Reasons, after: Reasons, note: string): StatusEvent[] {
  if (after.get('Ready') !== 'Revoked') return []
  const isNew = before.get('Ready') !== 'Revoked'
  const isProven = PROVEN.has(after.get('Programmed'))
  if (isProven && (isNew || !PROVEN.has(before.get('Programmed')))) return [{ reason: 'Revoked', note }]
  return isNew ? [{ reason: 'RevocationUnconfirmed', note }] : []
}

/** From these a Secret does not become issued: it was before. */
const ISSUED_BEFORE: ReadonlySet<string | undefined> = new Set(['Issued', 'SecretMissing', 'SecretModified'])

function issueEvents(observed: Observed, next: ApiKeyStatus, before: Reasons, after: Reasons): StatusEvent[] {
  if (after.get('SecretIssued') !== 'Issued' || ISSUED_BEFORE.has(before.get('SecretIssued'))) return []
  const issued: StatusEvent = { reason: 'Issued', note: `The key ${next.prefix ?? ''} stands in Secret ${secretName(observed.apiKey)}.` }
  if (after.get('Programmed') !== 'Unconfirmed') return [issued]
  return [issued, { reason: 'Unconfirmed', note: findCondition(next.conditions, 'Programmed')?.message ?? '' }]
}

function reasons(status: ApiKeyStatus | undefined): Map<string, string> {
  return new Map((status?.conditions ?? []).map((condition) => [condition.type, condition.reason]))
}

function judge(observed: Observed): ApiKeyJudgement[] {
  const issued = judgeSecret(observed)
  const programmed = judgeProgrammed(observed)
  const ready = judgeReady(observed, issued, programmed)
  const list: ApiKeyJudgement[] = [
    ready,
    { type: 'Accepted', reason: 'Accepted', message: 'The manifest is acted on.' },
    issued,
    programmed,
  ]
  if (ready.reason === 'Suspended') list.push({ type: 'Suspended', reason: 'Suspended', message: ready.message })
  if (isExpired(observed)) list.push({ type: 'Expired', reason: 'Expired', message: expiredMessage(observed) })
  if (ready.reason === 'KeyLost') list.push({ type: 'Stalled', reason: 'KeyLost', message: ready.message })
  else if (issued.reason === 'SecretConflict') list.push({ type: 'Stalled', reason: 'SecretConflict', message: issued.message })
  return list
}

function judgeReady(
  observed: Observed,
  issued: JudgementFor<'SecretIssued'>,
  programmed: JudgementFor<'Programmed'>,
): JudgementFor<'Ready'> {
  const type = 'Ready'
  const refused = judgeRefusal(observed)
  if (refused) return refused
  const verifier = currentVerifier(observed.line)
  if (verifier?.state !== 'Issued') return { type, reason: 'SecretNotIssued', message: issued.message }
  if (programmed.reason !== 'Programmed' && !wasReady(observed, verifier.id))
    return { type, reason: 'NotProgrammed', message: programmed.message }
  return { type, reason: 'Ready', message: 'The key works on every gateway.' }
}

/** Why a key that may well be issued is not to work. */
function judgeRefusal(observed: Observed): JudgementFor<'Ready'> | undefined {
  const type = 'Ready'
  const { state } = observed.apiKey.spec
  if (state === 'Revoked') return { type, reason: 'Revoked', message: 'The key is revoked for ever. Make a new ApiKey for a new key.' }
  if (state === 'Suspended')
    return { type, reason: 'Suspended', message: 'spec.state is Suspended. Set it to Active to let the key work again.' }
  if (isExpired(observed)) return { type, reason: 'Expired', message: expiredMessage(observed) }
  if (!isKeyLost(observed)) return undefined
  const name = secretName(observed.apiKey)
  return {
    type,
    reason: 'KeyLost',
    message: `No copy of the hash of the key is left. Delete the ApiKey and Secret ${name} and apply it again.`,
  }
}

/** Ready waits for the first programming of the key alone: a later edit of its policy does not make it flap. */
function wasReady({ apiKey }: Observed, verifierId: string): boolean {
  return apiKey.status?.keyID === verifierId && findCondition(apiKey.status.conditions, 'Ready')?.reason === 'Ready'
}

function judgeSecret(observed: Observed): JudgementFor<'SecretIssued'> {
  const type = 'SecretIssued'
  const { secret, apiKey } = observed
  const name = secretName(apiKey)
  const verifier = currentVerifier(observed.line)
  if (verifier?.state === 'Issued' && secret.state !== 'Foreign') return judgeIssued(observed, verifier.h)
  if (secret.state !== 'Absent') {
    const cure = 'Remove it, or make an ApiKey with another secret.name.'
    return {
      type,
      reason: 'SecretConflict',
      message: `Secret ${name} exists and was not made for this ApiKey; it is left as it is. ${cure}`,
    }
  }
  return { type, reason: 'WaitingForStore', message: whyNotIssued(observed) }
}

function whyNotIssued({ apiKey, storeAvailable }: Observed): string {
  if (apiKey.spec.state === 'Revoked') return 'spec.state is Revoked, so no key is made.'
  return storeAvailable ? 'The key is being made.' : 'Redis does not answer, so no key is made; it goes on by itself.'
}

function judgeIssued({ secret, apiKey }: Observed, hash: string): JudgementFor<'SecretIssued'> {
  const type = 'SecretIssued'
  const name = secretName(apiKey)
  if (secret.state === 'Ours' && secret.hash !== hash) {
    const message = `The value in Secret ${name} is not the issued key; it is left as it is. For a new value make a new ApiKey.`
    return { type, reason: 'SecretModified', message }
  }
  if (secret.state === 'Absent' && apiKey.spec.state === 'Revoked') {
    return { type, reason: 'Issued', message: `The key was issued; Secret ${name} went with its revocation.` }
  }
  if (secret.state === 'Absent') {
    const message = `Secret ${name} was deleted. The key works, but its value is known to its users alone; for a new value make a new ApiKey.`
    return { type, reason: 'SecretMissing', message }
  }
  return { type, reason: 'Issued', message: `Secret ${name} holds the key.` }
}

function judgeProgrammed(observed: Observed): JudgementFor<'Programmed'> {
  const type = 'Programmed'
  const { confirmation, projectedRev } = observed
  if (wasProgrammed(observed) && projectedRev !== undefined) return stillProgrammed(observed)
  if (!observed.storeAvailable || confirmation?.known === false) {
    return { type, reason: 'StoreUnreachable', message: 'Redis does not answer, so it is not known which gateways have the key.' }
  }
  if (projectedRev === undefined || !confirmation) return { type, reason: 'Pending', message: 'The gateways have not been told yet.' }
  return judgeConfirmation(confirmation, isAcknowledged(observed))
}

function stillProgrammed({ apiKey }: Observed): JudgementFor<'Programmed'> {
  const message = findCondition(apiKey.status?.conditions, 'Programmed')?.message ?? ''
  return { type: 'Programmed', reason: 'Programmed', message }
}

function judgeConfirmation({ ready, total, missing, rev }: ObservedConfirmation, acknowledged: boolean): JudgementFor<'Programmed'> {
  const type = 'Programmed'
  if (total === 0) return { type, reason: 'NoGateways', message: 'No gateway pod serves. Start one; the key is already known to Redis.' }
  const count = `${ready} of ${total} gateway pods have acknowledged revision ${rev}`
  if (acknowledged) return { type, reason: 'Programmed', message: `${count}.` }
  const named = missing.slice(0, NAMED_PODS).join(', ')
  return { type, reason: 'Unconfirmed', message: `${count}; not yet: ${named}${missing.length > NAMED_PODS ? ', …' : ''}.` }
}

function programmedOf(observed: Observed): ApiKeyStatus['programmed'] {
  const { confirmation, projectedRev, apiKey } = observed
  if (wasProgrammed(observed)) return apiKey.status?.programmed
  if (projectedRev === undefined || !confirmation?.known) return apiKey.status?.programmed
  return { revision: projectedRev, ready: confirmation.ready, total: confirmation.total }
}

function isExpired({ line, now }: Observed): boolean {
  return line !== undefined && line.exp !== null && line.exp <= now
}

function expiredMessage({ line }: Observed): string {
  return `The time of the key was over at ${seconds(line?.exp ?? 0)}. Set a later one to let it work again.`
}

function modelsColumn(apiKey: ApiKey): string {
  const text = apiKey.spec.models?.join(',') ?? '*'
  return text.length > MODELS_COLUMN ? `${text.slice(0, MODELS_COLUMN - 1)}…` : text
}

/** RFC 3339 in whole seconds, as Kubernetes writes times. */
function seconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
