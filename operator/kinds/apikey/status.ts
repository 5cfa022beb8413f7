/** Derives the status of an ApiKey. Pure. */
import { rfc3339 } from '#contract/values/rfc3339.ts'
import type { ApiKey, ApiKeyStatus } from '#api/apikey.ts'
import { budgetsWithoutZone } from '#api/key-policy.ts'
import { conditionList, findCondition } from '#api/condition-list.ts'
import { API_KEY_CONDITIONS, type ApiKeyCondition } from '#api/conditions.ts'
import { effective } from '#policy/effective.ts'
import type { KeyringVerifier } from '#contract/records/keyring-entry.ts'
import { effectiveStatus } from '../effective-status.ts'
import { progressOf } from '../../projection/programmed.ts'
import { accountRefusal, isAccountSuspended } from './key-account.ts'
import { hashRefusal, type HashRefusal, isAliveAt, isHashKey } from './hash-source.ts'
import { isKeyLost, wasProgrammed } from './key-state.ts'
import { limitsEnforceable, unpriced } from './limits-enforceable.ts'
import { policyOf } from './keyring-entry.ts'
import type { Failure, Observed } from './observed.ts'
import { secretIssued } from './secret-issued.ts'
import { exhaustedBudgets, type ShownStatus, untilWhen, usageStatus, usedColumn } from '../usage-status.ts'
import { MAX_USED_VALUES } from './used-values.ts'
import { secretName } from './user-secret.ts'

/** Maximum characters of the column of models. */
const MODELS_COLUMN = 60

type Outcome<Type extends ApiKeyCondition['type']> = Pick<Extract<ApiKeyCondition, { type: Type }>, 'reason' | 'message'>

/** The whole status: server-side apply removes every field that is not sent. */
export function statusOf(observed: Observed): ApiKeyStatus {
  const { apiKey } = observed
  const generation = apiKey.metadata.generation ?? 0
  const programmed = programmedCount(observed)
  const shown = shownStatus(observed)
  const used = usedColumn(shown)
  const policy = policyOf(apiKey, observed.entry, observed.plan)
  const limited = apiKey.spec.accountRef && effectiveStatus(policy)
  return {
    observedGeneration: generation,
    ...materialOf(observed),
    ...(limited && { effective: limited }),
    ...(programmed ? { programmed } : {}),
    ...revocationOf(observed),
    ...shown,
    summary: {
      programmed: programmed ? `${programmed.ready}/${programmed.total}` : '0/0',
      models: modelsColumn(apiKey.spec),
      ...(used !== undefined && { used }),
    },
    conditions: conditionList(API_KEY_CONDITIONS, conditionsOf(observed), {
      previous: apiKey.status?.conditions,
      generation,
      nowMs: observed.now,
    }),
  }
}

function shownStatus({ apiKey, entry, plan, usage }: Observed): ShownStatus {
  return usageStatus(apiKey.status, effective(entry ?? {}, plan).budgets, usage)
}

function revocationOf({ apiKey, now }: Observed): Pick<ApiKeyStatus, 'revokedTime'> {
  return apiKey.spec.state === 'Revoked' ? { revokedTime: apiKey.status?.revokedTime ?? rfc3339(now) } : {}
}

/** The parts of the status about the key material. The id of a lost or unreadable key stays, because only the status still names it. */
function materialOf({ apiKey, entry, verifier, secret }: Observed): Partial<ApiKeyStatus> {
  if (!entry) return formerMaterial(apiKey)
  const issued = entry.verifiers.filter(({ state }) => state === 'Issued')
  const shown = verifier?.state === 'Issued' ? verifier : undefined
  return {
    ...(shown ? { keyID: shown.id, ...(shown.prefix === '' ? {} : { prefix: shown.prefix }) } : {}),
    ...(secret.state === 'Ours' && shown ? { secretRef: { name: secretName(apiKey) } } : {}),
    // an empty list would be written in every run: server-side apply drops the list if the field was absent before
    ...(issued.length === 0 ? {} : { verifiers: issued.map(verifierStatus) }),
    ...(entry.expiresMs === null ? {} : { expirationTime: rfc3339(entry.expiresMs) }),
  }
}

