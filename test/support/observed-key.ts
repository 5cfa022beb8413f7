/** The input of `nextStep` and `statusOf` for one ApiKey: an issued and programmed key, and changes of it. */
import { credentialPrefix, hashCredential, mintCredential } from '#contract/values/credential.ts'
import type { KeyringEntry, KeyringVerifier } from '#contract/records/keyring-entry.ts'
import type { PlanRecord } from '#contract/records/plan-record.ts'
import { type ApiKey, FINALIZER } from '#api/apikey.ts'
import type { KeyAccount } from '../../operator/accounts/accounts.ts'
import { currentVerifier, entryOf } from '../../operator/kinds/apikey/keyring-entry.ts'
import type { Failure, FailureTopic, Observed } from '../../operator/kinds/apikey/observed.ts'
import { statusOf } from '../../operator/kinds/apikey/status.ts'
import type { ObservedSecret } from '../../operator/kinds/apikey/user-secret.ts'
import type { Confirmation } from '../../operator/projection/acknowledgements.ts'
import { apiKey } from './objects.ts'

/** Present time of all objects here, ms since 1970. */
export const NOW = Date.UTC(2026, 0, 2)
/** Revision that carries the record of the key. */
export const REV = 7

type OwnSecret = Extract<ObservedSecret, { state: 'Ours' }>

/** One generation of a key. */
export function verifierOf(number: number, state: KeyringVerifier['state'] = 'Issued'): KeyringVerifier {
  const { credential, id } = mintCredential()
  return {
    id,
    hash: hashCredential(credential),
    expiresMs: null,
    number,
    state,
    createdMs: NOW - 60_000,
    prefix: credentialPrefix(credential),
  }
}

/** The Secret that holds this generation. */
export function secretOf({ id, hash, number, prefix }: KeyringVerifier, change: Partial<OwnSecret> = {}): OwnSecret {
  return { state: 'Ours', uid: 'secret-1', hash, keyID: id, valueID: id, generation: number, prefix, current: true, ...change }
}

/** All of `total` pods have acknowledged the revision. */
export function acknowledged(total = 2): Confirmation {
  return { state: total === 0 ? 'NoGateways' : 'Acknowledged', ready: total, total, missing: [] }
}

/** Two of three pods have acknowledged the revision. */
export function waiting(missing: readonly string[] = ['gateway-2']): Confirmation {
  return { state: 'Waiting', ready: 2, total: 2 + missing.length, missing }
}

/** Redis did not answer. */
export const UNKNOWN: Confirmation = { state: 'Unknown', ready: 0, total: 0, missing: [] }

/** The last failure of one topic. */
export function failure(topic: FailureTopic, code: Failure['code'] = 'Unreachable', retryInMs = 0): Failure {
  return { topic, code, message: `the API server said ${code}`, retryInMs }
}

/** An ApiKey that carries our finalizer. */
export function heldKey(spec: Partial<ApiKey['spec']> = {}, metadata: Partial<ApiKey['metadata']> = {}): ApiKey {
  const own = { uid: 'uid-1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z', finalizers: [FINALIZER] }
  return apiKey('bot', spec, { ...own, ...metadata })
}

/** The keyring entry of a key with these generations, as its manifest asks for it. */
export function entryFor(key: ApiKey, verifiers: readonly KeyringVerifier[], change: Partial<KeyringEntry> = {}): KeyringEntry {
  return { ...entryOf(key, { verifiers, revision: REV, version: 1 }), ...change }
}

/** An issued key, acknowledged by all pods; its status is not written yet. */
export function issued(key: ApiKey = heldKey(), verifier = verifierOf(1)): Observed {
  return {
    apiKey: key,
    entry: entryFor(key, [verifier]),
    isConfirmedLive: false,
    isCommitting: false,
    mayBeInRedis: false,
    isUnreadable: false,
    hasStandIn: false,
    verifier,
    secret: secretOf(verifier),
    isSecretWritable: false,
    holdsCredential: false,
    projected: { revision: REV, forMs: 0 },
    isProjecting: false,
    confirmation: acknowledged(),
    storeAvailable: true,
    version: 1,
    now: NOW,
    isTimeKnown: true,
    deletingForMs: 0,
    revocationWaitMs: 30_000,
    retiresAtMs: undefined,
    spareKey: undefined,
    revisionInMs: 0,
    namespaceLimit: undefined,
    isDuplicate: false,
    mayBeUnproven: true,
    valueUse: 'Known',
    unrecordedHashes: [],
    isNamedElsewhere: false,
    isNew: false,
    account: undefined,
    plan: undefined,
    isAccountRequired: false,
    hasAccounts: true,
    accountLimit: undefined,
    gatewayLimits: 'Current',
    gatewayAccounts: 'Current',
    gatewayProofs: 'Current',
    unpricedModels: [],
    isUnpriced: false,
    unboundedModels: [],
    usage: undefined,
    spendLoss: undefined,
    heldBack: [],
    failures: [],
  }
}

