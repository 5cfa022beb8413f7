/** The status of every combination of what the operator can observe of a key: thousands. */
import { describe, expect, test } from 'vitest'
import {
  ACCOUNT_REFUSALS,
  acknowledged,
  edited,
  entryFor,
  failure,
  fresh,
  heldKey,
  inAccount,
  issued,
  minted,
  NOW,
  REV,
  secretOf,
  settledEdit,
  UNKNOWN,
  verifierOf,
  waiting,
  withEntry,
  withStatus,
} from '../../../test/support/observed-key.ts'
import { apiKeyStatus } from '#api/apikey.ts'
import { hashSpec, hashVerifier, notTaken, taken } from '../../../test/support/hash-keys.ts'
import { API_KEY_CONDITIONS } from '#api/conditions.ts'
import { isKeyLost } from './key-state.ts'
import type { Observed } from './observed.ts'
import { isHashKey } from './hash-source.ts'
import { statusOf } from './status.ts'
import type { ObservedSecret } from './user-secret.ts'

type Status = ReturnType<typeof statusOf>

/** `<status> <reason>` of one condition; undefined if it is absent. */
function reason({ conditions }: Status, type: string): string | undefined {
  const found = conditions?.find((condition) => condition.type === type)
  return found && `${found.status} ${found.reason}`
}

describe('for every combination of observations, the status', () => {
  const seen = new Map<string, readonly [Observed, Status]>()
  for (const observed of combinations()) {
    const status = statusOf(observed)
    seen.set(JSON.stringify([status, observed.apiKey.spec]), [observed, status])
  }
  const all = [...seen.values()]
  const is = (status: Status, type: string): string => reason(status, type)?.split(' ')[0] ?? 'absent'

  test('is valid for the API server', () => {
    for (const [, status] of all) expect(apiKeyStatus.safeParse(status).error).toBeUndefined()
    expect(all.length).toBeGreaterThan(1_000)
  })

  test('fits kstatus: Stalled only beside Ready=False, and every condition of this generation', () => {
    for (const [{ apiKey }, status] of all) {
      if (is(status, 'Stalled') === 'True') expect(is(status, 'Ready')).toBe('False')
      for (const type of ['Stalled', 'Suspended', 'Expired']) expect(['True', 'absent']).toContain(is(status, type))
      expect(status.observedGeneration).toBe(apiKey.metadata.generation)
      for (const condition of status.conditions ?? []) expect(condition.observedGeneration).toBe(apiKey.metadata.generation)
    }
  })

  test('is Ready only if the manifest lets the key work and its value is known', () => {
    for (const [observed, status] of all) {
      if (is(status, 'Ready') !== 'True') continue
      expect(observed.apiKey.spec.state).toBe('Active')
      expect(observed.verifier?.state).toBe('Issued')
      expect(is(status, 'Accepted')).toBe('True')
      expect([is(status, 'Suspended'), is(status, 'Expired'), is(status, 'Stalled')]).toEqual(['absent', 'absent', 'absent'])
      expect(status.keyID).toBe(observed.verifier?.id)
    }
  })

  test('is Issued only if the Secret holds the key or was deleted with its revocation', () => {
    for (const [observed, status] of all) {
      const isThere = observed.secret.state === 'Ours' && observed.secret.hash === observed.verifier?.hash
      if (reason(status, 'SecretIssued') === 'True Issued' && observed.secret.state !== 'Unknown')
        expect(isThere || observed.secret.state === 'Unreadable' || observed.apiKey.spec.state === 'Revoked').toBe(true)
    }
  })

  test('is KeyLost only if the key is lost, and NotApplicable only if no Secret belongs to the key', () => {
    for (const [observed, status] of all) {
      if (reason(status, 'Ready')?.includes('KeyLost') === true) expect(isKeyLost(observed)).toBe(true)
      if (reason(status, 'SecretIssued') === 'True NotApplicable') expect(isHashKey(observed.apiKey)).toBe(true)
    }
  })

  test('has whole sentences in the message of every condition', () => {
    const messages = new Set(all.flatMap(([, { conditions = [] }]) => conditions.map(({ message: text }) => text)))
    for (const text of messages) expect(text).toMatch(/^\S.*[^.]\.$/s)
  })

  test('uses every reason that the reference page lists, and its column agrees with its counts', () => {
    const used = new Set(all.flatMap(([, { conditions = [] }]) => conditions.map(({ type, reason: why }) => `${type} ${why}`)))
    const listed = Object.entries(API_KEY_CONDITIONS).flatMap(([type, { reasons }]) => Object.keys(reasons).map((why) => `${type} ${why}`))
    expect([...used].toSorted()).toEqual(listed.toSorted())
    for (const [, { programmed, summary }] of all) {
      expect(summary?.programmed).toBe(programmed ? `${programmed.ready}/${programmed.total}` : '0/0')
    }
  })
})

/** The product of all inputs of a status. */
function* combinations(): Generator<Observed> {
  for (const base of materials()) {
    for (const observed of secretsOf(base).flatMap((secret) => GATEWAYS.map((gateways) => ({ ...base, secret, ...gateways })))) {
      for (const failures of FAILURES) yield { ...observed, failures }
      if (isNew(base)) yield* refusedNew({ ...observed, isNew: true })
      yield inAccount(observed, { state: 'Suspended' })
      yield inAccount(observed, { isBalanceExhausted: true })
      for (const around of LIMITS) yield { ...limited(observed), ...around }
      yield spent(observed)
      yield { ...observed, unpricedModels: ['a'], isUnpriced: true }
    }
  }
}