function verifierStatus({ id, createdMs, expiresMs }: KeyringVerifier): NonNullable<ApiKeyStatus['verifiers']>[number] {
  return { id, createTime: rfc3339(createdMs), ...(expiresMs === null ? {} : { expireTime: rfc3339(expiresMs) }) }
}

function formerMaterial({ status }: ApiKey): Partial<ApiKeyStatus> {
  if (status?.keyID === undefined) return {}
  const { keyID, prefix, secretRef, verifiers, expirationTime } = status
  return {
    keyID,
    ...(prefix === undefined ? {} : { prefix }),
    ...(secretRef === undefined ? {} : { secretRef }),
    ...(verifiers === undefined ? {} : { verifiers }),
    ...(expirationTime === undefined ? {} : { expirationTime }),
  }
}

function conditionsOf(observed: Observed): ApiKeyCondition[] {
  const accepted = acceptedOf(observed)
  const issued = whileRefused(secretIssued(observed), accepted, observed)
  const programmed = whileRefused(programmedOf(observed), accepted, observed)
  const exhausted = exhaustedOf(observed)
  const others = { accepted, issued, programmed, exhausted: balanceExhausted(observed) ?? exhausted }
  const ready = readyOf(observed, others)
  const list: ApiKeyCondition[] = [
    { type: 'Ready', ...ready },
    { type: 'Accepted', ...accepted },
    { type: 'SecretIssued', ...issued },
    { type: 'Programmed', ...programmed },
    { type: 'LimitsEnforceable', ...limitsEnforceable(observed) },
  ]
  if (ready.reason === 'Suspended') list.push({ type: 'Suspended', reason: 'Suspended', message: ready.message })
  const rotating = rotatingOf(observed)
  if (rotating) list.push({ type: 'Rotating', ...rotating })
  list.push(...namedElsewhere(observed))
  if (exhausted) list.push({ type: 'BudgetExhausted', ...exhausted })
  if (isExpired(observed)) list.push({ type: 'Expired', reason: 'Expired', message: expiredMessage(observed) })
  const stalled = stalledOf(ready, others)
  if (stalled) list.push({ type: 'Stalled', ...stalled })
  return list
}

/** Nothing of a new key is under way while its manifest is refused, so every condition has the message of the refusal. */
function whileRefused<T extends { readonly reason: string; readonly message: string }>(
  outcome: T,
  { reason, message }: Outcome<'Accepted'>,
  { entry }: Observed,
): T {
  return outcome.reason === 'Pending' && reason !== 'Accepted' && entry === undefined ? { ...outcome, message } : outcome
}

/** Refusals that only an edit of the manifest ends. */
const STALLING = ['DuplicateKey', 'SourceInvalid', 'ProofRequired', 'ValueUsed'] as const
type Stalling = (typeof STALLING)[number]

function isStalledBy(reason: Outcome<'Accepted'>['reason']): reason is Stalling {
  return (STALLING as readonly string[]).includes(reason)
}

/** The condition Stalled, for errors that only a person can fix. */
function stalledOf(ready: Outcome<'Ready'>, { accepted, issued }: OtherConditions): Outcome<'Stalled'> | undefined {
  if (ready.reason === 'KeyLost') return { reason: 'KeyLost', message: ready.message }
  const { reason, message } = accepted
  if (ready.reason === 'NotAccepted' && isStalledBy(reason)) return { reason, message }
  if (issued.reason === 'SecretConflict' && ready.reason === 'SecretNotIssued') return { reason: 'SecretConflict', message: issued.message }
  return undefined
}

