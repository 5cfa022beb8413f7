import { describe, expect, test } from 'vitest'
import {
  acknowledged,
  edited,
  failure,
  fresh,
  heldKey,
  inAccount,
  issued,
  minted,
  NOW,
  secretOf,
  settledEdit,
  UNKNOWN,
  verifierOf,
  waiting,
  withStatus,
} from '../../../test/support/observed-key.ts'
import { apiKeyStatus } from '#api/apikey.ts'
import { hashSpec, hashVerifier, notTaken, taken } from '../../../test/support/hash-keys.ts'
import { expiryOf } from './keyring-entry.ts'
import type { Observed } from './observed.ts'
import { statusOf } from './status.ts'

type Status = ReturnType<typeof statusOf>

/** `<status> <reason>` of one condition; undefined if it is absent. */
function reason({ conditions }: Status, type: string): string | undefined {
  const found = conditions?.find((condition) => condition.type === type)
  return found && `${found.status} ${found.reason}`
}

function message({ conditions }: Status, type: string): string {
  return conditions?.find((condition) => condition.type === type)?.message ?? ''
}

const during = (state: 'Suspended' | 'Revoked', observed = issued()): Observed => settledEdit(edited(observed, { state }))
const expired = (): Observed => ({ ...issued(heldKey({ ttlSeconds: 60 })), now: NOW + 60_000 })
const lost = (): Observed => ({
  ...withStatus(issued()),
  entry: undefined,
  verifier: undefined,
  projected: undefined,
  confirmation: undefined,
})