function* refusedNew(observed: Observed): Generator<Observed> {
  yield { ...observed, namespaceLimit: 3 }
  for (const [, refused] of ACCOUNT_REFUSALS) yield refused(observed)
}

/** Inputs of limits besides the manifest. */
const LIMITS: ReadonlyArray<Partial<Observed>> = [
  {},
  { gatewayLimits: 'TooOld' },
  { heldBack: ['day'] },
  { spendLoss: { fromMs: 1_000, toMs: 9_000 } },
  { unpricedModels: ['a', 'b', 'c', 'd', 'e', 'f'], unboundedModels: ['a'] },
  { unboundedModels: ['a'] },
]

/** The same key with limits, one of which names a time zone that does not exist. */
function limited(observed: Observed): Observed {
  const budget = { name: 'day', amount: '5', unit: 'Currency', window: 'Day', timeZone: 'Europe/Atlantis', onExceeded: 'Block' } as const
  return { ...observed, apiKey: { ...observed.apiKey, spec: { ...observed.apiKey.spec, budgets: [budget] } } }
}

/** The same key with an exhausted budget. */
function spent(observed: Observed): Observed {
  const budget = { name: 'ever', unit: 'Tokens', window: 'Lifetime' } as const
  const budgets = [{ ...budget, amount: 7, timeZone: 'UTC', onExceeded: 'Block' } as const]
  const usage = { budgets: [{ ...budget, budget: 'ever', spent: 8, windowStartMs: 0 }], lastUsedMs: NOW }
  return { ...observed, entry: observed.entry && { ...observed.entry, budgets }, usage }
}

function isNew({ entry, isUnreadable, apiKey }: Observed): boolean {
  return entry === undefined && !isUnreadable && apiKey.status?.keyID === undefined
}

const GATEWAYS: readonly Partial<Observed>[] = [
  { projected: { revision: REV, forMs: 0 }, confirmation: acknowledged() },
  { projected: { revision: REV, forMs: 0 }, confirmation: acknowledged(0) },
  { projected: { revision: REV, forMs: 0 }, confirmation: waiting() },
  { projected: { revision: REV, forMs: 0 }, confirmation: UNKNOWN },
  { projected: undefined, confirmation: undefined, isProjecting: true },
  { projected: undefined, confirmation: undefined, storeAvailable: false },
]

const FAILURES: readonly Observed['failures'][] = [
  [],
  [failure('SecretRead', 'Forbidden')],
  [failure('SecretRead', 'Unreachable')],
  ...(['QuotaExceeded', 'AdmissionDenied', 'Forbidden', 'Invalid', 'Unreachable'] as const).map((code) => [failure('SecretWrite', code)]),
  [failure('Keyring', 'KeyringFull', 500)],
  [failure('Keyring', 'Unreachable', 0)],
  [failure('Other', 'Forbidden')],
]

/** Keys whose value exists elsewhere: new, at work, rotating, refused. */
function* hashMaterials(): Generator<Observed> {
  const present = hashVerifier('sk-present', 2)
  const former = hashVerifier('sk-former', 1, { expiresMs: NOW + 60_000 })
  for (const spec of [hashSpec('sk-present'), hashSpec('sk-present', 0, 'sk-present')]) {
    for (const observed of [notTaken(spec), taken([present], spec), taken([former, present], spec), taken([former], spec)])
      for (const around of HASH_STATES) yield { ...observed, ...around }
  }
  yield { ...notTaken(hashSpec('sk-present')), isUnreadable: true, isDuplicate: true }
}

const HASH_STATES: readonly Partial<Observed>[] = [
  {},
  { isDuplicate: true },
  { mayBeUnproven: false },
  { valueUse: 'Taken' },
  { valueUse: 'Full' },
  { isNamedElsewhere: true },
]

/** Every manifest beside every state of the key material, with the status of before or none. */
function* materials(): Generator<Observed> {
  yield* hashMaterials()
  const issuedBefore = withStatus(issued(heldKey({ ttlSeconds: 86_400 * 30 })))
  for (const state of ['Active', 'Suspended', 'Revoked'] as const) {
    const change = (observed: Observed): Observed => (state === 'Active' ? observed : settledEdit(edited(observed, { state })))
    const nothing = { entry: undefined, verifier: undefined }
    yield fresh({}, heldKey({ state }))
    yield change(minted())
    yield change(withEntry(minted(), entryFor(heldKey(), [verifierOf(1, 'Voided')])))
    for (const before of [issued(), issuedBefore]) {
      yield change(before)
      yield { ...change(before), now: NOW + 86_400_000 * 40 }
      yield { ...change(before), ...nothing }
      yield { ...change(before), ...nothing, isUnreadable: true }
    }
  }
}

function secretsOf({ verifier }: Observed): readonly ObservedSecret[] {
  const states = (['Unknown', 'Unreadable', 'Absent', 'Foreign', 'LeftOver'] as const).map((state) => ({ state }))
  const own = verifier ?? verifierOf(1)
  return [...states, secretOf(own), secretOf(verifierOf(9)), secretOf(own, { hash: undefined, valueID: '' })]
}