function acceptedOf(observed: Observed): Outcome<'Accepted'> {
  const { namespaceLimit, entry, apiKey } = observed
  if (namespaceLimit !== undefined && entry === undefined) {
    const message =
      `Namespace ${apiKey.metadata.namespace ?? ''} has ${namespaceLimit} keys, as many as it may have; keys deleted within 24 hours count. ` +
      'Delete keys that are not used, or ask the administrator to raise operator.settings.maxApiKeysPerNamespace.'
    return { reason: 'NamespaceLimitReached', message }
  }
  return (
    accountRefusal(observed) ??
    zoneUnknown(apiKey) ??
    sourceRefused(observed) ?? { reason: 'Accepted', message: 'The manifest is applied.' }
  )
}

function zoneUnknown({ spec, status }: ApiKey): Outcome<'Accepted'> | undefined {
  const [budget] = budgetsWithoutZone(spec)
  if (budget === undefined) return undefined
  const effect = status?.keyID === undefined ? 'Until then no key is issued.' : 'Until then the key keeps the budgets that it had.'
  const message = `spec.budgets[${budget.name}].timeZone is ${budget.timeZone ?? ''}, and there is no such time zone. Write an IANA name such as Europe/Berlin. ${effect}`
  return { reason: 'InvalidTimeZone', message }
}

/** Refusals of the hash. No message names another key or its namespace, which only their owner may know. */
const HASH_REFUSALS: Readonly<Record<HashRefusal, Outcome<'Accepted'>>> = {
  Duplicate: {
    reason: 'DuplicateKey',
    message:
      'spec.source.hash.sha256: another key has this value, and a value belongs to one key. Correct the SHA-256, or delete the other ApiKey.',
  },
  HintIsTheValue: {
    reason: 'SourceInvalid',
    message:
      'spec.source.hash.hint is the whole value of the key, so everybody who may read this ApiKey knows the value. Generate a new value and set its SHA-256 and a hint of its last 4 characters.',
  },
  ProofRequired: {
    reason: 'ProofRequired',
    message:
      'spec.source.hash.proof is absent, and in this namespace a SHA-256 alone makes no key, because everybody who reads the manifest knows it. Set the proof, or ask the administrator for scope.unprovenHashes.',
  },
  ValueUsed: {
    reason: 'ValueUsed',
    message:
      'spec.source.hash.sha256: a key with this value was revoked, or another namespace has used the value. Generate a new value. If the value is your own and another namespace has named its SHA-256, set spec.source.hash.proof.',
  },
  TooManyValues: {
    reason: 'ValueUsed',
    message: `This namespace has used ${MAX_USED_VALUES} values without a proof, as many as it may. Set spec.source.hash.proof.`,
  },
  GatewayTooOld: {
    reason: 'GatewayTooOld',
    message: 'A gateway pod runs a version that checks no proofs. Update all gateway pods; the value is taken then.',
  },
}

function sourceRefused(observed: Observed): Outcome<'Accepted'> | undefined {
  const refusal = observed.apiKey.spec.state === 'Revoked' ? undefined : hashRefusal(observed)
  if (refusal === undefined) return undefined
  const { reason, message } = HASH_REFUSALS[refusal]
  const effect =
    observed.verifier === undefined ? 'Until then the key does not work.' : 'Until then the key works with the value that it had.'
  return { reason, message: `${message} ${effect}` } as Outcome<'Accepted'>
}

/** The condition ValueNamedElsewhere. It does not name the other ApiKey, which only its own namespace may know. */
function namedElsewhere({ apiKey, isNamedElsewhere }: Observed): ApiKeyCondition[] {
  if (!isNamedElsewhere) return []
  const effect =
    apiKey.spec.source?.hash?.proof === undefined
      ? 'It can take over the calls only with a proof made from the value; set spec.source.hash.proof here too.'
      : 'It gets the calls only if its proof was made from the value too, and this ApiKey named the value later.'
  const message = `An ApiKey in another namespace names the SHA-256 of this key. ${effect} If you do not know that ApiKey, make another value.`
  return [{ type: 'ValueNamedElsewhere', reason: 'NamedElsewhere', message }]
}