/** The same key with an account on the Plan `pro`. */
export function inAccount(observed: Observed, change: Partial<KeyAccount> = {}): Observed {
  const plan: PlanRecord = { kind: 'plan', version: 1, revision: 1, uid: 'plan-1', name: 'pro', generation: 1, models: ['*'] }
  const account: KeyAccount = {
    name: 'acme',
    uid: 'account-1',
    claim: 'Owned',
    isOpening: false,
    createdMs: NOW - 60_000,
    state: 'Active',
    isBalanceExhausted: false,
    needsPrices: false,
    admitsNamespace: true,
    isPending: false,
    planName: 'pro',
    planSpec: { models: ['*'], maxKeys: 10 },
    plan,
    ...change,
  }
  const { apiKey: key } = observed
  const spec = { ...key.spec, accountRef: { name: 'acme' } }
  return { ...observed, apiKey: { ...key, spec }, account, plan: account.plan }
}

/** What an account can refuse, by the reason of the condition Accepted. */
export const ACCOUNT_REFUSALS: ReadonlyArray<readonly [reason: string, refused: (observed: Observed) => Observed]> = [
  ['AccountRequired', (observed) => ({ ...observed, isAccountRequired: true })],
  ['AccountNotFound', (observed) => ({ ...inAccount(observed), account: undefined })],
  ['NamespaceNotAllowed', (observed) => ({ ...inAccount(observed, { admitsNamespace: false }), isNew: false })],
  ['AccountNotAccepted', (observed) => inAccount(observed, { uid: undefined, claim: 'NameUsed' })],
  ['PlanNotFound', (observed) => inAccount(observed, { plan: undefined, planSpec: undefined })],
  ['EmailNotVerified', (observed) => inAccount(observed, { isPending: true })],
  ['TooManyKeys', (observed) => ({ ...inAccount(observed), accountLimit: { most: 10, of: 'ActiveKeys' } })],
  ['GatewayTooOld', (observed) => ({ ...inAccount(observed), gatewayAccounts: 'TooOld' })],
]

/** A key that is durable and live, and is in no Secret yet. */
export function minted(change: Partial<Observed> = {}, key: ApiKey = heldKey()): Observed {
  return { ...issued(key, verifierOf(1, 'Minted')), secret: { state: 'Absent' }, holdsCredential: true, ...change }
}

/** A key that was never made. */
export function fresh(change: Partial<Observed> = {}, key: ApiKey = heldKey()): Observed {
  const nothing = { entry: undefined, verifier: undefined, projected: undefined, confirmation: undefined }
  return { ...issued(key), ...nothing, isNew: true, secret: { state: 'Unknown' }, ...change }
}

/** The same key with another entry; the verifier follows. */
export function withEntry(observed: Observed, entry: KeyringEntry | undefined): Observed {
  return { ...observed, entry, verifier: currentVerifier(entry) }
}

/** The same with the status that follows from it. */
export function withStatus(observed: Observed): Observed {
  return { ...observed, apiKey: { ...observed.apiKey, status: statusOf(observed) } }
}

/** The manifest is edited: another spec, the next generation. The keyring does not know yet. */
export function edited(observed: Observed, spec: Partial<ApiKey['spec']>): Observed {
  const { apiKey: key } = observed
  const metadata = { ...key.metadata, generation: (key.metadata.generation ?? 0) + 1 }
  return { ...observed, apiKey: { ...key, spec: { ...key.spec, ...spec }, metadata } }
}

/** The keyring has the present manifest, and the gateways have it as revision `revision`. */
export function settledEdit(observed: Observed, revision = REV + 1): Observed {
  const entry = entryFor(observed.apiKey, observed.entry?.verifiers ?? [])
  return { ...withEntry(observed, entry), projected: { revision, forMs: 0 } }
}
