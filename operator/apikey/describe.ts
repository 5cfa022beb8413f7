/** The status of an ApiKey, and the Events that follow from its change. Pure. */
import type { ApiKey, ApiKeyStatus } from '../api/apikey.ts'
import { conditionList, findCondition } from '../api/condition-list.ts'
import { API_KEY_CONDITIONS, type ApiKeyJudgement, type EventReason } from '../api/conditions.ts'
import { isAcknowledged, isKeyLost, wasProgrammed } from './decide.ts'
import type { Observed } from './observed.ts'
import { currentVerifier } from './policy.ts'
import { secretName } from './user-secret.ts'

type JudgementFor<Type extends ApiKeyJudgement['type']> = Extract<ApiKeyJudgement, { type: Type }>
/** Longest list of models in a column. */
const MODELS_COLUMN = 60
/** Most pods that a message names. */
const NAMED_PODS = 10

/** The whole status: server-side apply removes what is not sent. */
export function describe(observed: Observed): ApiKeyStatus {
  const { apiKey, line, secret } = observed
  const verifier = currentVerifier(line)
  const programmed = programmedOf(observed)
  const expiry = line?.exp ?? null
  return {
    observedGeneration: apiKey.metadata.generation ?? 0,
    ...(verifier ? { keyID: verifier.id, prefix: verifier.prefix } : apiKey.status?.keyID ? { keyID: apiKey.status.keyID } : {}),
    ...(secret.state === 'Ours' && verifier?.state === 'Issued' ? { secretRef: { name: secretName(apiKey) } } : {}),
    ...(line ? { verifiers: line.ver.filter(({ state }) => state === 'Issued').map(({ id, created }) => ({ id, createTime: seconds(created) })) } : {}),
    ...(expiry === null ? {} : { expirationTime: seconds(expiry) }),
    ...(programmed ? { programmed } : {}),
    summary: { programmed: programmed ? `${programmed.ready}/${programmed.total}` : '0/0', models: modelsColumn(apiKey) },
    conditions: conditionList(API_KEY_CONDITIONS, judge(observed), {
      previous: apiKey.status?.conditions,
      generation: apiKey.metadata.generation ?? 0,
      nowMs: observed.now,
    }),
  }
}

/** Events for what changed between two statuses. */
export function eventsOf(observed: Observed, next: ApiKeyStatus): Array<{ reason: EventReason; note: string }> {
  const before = reasons(observed.apiKey.status)
  const after = reasons(next)
  const note = (type: string): string => findCondition(next.conditions, type)?.message ?? ''
  const events: Array<{ reason: EventReason; note: string }> = []
  const entered = (type: string, reason: string): boolean => after.get(type) === reason && before.get(type) !== reason
  const firstIssue = entered('SecretIssued', 'Issued') && !['SecretMissing', 'SecretModified'].includes(before.get('SecretIssued') ?? '')
  if (firstIssue) events.push({ reason: 'Issued', note: `The key ${next.prefix ?? ''} stands in Secret ${secretName(observed.apiKey)}.` })
  if (entered('Programmed', 'Unconfirmed') && firstIssue) events.push({ reason: 'Unconfirmed', note: note('Programmed') })
  for (const reason of ['SecretConflict', 'SecretMissing', 'SecretModified'] as const) {
    if (entered('SecretIssued', reason)) events.push({ reason, note: note('SecretIssued') })
  }
  for (const reason of ['Suspended', 'Expired', 'KeyLost'] as const) if (entered('Ready', reason)) events.push({ reason, note: note('Ready') })
  if (before.get('Ready') === 'Suspended' && observed.apiKey.spec.state === 'Active') events.push({ reason: 'Resumed', note: 'The key works again.' })
  if (entered('Ready', 'Revoked')) {
    events.push({ reason: after.get('Programmed') === 'Unconfirmed' ? 'RevocationUnconfirmed' : 'Revoked', note: note('Programmed') || note('Ready') })
  }
  return events
}

function reasons(status: ApiKeyStatus | undefined): Map<string, string> {
  return new Map((status?.conditions ?? []).map((condition) => [condition.type, condition.reason]))
}