/** The condition Rotating, for working values that the manifest no longer names. */
function rotatingOf({ apiKey, entry, verifier, now }: Observed): Outcome<'Rotating'> | undefined {
  if (!isHashKey(apiKey) || apiKey.spec.state === 'Revoked') return undefined
  const ends = (entry?.verifiers ?? [])
    .filter((one) => one.id !== verifier?.id && isAliveAt(one, now))
    .map(({ expiresMs }) => expiresMs ?? 0)
  if (ends.length === 0) return undefined
  const last = rfc3339(Math.max(...ends))
  const subject = ends.length === 1 ? `The former value works until ${last}.` : `${ends.length} former values work, the last until ${last}.`
  const message = `${subject} Set spec.rotation.overlapSeconds to 0 to end it now.`
  return { reason: 'OverlapActive', message }
}

interface OtherConditions {
  readonly accepted: Outcome<'Accepted'>
  readonly issued: Outcome<'SecretIssued'>
  readonly programmed: Outcome<'Programmed'>
  /** Why requests answer 402. */
  readonly exhausted: { readonly reason: 'BudgetExhausted' | 'BalanceExhausted'; readonly message: string } | undefined
}

function readyOf(observed: Observed, { accepted, issued, programmed, exhausted }: OtherConditions): Outcome<'Ready'> {
  const refusal = refusalOf(observed)
  if (refusal) return refusal
  if (accepted.reason !== 'Accepted') return { reason: 'NotAccepted', message: accepted.message }
  if (isKeyLost(observed)) return lossOf(observed)
  if (observed.verifier?.state !== 'Issued' && !isHashKey(observed.apiKey)) return { reason: 'SecretNotIssued', message: issued.message }
  if (!worksOnGateways(observed, programmed)) return { reason: 'NotProgrammed', message: programmed.message }
  return exhausted ?? unpriced(observed) ?? { reason: 'Ready', message: 'The key works on every gateway.' }
}

/** The message has no amount: the status of a key must not show the balance of its account. */
function balanceExhausted({ account }: Observed): OtherConditions['exhausted'] {
  if (account?.isBalanceExhausted !== true) return undefined
  const message =
    'The balance of the account is used up, or nearly so: requests that it cannot pay answer 402. Ask the administrator of the account for a Credit.'
  return { reason: 'BalanceExhausted', message }
}

/** The condition BudgetExhausted. A revoked key has none: its budgets no longer matter. */
function exhaustedOf(observed: Observed): Outcome<'BudgetExhausted'> | undefined {
  const exhausted = exhaustedBudgets(effective(observed.entry ?? {}, observed.plan).budgets, shownStatus(observed))
  if (exhausted.length === 0 || observed.apiKey.spec.state === 'Revoked') return undefined
  const sentences = exhausted.map((budget) => `Budget ${budget.name} is used up: requests answer 402 ${untilWhen(budget)}.`)
  return { reason: 'BudgetExhausted', message: sentences.join(' ') }
}

/** The status of an unreadable entry promises nothing, not even a refusal. */
const UNREADABLE: Outcome<'Ready'> = {
  reason: 'EntryUnreadable',
  message:
    'A newer version of Headgate wrote the keyring entry of this key, and this version cannot read it. The entry is left as it is. Update the operator.',
}

function refusalOf(observed: Observed): Outcome<'Ready'> | undefined {
  const { state } = observed.apiKey.spec
  if (observed.isUnreadable) return UNREADABLE
  if (state === 'Revoked') return { reason: 'Revoked', message: 'The key is revoked for good. For a new key, create a new ApiKey.' }
  if (state === 'Suspended') return { reason: 'Suspended', message: 'spec.state is Suspended. Set it to Active to let the key work again.' }
  if (isExpired(observed)) return { reason: 'Expired', message: expiredMessage(observed) }
  return isAccountSuspended(observed) && !observed.isNew ? { reason: 'AccountSuspended', message: ACCOUNT_SUSPENDED } : undefined
}