describe('the status of an ApiKey', () => {
  test.each<[string, Observed, string, string]>([
    ['revoked before all else', { ...during('Revoked', expired()), now: NOW }, 'Ready', 'False Revoked'],
    ['revoked although its namespace is full', fresh({ namespaceLimit: 3 }, heldKey({ state: 'Revoked' })), 'Ready', 'False Revoked'],
    ['suspended', during('Suspended'), 'Ready', 'False Suspended'],
    ['suspended, in a condition of its own', during('Suspended'), 'Suspended', 'True Suspended'],
    ['expired', expired(), 'Ready', 'False Expired'],
    ['expired, in a condition of its own', expired(), 'Expired', 'True Expired'],
    ['not accepted', fresh({ namespaceLimit: 3 }), 'Ready', 'False NotAccepted'],
    ['not accepted, with the reason', fresh({ namespaceLimit: 3 }), 'Accepted', 'False NamespaceLimitReached'],
    ['lost', { ...lost(), secret: { state: 'Absent' } }, 'Ready', 'False KeyLost'],
    ['lost: a person must fix it', { ...lost(), secret: { state: 'Absent' } }, 'Stalled', 'True KeyLost'],
    ['not delivered', minted(), 'Ready', 'False SecretNotIssued'],
    ['held up by a foreign Secret', fresh({ secret: { state: 'Foreign' } }), 'Ready', 'False SecretNotIssued'],
    ['held up by a foreign Secret: a person must fix it', fresh({ secret: { state: 'Foreign' } }), 'Stalled', 'True SecretConflict'],
    ['of an account without balance', inAccount(issued(), { isBalanceExhausted: true }), 'Ready', 'False BalanceExhausted'],
    ['without its Secret, and works', { ...issued(), secret: { state: 'Absent' } }, 'Ready', 'True Ready'],
    ['with another value in its Secret, and works', { ...issued(), secret: secretOf(verifierOf(2)) }, 'Ready', 'True Ready'],
    ['not known to one pod', { ...issued(), confirmation: waiting() }, 'Programmed', 'False Unconfirmed'],
    ['not known to one pod and never was', { ...issued(), confirmation: waiting() }, 'Ready', 'False NotProgrammed'],
    ['served by no gateway', { ...issued(), confirmation: acknowledged(0) }, 'Programmed', 'False NoGateways'],
    ['of unknown state on the gateways', { ...issued(), confirmation: UNKNOWN }, 'Programmed', 'Unknown StoreUnreachable'],
    ['not in Redis yet', { ...issued(), projected: undefined, confirmation: undefined }, 'Programmed', 'False Pending'],
    ['of a newer version', { ...lost(), isUnreadable: true }, 'Ready', 'Unknown EntryUnreadable'],
  ])('a key that is %s has its reason', (_what, observed, type, expected) => {
    expect(reason(statusOf(observed), type)).toBe(expected)
  })

  test('a lost key keeps its id in the status, because only the status still names the id', () => {
    const before = lost()
    const status = statusOf({ ...before, secret: { state: 'Absent' } })
    expect(status).toMatchObject({ keyID: before.apiKey.status?.keyID, prefix: before.apiKey.status?.prefix })
  })

  test('an entry of a newer version makes no new promise, and withdraws none', () => {
    const before = withStatus(issued())
    const status = statusOf({
      ...before,
      entry: undefined,
      verifier: undefined,
      isUnreadable: true,
      projected: undefined,
      confirmation: undefined,
    })
    expect(reason(status, 'Programmed')).toBe('True Programmed')
    expect(status).toMatchObject({ keyID: before.apiKey.status?.keyID, secretRef: { name: 'bot' }, programmed: { ready: 2, total: 2 } })
    expect(message(status, 'Ready')).toContain('Update the operator')
  })

  test('a key whose account has no balance keeps that state while an edit is on its way, and shows no amount', () => {
    const used = withStatus(inAccount(issued(), { isBalanceExhausted: true }))
    const status = statusOf({ ...used, confirmation: waiting() })
    expect(reason(status, 'Ready')).toBe('False BalanceExhausted')
    expect(message(status, 'Ready').replace('402', '')).not.toMatch(/\d/)
  })

  test('the message names the missing pods, at most ten', () => {
    const missing = Array.from({ length: 12 }, (_, index) => `gateway-${index}`)
    const status = statusOf({ ...issued(), confirmation: { ...waiting(missing), ready: 0, total: 12 } })
    expect(message(status, 'Programmed')).toMatch(/^0 of 12 gateway pods have acknowledged revision 7; not yet: .* gateway-9, …\.$/)
    expect(status.summary?.programmed).toBe('0/12')
  })

  test('pods that start or stop later cause no write: a programmed key stays Programmed', () => {
    const before = withStatus(issued())
    expect(statusOf({ ...before, confirmation: waiting(), projected: { revision: 9, forMs: 0 } })).toEqual(before.apiKey.status)
  })

  test('an edit changes Programmed and does not make Ready flap', () => {
    const after = statusOf({ ...settledEdit(edited(withStatus(issued()), { models: ['a'] })), confirmation: waiting() })
    expect(reason(after, 'Programmed')).toBe('False Unconfirmed')
    expect(after.programmed).toEqual({ revision: 8, ready: 2, total: 3 })
    expect(reason(after, 'Ready')).toBe('True Ready')
  })

  test('a change that the keyring refuses is not Programmed, and the message gives the reason', () => {
    const refusedWith = (code: 'KeyringFull' | 'Other') =>
      statusOf({ ...during('Suspended', withStatus(issued())), failures: [failure('Keyring', code, 700)] })
    expect(reason(refusedWith('Other'), 'Programmed')).toBe('False Pending')
    expect(message(refusedWith('Other'), 'Programmed')).toContain('the API server said Other')
    expect(reason(refusedWith('KeyringFull'), 'Programmed')).toBe('False KeyringFull')
    expect(message(refusedWith('KeyringFull'), 'Programmed')).toMatch(/the API server said KeyringFull.*Shorten spec\.models/)
  })

  test('after a restart during an outage of Redis, Programmed is Unknown', () => {
    const after = statusOf({ ...withStatus(issued()), projected: undefined, confirmation: undefined, storeAvailable: false })
    expect(reason(after, 'Programmed')).toBe('Unknown StoreUnreachable')
    expect(reason(after, 'Ready')).toBe('True Ready')
  })

  test('the column shortens a long allow-list', () => {
    const models = Array.from({ length: 30 }, (_, index) => `model-${index}`)
    expect(statusOf(issued(heldKey({ models }))).summary?.models).toMatch(/^.{59}…$/)
    expect(statusOf(issued()).summary?.models).toBe('*')
  })

  test('the status can hold the last time that a manifest can name', () => {
    const key = heldKey({ expirationTime: '9999-12-31T23:59:59-23:59' })
    expect(apiKeyStatus.safeParse(statusOf(issued(key))).error).toBeUndefined()
    expect(expiryOf(key)).toBe(Date.UTC(9999, 11, 31, 23, 59, 59))
  })

  test('a message of any length fits into the schema', () => {
    const failures = [{ ...failure('SecretWrite', 'AdmissionDenied'), message: 'no '.repeat(20_000) }]
    expect(apiKeyStatus.safeParse(statusOf(fresh({ failures }))).error).toBeUndefined()
  })
})

describe('the status of a key whose value exists elsewhere', () => {
  test('is not Ready before the keyring has its hash, and gives the reason of the wait', () => {
    const full = statusOf(notTaken(hashSpec('sk-a'), { failures: [failure('Keyring', 'KeyringFull', 500)] }))
    expect([reason(full, 'Ready'), reason(full, 'Programmed'), reason(full, 'SecretIssued')]).toEqual([
      'False NotProgrammed',
      'False KeyringFull',
      'True NotApplicable',
    ])
    expect(message(full, 'Ready')).toContain('no room')
  })

  test('names the end of each former value', () => {
    const former = hashVerifier('sk-former', 1, { expiresMs: NOW + 3_600_000 })
    const status = statusOf(taken([former, hashVerifier('sk-present', 2)], hashSpec('sk-present')))
    expect(message(status, 'Rotating')).toContain('until 2026-01-02T01:00:00Z')
    expect(status.verifiers).toMatchObject([{ id: former.id, expireTime: '2026-01-02T01:00:00Z' }, {}])
    expect(
      reason(statusOf(taken([{ ...former, expiresMs: NOW }, hashVerifier('sk-present', 2)], hashSpec('sk-present'))), 'Rotating'),
    ).toBeUndefined()
  })
})