function judge(observed: Observed): ApiKeyJudgement[] {
  const issued = judgeSecret(observed)
  const programmed = judgeProgrammed(observed)
  const ready = judgeReady(observed, issued, programmed)
  const list: ApiKeyJudgement[] = [ready, { type: 'Accepted', reason: 'Accepted', message: 'The manifest is acted on.' }, issued, programmed]
  if (ready.reason === 'Suspended') list.push({ type: 'Suspended', reason: 'Suspended', message: ready.message })
  if (isExpired(observed)) list.push({ type: 'Expired', reason: 'Expired', message: expiredMessage(observed) })
  if (ready.reason === 'KeyLost') list.push({ type: 'Stalled', reason: 'KeyLost', message: ready.message })
  else if (issued.reason === 'SecretConflict') list.push({ type: 'Stalled', reason: 'SecretConflict', message: issued.message })
  return list
}

function judgeReady(observed: Observed, issued: JudgementFor<'SecretIssued'>, programmed: JudgementFor<'Programmed'>): JudgementFor<'Ready'> {
  const type = 'Ready'
  const { state } = observed.apiKey.spec
  if (state === 'Revoked') return { type, reason: 'Revoked', message: 'The key is revoked for ever. Make a new ApiKey for a new key.' }
  if (state === 'Suspended') return { type, reason: 'Suspended', message: 'spec.state is Suspended. Set it to Active to let the key work again.' }
  if (isExpired(observed)) return { type, reason: 'Expired', message: expiredMessage(observed) }
  if (isKeyLost(observed)) return { type, reason: 'KeyLost', message: `No copy of the hash of the key is left. Delete the ApiKey and Secret ${secretName(observed.apiKey)} and apply it again.` }
  if (currentVerifier(observed.line)?.state !== 'Issued') return { type, reason: 'SecretNotIssued', message: issued.message }
  const wasReady = findCondition(observed.apiKey.status?.conditions, type)?.reason === 'Ready' && observed.apiKey.status?.keyID === currentVerifier(observed.line)?.id
  if (programmed.reason !== 'Programmed' && !wasReady) return { type, reason: 'NotProgrammed', message: programmed.message }
  return { type, reason: 'Ready', message: 'The key works on every gateway.' }
}

function judgeSecret(observed: Observed): JudgementFor<'SecretIssued'> {
  const type = 'SecretIssued'
  const { secret, line, apiKey } = observed
  const name = secretName(apiKey)
  const verifier = currentVerifier(line)
  if (verifier?.state === 'Issued') {
    if (secret.state === 'Absent' && apiKey.spec.state !== 'Revoked') {
      return { type, reason: 'SecretMissing', message: `Secret ${name} was deleted. The key works, but its value is known to its users alone; for a new value make a new ApiKey.` }
    }
    if (secret.state === 'Ours' && secret.hash !== verifier.h) {
      return { type, reason: 'SecretModified', message: `The value in Secret ${name} is not the issued key; it is left as it is. For a new value make a new ApiKey.` }
    }
    if (secret.state !== 'Foreign') return { type, reason: 'Issued', message: `Secret ${name} holds the key.` }
  }
  if (secret.state !== 'Absent') {
    return { type, reason: 'SecretConflict', message: `Secret ${name} exists and was not made for this ApiKey; it is left as it is. Remove it, or make an ApiKey with another secret.name.` }
  }
  return { type, reason: 'WaitingForStore', message: observed.storeAvailable ? 'The key is being made.' : 'Redis does not answer, so no key is made; it goes on by itself.' }
}

function judgeProgrammed(observed: Observed): JudgementFor<'Programmed'> {
  const type = 'Programmed'
  const { confirmation, projectedRev } = observed
  if (wasProgrammed(observed) && projectedRev !== undefined) {
    return { type, reason: 'Programmed', message: findCondition(observed.apiKey.status?.conditions, type)?.message ?? '' }
  }
  if (!observed.storeAvailable || confirmation?.known === false) return { type, reason: 'StoreUnreachable', message: 'Redis does not answer, so it is not known which gateways have the key.' }
  if (projectedRev === undefined || !confirmation) return { type, reason: 'Pending', message: 'The gateways have not been told yet.' }
  if (confirmation.total === 0) return { type, reason: 'NoGateways', message: 'No gateway pod serves. Start one; the key is already known to Redis.' }
  const count = `${confirmation.ready} of ${confirmation.total} gateway pods have acknowledged revision ${projectedRev}`
  if (isAcknowledged(observed)) return { type, reason: 'Programmed', message: `${count}.` }
  const named = confirmation.missing.slice(0, NAMED_PODS).join(', ')
  return { type, reason: 'Unconfirmed', message: `${count}; not yet: ${named}${confirmation.missing.length > NAMED_PODS ? ', …' : ''}.` }
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