const ACCOUNT_SUSPENDED = 'The account of the key is suspended. The key works again when the account is Active.'

function lossOf({ apiKey }: Observed): Outcome<'Ready'> {
  const message = `No copy of the hash of the key is left. Delete the ApiKey and Secret ${secretName(apiKey)} and apply the ApiKey again.`
  return { reason: 'KeyLost', message }
}

/** Reasons of Ready that imply that every gateway had the key. */
const WORKED: ReadonlySet<string | undefined> = new Set(['Ready', 'BudgetExhausted', 'BalanceExhausted', 'PriceMissing'])

/**
 * Whether the issued value works on the gateways. Ready waits only for the first programming of a value, so a later edit of the policy does not
 * make it flap.
 */
function worksOnGateways({ apiKey, verifier }: Observed, programmed: Outcome<'Programmed'>): boolean {
  if (verifier?.state !== 'Issued') return false
  if (programmed.reason === 'Programmed') return true
  return apiKey.status?.keyID === verifier.id && WORKED.has(findCondition(apiKey.status.conditions, 'Ready')?.reason)
}

function programmedOf(observed: Observed): Outcome<'Programmed'> {
  const keyring = observed.failures.find(({ topic }) => topic === 'Keyring')
  if (keyring && (observed.verifier?.state === 'Issued' || isHashKey(observed.apiKey))) return notDurable(keyring)
  if (observed.isUnreadable || (wasProgrammed(observed) && observed.projected !== undefined)) return unchanged(observed.apiKey)
  return progressOf(observed, 'key')
}

/** The message for an edit that the gateways have, but the keyring does not. */
function notDurable({ code, message }: Failure): Outcome<'Programmed'> {
  if (code === 'KeyringFull') {
    const meanwhile = 'Until then gateways keep the policy before it, unless the edit restricts the key.'
    const remedy = 'Shorten spec.models, delete keys that are not needed, or ask the administrator; the operator tries again by itself.'
    return {
      reason: 'KeyringFull',
      message: `The keyring has no room for the newest edit of this key (${message}). ${remedy} ${meanwhile}`,
    }
  }
  const remedy = 'The operator tries again by itself; the administrator finds the reason in its log.'
  return { reason: 'Pending', message: `The newest change of this key is not in the keyring yet (${message}). ${remedy}` }
}

function unchanged({ status }: ApiKey): Outcome<'Programmed'> {
  const before = findCondition(status?.conditions, 'Programmed')
  if (before?.reason === 'Programmed') return { reason: 'Programmed', message: before.message }
  return { reason: 'Pending', message: before?.message ?? 'The record of the key cannot be written by this version.' }
}

function programmedCount(observed: Observed): ApiKeyStatus['programmed'] {
  const { confirmation, projected, apiKey } = observed
  const isUnknown = projected === undefined || confirmation === undefined || confirmation.state === 'Unknown'
  if (isUnknown || wasProgrammed(observed)) return apiKey.status?.programmed
  return { revision: projected.revision, ready: confirmation.ready, total: confirmation.total }
}

function isExpired({ entry, now }: Observed): boolean {
  return entry !== undefined && entry.expiresMs !== null && entry.expiresMs <= now
}

function expiredMessage({ entry }: Observed): string {
  return `The key expired at ${rfc3339(entry?.expiresMs ?? 0)}. Set a later time to let it work again.`
}

/** The allow-list of the key. The list of the plan is left out, because an edit of a Plan would then rewrite the status of every key. */
function modelsColumn({ models }: ApiKey['spec']): string {
  const text = models.join(',')
  return text.length > MODELS_COLUMN ? `${text.slice(0, MODELS_COLUMN - 1)}…` : text
}
