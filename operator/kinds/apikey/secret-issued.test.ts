import { describe, expect, test } from 'vitest'
import {
  edited,
  entryFor,
  failure,
  fresh,
  heldKey,
  issued,
  minted,
  secretOf,
  settledEdit,
  verifierOf,
  withEntry,
  withStatus,
} from '../../../test/support/observed-key.ts'
import type { Failure, Observed } from './observed.ts'
import { secretIssued } from './secret-issued.ts'

const revoked = (observed: Observed): Observed => settledEdit(edited(observed, { state: 'Revoked' }))
const refused = (code: Failure['code']): Observed => fresh({ secret: { state: 'Absent' }, failures: [failure('SecretWrite', code)] })
const unreadSecret = (code: Failure['code']): Partial<Observed> => ({
  secret: { state: 'Unknown' },
  failures: [failure('SecretRead', code)],
})
const lost = (): Observed => ({ ...withStatus(issued()), entry: undefined, verifier: undefined, secret: { state: 'Absent' } })

describe('SecretIssued', () => {
  test.each<[string, Observed, string, RegExp]>([
    ['the Secret holds the key', issued(), 'Issued', /^Secret bot holds the key\.$/],
    ['it was not read since a restart', { ...issued(), secret: { state: 'Unknown' } }, 'Issued', /^Secret bot holds the key\.$/],
    ['it was deleted', { ...issued(), secret: { state: 'Absent' } }, 'SecretMissing', /was deleted.*create a new ApiKey\.$/],
    ['its value was edited', { ...issued(), secret: secretOf(verifierOf(2)) }, 'SecretModified', /left as it is.*create a new ApiKey\.$/],
    ['another object took its name', { ...issued(), secret: { state: 'Foreign' } }, 'SecretConflict', /does not belong to this ApiKey/],
    [
      'it cannot be read because a right is missing',
      { ...issued(), ...unreadSecret('Forbidden') },
      'SecretUnreadable',
      /Grant the operator's ServiceAccount get on secrets/,
    ],
    [
      'it cannot be read for another cause',
      { ...issued(), ...unreadSecret('Unreachable') },
      'SecretUnreadable',
      /said Unreachable.*tries again by itself\.$/,
    ],
    [
      'it was deleted with the revocation',
      { ...revoked(issued()), secret: { state: 'Absent' } },
      'Issued',
      /was removed with its revocation\.$/,
    ],
    ['it was never made', fresh({}, heldKey({ state: 'Revoked' })), 'Revoked', /revoked before it was issued/],
    ['the hash is lost', lost(), 'KeyLost', /hash has been lost\. The operator will not issue a replacement on its own\.$/],
    [
      'another object has the name',
      fresh({ secret: { state: 'Foreign' } }),
      'SecretConflict',
      /Remove it, or create an ApiKey with another secret\.name\.$/,
    ],
    [
      'another ApiKey has the name',
      fresh({ secret: { state: 'Foreign', apiKey: 'payments' } }),
      'SecretConflict',
      /^Secret bot holds the key of ApiKey payments, the only copy .* Create an ApiKey with another secret\.name\.$/,
    ],
    [
      'a user put a value there',
      minted({ secret: secretOf(verifierOf(9), { hash: undefined, valueID: '' }) }),
      'SecretConflict',
      /left as it is/,
    ],
    [
      'the one of a deleted ApiKey is still there',
      fresh({ secret: { state: 'LeftOver' } }),
      'Pending',
      /of a deleted ApiKey is about to be removed/,
    ],
    ['a quota refuses it', refused('QuotaExceeded'), 'QuotaExceeded', /said QuotaExceeded\. Raise the quota or delete Secrets/],
    ['a policy refuses it', refused('AdmissionDenied'), 'AdmissionDenied', /said AdmissionDenied\. Change the ApiKey or the policy/],
    [
      'a Role is missing',
      refused('Forbidden'),
      'Forbidden',
      /said Forbidden\. Grant its ServiceAccount the rights of the Helm chart here\.$/,
    ],
    ['the API server is away', refused('Unreachable'), 'Pending', /said Unreachable\. The operator tries again by itself\.$/],
    [
      'the keyring is full',
      fresh({ failures: [failure('Keyring', 'KeyringFull')] }),
      'KeyringFull',
      /no room for the key.*Ask the administrator/,
    ],
    [
      'the keyring cannot be written',
      fresh({ failures: [failure('Keyring', 'Unreachable')] }),
      'Pending',
      /keyring cannot be written: .*Unreachable/,
    ],
    [
      'the finalizer cannot be written',
      fresh({ failures: [failure('Other', 'Forbidden')] }),
      'Forbidden',
      /may not write in this namespace/,
    ],
    ['Redis does not answer', fresh({ storeAvailable: false }), 'WaitingForStore', /Redis does not answer, so no key is issued/],
    ['the namespace is full', fresh({ namespaceLimit: 3 }), 'Pending', /when the namespace has room/],
    ['it is being made', minted(), 'Pending', /^The key is being issued\.$/],
    ['its entry is of a newer version', { ...lost(), isUnreadable: true }, 'EntryUnreadable', /until the operator is updated\.$/],
  ])('gives reason and message if %s', (_what, observed, reason, message) => {
    expect(secretIssued(observed)).toMatchObject({ reason, message: expect.stringMatching(message) })
  })

  test('a voided key gives the reason of the refused write, and does not say that the key is being made', () => {
    const voided = withEntry(refused('QuotaExceeded'), entryFor(heldKey(), [verifierOf(1, 'Voided')]))
    expect(secretIssued(voided).reason).toBe('QuotaExceeded')
  })

  test('a lost key that is revoked is reported as revoked, because no remedy is needed', () => {
    expect(secretIssued({ ...lost(), apiKey: { ...lost().apiKey, spec: { state: 'Revoked', models: ['*'] } } }).reason).toBe('Revoked')
  })

  test('the message names the Secret of the manifest', () => {
    const key = heldKey({ secret: { name: 'other', retention: 'Keep' } })
    expect(secretIssued(issued(key)).message).toBe('Secret other holds the key.')
  })
})
