import { describe, expect, test } from 'vitest'
import {
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
import { FINALIZER } from '#api/apikey.ts'
import { refOf, uidOf } from '#kube/port.ts'
import { tombstoneOf } from '#contract/records/tombstone.ts'
import { isKeyLost } from './key-state.ts'
import { withState } from './keyring-entry.ts'
import { nextStep, reportStep } from './steps.ts'
import type { Step } from './step.ts'
import type { Observed } from './observed.ts'

const DELETED_AT = '2026-01-02T00:00:00Z' // = NOW
const DONE = undefined
const WRITE_STATUS: Step = { do: 'write-status', level: 'background' }

/** The `do` of the step, or `wait`, or undefined. */
const doing = (observed: Observed): string | undefined => nextStep(observed)?.do
const statesOf = (step: ReturnType<typeof nextStep>): string[] | undefined =>
  step && 'entry' in step ? step.entry.verifiers.map(({ state }) => state) : undefined

/** A key that needs no step: issued, acknowledged, and its status says so. */
const idle = (change: Partial<Observed> = {}): Observed => ({ ...withStatus(issued()), ...change })

/** An issued key that is being deleted, revoked in the keyring and on the gateways. */
function deleting(change: Partial<Observed> = {}): Observed {
  const observed = issued(heldKey({}, { deletionTimestamp: DELETED_AT }))
  const entry = observed.entry && tombstoneOf(observed.entry, NOW)
  return { ...withEntry(observed, entry), secret: { state: 'Unknown' }, ...change }
}

describe('issuing a key, in the order of its promises', () => {
  test('a finalizer that was removed from an existing key is added again before new keys get theirs', () => {
    const { finalizers: _none, ...metadata } = idle().apiKey.metadata
    expect(nextStep(idle({ apiKey: { ...idle().apiKey, metadata } }))).toEqual({ do: 'add-finalizer', level: 'change' })
  })

  test('the next generation goes before new keys, and its number follows all former numbers', () => {
    const voided = entryFor(heldKey(), [verifierOf(1, 'Revoked'), verifierOf(4, 'Voided'), verifierOf(2, 'Voided')])
    const observed = withEntry(fresh({ secret: { state: 'Absent' }, isSecretWritable: true }), voided)
    expect(nextStep(observed)).toEqual({ do: 'mint', level: 'change', number: 5 })
  })

  test.each<[string, Partial<Observed>]>([
    ['Redis does not answer', { storeAvailable: false }],
    ['the name is taken', { secret: { state: 'Foreign' } }],
    ['the Secret of a deleted ApiKey is still there', { secret: { state: 'LeftOver' } }],
    ['a Secret of this ApiKey is there already', { secret: secretOf(verifierOf(1)) }],
    ['the key is revoked', { apiKey: heldKey({ state: 'Revoked' }) }],
    ['the key was issued before and is lost', { apiKey: { ...heldKey(), status: { keyID: 'known' } }, secret: { state: 'Absent' } }],
    ['the namespace has reached its bound of keys', { namespaceLimit: 10 }],
    ['the keyring asked for a pause', { failures: [failure('Keyring', 'KeyringFull', 900)] }],
    ['a former removal is not durable yet', { isCommitting: true }],
    ['the entry cannot be read by this version', { isUnreadable: true }],
  ])('nothing is minted when %s', (_what, change) => {
    expect(doing(fresh(change))).not.toBe('mint')
  })

  test('a new key that is not durable yet is neither live nor readable', () => {
    const observed = minted({ isCommitting: true, projected: undefined, confirmation: undefined })
    expect(nextStep(withStatus({ ...observed, now: NOW + 10_000 }))).toEqual({ do: 'wait' })
    expect(['project', 'write-secret']).not.toContain(doing(minted({ isCommitting: true })))
  })

  test('a durable key goes to the gateways before any client can read its value', () => {
    expect(nextStep(minted({ projected: undefined, confirmation: undefined }))).toEqual({ do: 'project', level: 'change' })
    const onItsWay = minted({ projected: undefined, confirmation: undefined, isProjecting: true })
    expect(nextStep(withStatus(onItsWay))).toEqual({ do: 'wait' })
  })

  test('the first status is written when the key is issued, after five seconds, or after a failure', () => {
    const createdMs = verifierFrom(minted()).createdMs
    for (const change of [{ isCommitting: true }, { isProjecting: true }]) {
      const young = minted({ projected: undefined, confirmation: undefined, now: createdMs + 1_000, ...change })
      expect(nextStep(young)).toEqual({ do: 'wait', forMs: 4_000 })
      expect(nextStep({ ...young, now: createdMs + 5_000 })).toEqual(WRITE_STATUS)
      expect(nextStep({ ...young, failures: [failure('Other')] })).toEqual(WRITE_STATUS)
    }
  })

  test('the Secret is written when every pod has the key or no pod serves', () => {
    const observed = minted()
    const write = { do: 'write-secret', level: 'change', verifier: observed.verifier }
    expect(nextStep(observed)).toEqual(write)
    expect(nextStep({ ...observed, confirmation: acknowledged(0) })).toEqual(write)
  })

  test.each([waiting(), UNKNOWN])('a silent pod delays a new key for at most five seconds: $state', (confirmation) => {
    const observed = minted({ confirmation })
    expect(nextStep({ ...observed, projected: { revision: REV, forMs: 4_000 } })).toEqual({ do: 'wait', forMs: 1_000 })
    expect(doing({ ...observed, projected: { revision: REV, forMs: 4_999 } })).toBe('wait')
    expect(doing({ ...observed, projected: { revision: REV, forMs: 5_000 } })).toBe('write-secret')
  })
})

describe('a minted key', () => {
  test('whose delivery the status names becomes issued, even if its Secret was deleted before the mark was durable', () => {
    const observed = minted({ holdsCredential: false })
    const { id } = verifierFrom(observed)
    const status = { keyID: id, verifiers: [{ id, createTime: '2026-01-01T00:00:00Z' }] }
    expect(statesOf(nextStep({ ...observed, apiKey: { ...observed.apiKey, status } }))).toEqual(['Issued'])
  })

  test('whose value was lost with a process is voided, after a read of the Secret', () => {
    const lost = minted({ holdsCredential: false })
    expect(nextStep({ ...lost, secret: { state: 'Unknown' } })).toEqual({ do: 'read-secret', level: 'change' })
    const step = nextStep(lost)
    expect(step).toMatchObject({ do: 'commit', level: 'change' })
    expect(statesOf(step)).toEqual(['Voided'])
  })

  test('is voided if it is revoked before its delivery, or if another object has the name', () => {
    const revoked = settledEdit(edited(minted(), { state: 'Revoked' }))
    expect(nextStep({ ...revoked, secret: { state: 'Unknown' } })).toMatchObject({ do: 'read-secret' })
    expect(statesOf(nextStep(revoked))).toEqual(['Voided'])
    for (const state of ['Foreign', 'LeftOver'] as const) expect(statesOf(nextStep(minted({ secret: { state } })))).toEqual(['Voided'])
  })

  test.each(['QuotaExceeded', 'AdmissionDenied', 'Forbidden', 'Invalid', 'NamespaceTerminating'] as const)(
    'whose Secret is refused (%s) leaves no live verifier behind',
    (code) => {
      expect(statesOf(nextStep(minted({ failures: [failure('SecretWrite', code)] })))).toEqual(['Voided'])
    },
  )

  test.each(['Unreachable', 'TooManyRequests', 'Unauthorized'] as const)('is kept while the API server does not answer (%s)', (code) => {
    expect(doing(minted({ failures: [failure('SecretWrite', code)] }))).toBe('write-secret')
  })

  test.each([
    ['is not a Credential of ours', { hash: undefined, valueID: '' }],
    ['carries another id than the annotation', { keyID: 'another' }],
  ])('is voided if a user put a value into its Secret, which %s, and is not written again and again', (_what, change) => {
    const observed = minted({ secret: secretOf(verifierOf(9), change) })
    expect(statesOf(nextStep(observed))).toEqual(['Voided'])
    const voided = withEntry(observed, entryFor(heldKey(), [verifierOf(1, 'Voided')]))
    expect(nextStep(withStatus(voided))).toEqual({ do: 'wait', forMs: 60_000 })
  })

  test('is voided only once while the keyring refuses entries', () => {
    const failures = [failure('SecretWrite', 'QuotaExceeded'), failure('Keyring', 'Unreachable', 500)]
    expect(doing(minted({ failures }))).not.toBe('commit')
  })

  test('is followed by another generation only after a successful trial write of the Secret', () => {
    const voided = entryFor(heldKey(), [verifierOf(1, 'Voided')])
    const refused = withEntry(minted({ holdsCredential: false, failures: [failure('SecretWrite', 'QuotaExceeded')] }), voided)
    expect(nextStep({ ...refused, secret: { state: 'Unknown' } })).toEqual({ do: 'read-secret', level: 'change' })
    expect(nextStep(refused)).toEqual({ do: 'try-secret', level: 'change' })
    expect(nextStep({ ...refused, isSecretWritable: true })).toEqual({ do: 'mint', level: 'change', number: 2 })
  })
})

describe('a value that a deposed leader wrote late', () => {
  const voided = verifierOf(1, 'Voided')
  const next = verifierOf(2, 'Minted')
  const around = withEntry(minted(), entryFor(heldKey(), [voided, next]))
  const remove = { do: 'delete-secret', level: 'change', uid: 'secret-1' }

  test('is deleted if its generation was voided', () => {
    expect(nextStep({ ...around, secret: secretOf(voided) })).toEqual(remove)
  })

  test('is deleted if its generation never became durable', () => {
    expect(nextStep({ ...around, secret: secretOf(verifierOf(9)) })).toEqual(remove)
  })

  test('is deleted before minting if no generation is alive', () => {
    const none = withEntry({ ...around, holdsCredential: false }, entryFor(heldKey(), [voided]))
    expect(nextStep({ ...none, secret: secretOf(voided) })).toEqual(remove)
  })

  test.each([
    ['carries no Credential of ours', { hash: undefined, valueID: '' }],
    ['carries another id than the annotation', { keyID: 'another' }],
  ])('is kept if a user edited it: it %s', (_what, change) => {
    expect(doing({ ...around, secret: secretOf(verifierOf(9), change) })).not.toBe('delete-secret')
  })

  test('is kept beside an issued key', () => {
    const observed = withEntry(around, entryFor(heldKey(), [voided, verifierOf(2)]))
    expect(nextStep(withStatus({ ...observed, secret: secretOf(voided) }))).toBe(DONE)
  })
})

describe('an edit that restricts', () => {
  const suspended = edited(idle(), { state: 'Suspended' })
  const urgent = { do: 'commit', level: 'urgent' }

  test.each<[string, Partial<Observed>]>([
    ['a commit that is under way', { isCommitting: true }],
    ['a write to Redis that is under way', { isProjecting: true, projected: undefined }],
    ['Redis', { storeAvailable: false, projected: undefined, confirmation: undefined }],
    ['the finalizer', { apiKey: { ...suspended.apiKey, metadata: { ...suspended.apiKey.metadata, finalizers: [] } } }],
    ['a read of the Secret', { secret: { state: 'Unknown' }, failures: [failure('SecretRead', 'Forbidden')] }],
    ['other edits, however many there were', { revisionInMs: 1_000 }],
    ['the namespace', { namespaceLimit: 1 }],
    ['a Secret that cannot be written', { failures: [failure('SecretWrite', 'QuotaExceeded')] }],
  ])('is urgent and does not wait for %s', (_what, change) => {
    expect(nextStep({ ...suspended, ...change })).toMatchObject({ ...urgent, entry: { state: 'Suspended', generation: 2 } })
  })

  test('also restricts a key that is not issued yet', () => {
    expect(nextStep(edited(minted({ isCommitting: true }), { state: 'Suspended' }))).toMatchObject(urgent)
  })

  test.each<[string, Parameters<typeof edited>[1]]>([
    ['removed models', { models: ['llama'] }],
    ['earlier ends', { ttlSeconds: 3600 }],
  ])('waits like any other edit if the key has too many edits: %s', (_what, spec) => {
    expect(nextStep({ ...edited(idle(), spec), revisionInMs: 400 })).toEqual({ do: 'wait', forMs: 400 })
    expect(nextStep(edited(idle(), spec))).not.toHaveProperty('isUncounted')
    expect(nextStep(suspended)).toHaveProperty('isUncounted')
  })

  test('waits for the next try of the keyring, and stays in effect on the gateways until then', () => {
    const refused = { ...suspended, projected: undefined, confirmation: undefined, failures: [failure('Keyring', 'Unreachable', 700)] }
    expect(nextStep(withStatus(refused))).toEqual({ do: 'wait', forMs: 700 })
  })
})

describe('an edit that does not restrict', () => {
  const resumed = edited(settledEdit(edited(idle(), { state: 'Suspended' })), { state: 'Active' })

  test('waits for its turn after many edits, so that many edits of one key become few revisions', () => {
    expect(nextStep({ ...resumed, revisionInMs: 400 })).toEqual({ do: 'wait', forMs: 400 })
  })

  test('waits for the finalizer', () => {
    const metadata = { ...resumed.apiKey.metadata, finalizers: [] }
    expect(nextStep({ ...resumed, apiKey: { ...resumed.apiKey, metadata } })).toMatchObject({ do: 'add-finalizer' })
  })

  test('waits for the pause that a keyring has asked for', () => {
    const failures = [failure('Keyring', 'Unreachable', 700)]
    expect(nextStep(withStatus({ ...resumed, failures }))).toEqual({ do: 'wait', forMs: 700 })
  })

  test('of only the display name reaches the entry, so that the status of the new generation follows', () => {
    expect(nextStep(edited(idle(), { displayName: 'bot' }))).toMatchObject({ do: 'commit', level: 'change' })
  })
})

describe('a cache that is older than the keyring', () => {
  /** The keyring has the suspension; the cache of a new leader still shows the manifest before. */
  const stale = (): Observed => {
    const suspended = settledEdit(edited(idle(), { state: 'Suspended' }))
    return { ...suspended, apiKey: idle().apiKey }
  }

  test('causes a live read before any decision, so that no suspension is lifted', () => {
    expect(nextStep(stale())).toEqual({ do: 'read-live', level: 'change' })
  })

  test('is trusted if a live read shows the same older manifest: the cluster was restored from a backup', () => {
    expect(nextStep({ ...stale(), isConfirmedLive: true })).toMatchObject({ do: 'commit', entry: { state: 'Active' } })
  })

  test('causes no status', () => {
    expect(reportStep({ ...stale(), failures: [failure('Other')] })).toBe(DONE)
  })

  test('does not delay a deletion', () => {
    const { apiKey, ...rest } = stale()
    const metadata = { ...apiKey.metadata, deletionTimestamp: DELETED_AT }
    expect(nextStep({ ...rest, apiKey: { ...apiKey, metadata } })).toMatchObject({ do: 'commit', level: 'urgent' })
  })
})

describe('an entry that a newer version wrote', () => {
  const unreadable = (change: Partial<Observed> = {}): Observed =>
    idle({ entry: undefined, verifier: undefined, isUnreadable: true, projected: undefined, confirmation: undefined, ...change })

  test('stays unchanged: the status says so, and no other step follows', () => {
    expect(nextStep(unreadable())).toEqual(WRITE_STATUS)
    expect(nextStep(withStatus(unreadable()))).toEqual({ do: 'wait' })
    for (const secret of ['Unknown', 'Absent', 'Foreign'] as const) {
      expect(['mint', 'commit', 'project', 'delete-secret']).not.toContain(doing(unreadable({ secret: { state: secret } })))
    }
  })

  test.each(['Suspended', 'Revoked'] as const)('is still refused by the gateways if its owner sets %s', (state) => {
    const refused = edited(unreadable(), { state })
    expect(nextStep(refused)).toEqual({ do: 'project', level: 'urgent' })
    expect(nextStep({ ...refused, projected: { revision: 8, forMs: 0 } })).toEqual(WRITE_STATUS)
    expect(doing({ ...refused, storeAvailable: false })).toBe('write-status')
    expect(doing({ ...refused, isProjecting: true })).toBe('write-status')
  })

  test('is told to the gateways once its key works again: they have no record of it, and no operator of this version can write one', () => {
    const absent = unreadable({ projected: { revision: 8, forMs: 0 } })
    expect(nextStep(absent)).toEqual({ do: 'project', level: 'change' })
    expect(nextStep({ ...absent, hasStandIn: true })).toEqual(WRITE_STATUS)
  })

  test('stays in the keyring when the ApiKey is deleted, while the gateways forget the key', () => {
    const deleted = deleting({ entry: undefined, verifier: undefined, isUnreadable: true, projected: undefined, confirmation: undefined })
    expect(nextStep(deleted)).toEqual({ do: 'project', level: 'urgent' })
    expect(doing({ ...deleted, projected: { revision: 8, forMs: 0 }, confirmation: acknowledged() })).toBe('remove-finalizer')
  })
})

describe('a key that is issued', () => {
  test('does not wait for gateways after a restart: its Secret is read in the background, only for the status', () => {
    const restarted = idle({ secret: { state: 'Unknown' }, confirmation: UNKNOWN })
    expect(nextStep(restarted)).toEqual({ do: 'read-secret', level: 'background' })
    expect(nextStep(idle({ confirmation: UNKNOWN }))).toBe(DONE)
  })

  test('waits a second for the gateways after an edit, so that one status reports the result', () => {
    const observed = settledEdit(edited(idle(), { state: 'Suspended' }))
    const slow = { ...observed, confirmation: waiting() }
    expect(nextStep({ ...slow, projected: { revision: 8, forMs: 300 } })).toEqual({ do: 'wait', forMs: 700 })
    expect(nextStep({ ...slow, projected: { revision: 8, forMs: 1_000 } })).toEqual(WRITE_STATUS)
    expect(nextStep(withStatus({ ...slow, projected: { revision: 8, forMs: 1_000 } }))).toEqual({ do: 'wait' })
  })

  test('loses its Secret after a revocation, when the gateways refuse the key or after a second', () => {
    const revoked = settledEdit(edited(idle(), { state: 'Revoked' }))
    const remove = { do: 'delete-secret', level: 'change', uid: 'secret-1' }
    expect(nextStep({ ...revoked, confirmation: waiting() })).toEqual({ do: 'wait', forMs: 1_000 })
    expect(nextStep(revoked)).toEqual(remove)
    expect(nextStep({ ...revoked, confirmation: waiting(), projected: { revision: 8, forMs: 1_000 } })).toEqual(remove)
    expect(nextStep({ ...revoked, secret: { state: 'Unknown' } })).toEqual({ do: 'read-secret', level: 'background' })
    expect(doing({ ...revoked, secret: { state: 'Foreign' } })).not.toBe('delete-secret')
    expect(nextStep(withStatus({ ...revoked, secret: { state: 'Absent' } }))).toBe(DONE)
  })

  test('a key revoked before it was minted is written as absent, so that gateways can acknowledge it', () => {
    const never = fresh({ secret: { state: 'Absent' } }, heldKey({ state: 'Revoked' }))
    expect(nextStep(never)).toEqual({ do: 'project', level: 'change' })
    const proven = { ...never, projected: { revision: 8, forMs: 0 }, confirmation: acknowledged() }
    expect(nextStep(proven)).toEqual(WRITE_STATUS)
    expect(nextStep(withStatus(proven))).toBe(DONE)
  })
})

describe('a state that causes no event', () => {
  test.each<[string, Partial<Observed>, number]>([
    ['a foreign Secret is read again after a minute', { secret: { state: 'Foreign' } }, 60_000],
    ['the Secret of a deleted ApiKey is read again after half a second', { secret: { state: 'LeftOver' } }, 500],
    ['room in the namespace is checked after a minute, without a read of the Secret', { namespaceLimit: 10 }, 60_000],
  ])('%s', (_what, change, forMs) => {
    expect(nextStep(withStatus(fresh(change)))).toEqual({ do: 'wait', forMs })
  })

  test('the status is written before the wait, so that the owner sees the reason of the wait', () => {
    expect(nextStep(fresh({ namespaceLimit: 10 }))).toEqual(WRITE_STATUS)
  })

  test('an outdated refusal of the keyring ends, instead of being checked without a pause', () => {
    const observed = idle({ failures: [failure('Keyring', 'KeyringFull', 0)] })
    expect(nextStep(withStatus(observed))).toBe(DONE)
  })
})

describe('a lost entry', () => {
  const lost = (change: Partial<Observed> = {}): Observed =>
    idle({ entry: undefined, verifier: undefined, projected: undefined, confirmation: undefined, ...change })

  test.each([
    ['whose value is not a Credential of ours', { hash: undefined, valueID: '' }],
    ['whose annotation names another key', { keyID: 'another' }],
    ['whose value has another id, because a user put another value there', { valueID: 'another' }],
  ])('is not restored from a Secret %s', (_what, change) => {
    const changed = lost({ secret: secretOf(verifierFrom(idle()), change) })
    expect(isKeyLost(changed)).toBe(true)
    expect(doing(changed)).toBe('write-status')
    expect(nextStep(withStatus(changed))).toBe(DONE)
  })

  test('is not restored without a status: a user who may write Secrets could choose the value of a key', () => {
    const { status: _none, ...key } = lost().apiKey
    expect(['commit', 'mint']).not.toContain(doing(lost({ apiKey: key })))
  })

  test('waits for the pause that a keyring has asked for', () => {
    expect(doing(lost({ failures: [failure('Keyring', 'Unreachable', 100)] }))).not.toBe('commit')
  })
})

describe('deletion', () => {
  test('revokes first, durable and live at once, in any state of the Secret', () => {
    const { entry } = issued()
    const step = nextStep(deleting({ entry, isCommitting: true, failures: [failure('SecretRead', 'Forbidden')] }))
    expect(step).toMatchObject({ do: 'commit', level: 'urgent', isUncounted: true, entry: { state: 'Revoked', deletedMs: NOW } })
    expect(step).not.toHaveProperty('entry.models')
    expect(statesOf(step)).toEqual(['Revoked'])
    expect(nextStep(deleting({ projected: undefined, confirmation: undefined }))).toEqual({ do: 'project', level: 'urgent' })
  })

  test('voids a value that was never delivered', () => {
    expect(statesOf(nextStep(deleting({ entry: minted().entry })))).toEqual(['Voided'])
  })

  test('waits for the pause that a keyring has asked for', () => {
    const failures = [failure('Keyring', 'Unreachable', 250)]
    expect(nextStep(deleting({ entry: issued().entry, failures }))).toEqual({ do: 'wait', forMs: 250 })
  })

  test('does not end before its tombstone is durable, even after the bound', () => {
    expect(nextStep(deleting({ isCommitting: true, deletingForMs: 60_000 }))).toEqual({ do: 'wait' })
  })

  test.each<[string, Partial<Observed>]>([
    ['a pod that stays silent', { confirmation: waiting() }],
    ['a Redis that does not answer', { storeAvailable: false, projected: undefined, confirmation: undefined }],
  ])('%s delays the deletion for at most its bound, on the clock of this process', (_what, change) => {
    const silent = deleting({ secret: { state: 'Absent' }, ...change })
    const otherClock = { ...silent, now: NOW + 3_600_000 } // the API server's clock is an hour behind
    expect(nextStep({ ...otherClock, deletingForMs: 29_999 })).toEqual({ do: 'wait', forMs: 1 })
    const end = { do: 'remove-finalizer', level: 'change', isConfirmed: false, hadKey: true }
    expect(nextStep({ ...silent, now: NOW - 3_600_000, deletingForMs: 30_000 })).toEqual(end)
  })

  test('of a key that was never minted reads no Secret', () => {
    const never = deleting({ entry: undefined, verifier: undefined })
    expect(nextStep(never)).toEqual({ do: 'remove-finalizer', level: 'change', isConfirmed: true, hadKey: false })
    expect(FINALIZER).toBe('headgate.dev/revoke')
  })
})

describe('levels', () => {
  test('a restriction is urgent, a step for an existing key is a change, and status and reads are in the background', () => {
    const revoked = withState(issued().entry?.verifiers ?? [], verifierFrom(issued()), 'Issued')
    const cases: readonly [Observed, string, string][] = [
      [fresh(), 'mint', 'create'],
      [fresh({}, heldKey({}, { finalizers: [] })), 'add-finalizer', 'create'],
      [minted(), 'write-secret', 'change'],
      [minted({ projected: undefined }), 'project', 'change'],
      [edited(idle(), { state: 'Revoked' }), 'commit', 'urgent'],
      [deleting({ entry: entryFor(heldKey(), revoked) }), 'commit', 'urgent'],
      [issued(), 'write-status', 'background'],
      [idle({ secret: { state: 'Unknown' } }), 'read-secret', 'background'],
    ]
    for (const [observed, step, level] of cases) expect(nextStep(observed)).toMatchObject({ do: step, level })
  })
})

function verifierFrom({ verifier }: Observed): NonNullable<Observed['verifier']> {
  if (!verifier) throw new Error('no verifier')
  return verifier
}

describe('the ApiKey of a revoked key', () => {
  const revoked = (change: Partial<Observed>): Observed =>
    withStatus({ ...edited(idle(), { state: 'Revoked' }), secret: { state: 'Absent' }, ...change })

  test('is deleted at its time, when every gateway has acknowledged the end of the key', () => {
    const settled = (retires: number | undefined): Observed => withStatus({ ...settledEdit(revoked({})), retiresAtMs: retires })
    expect(nextStep(settled(NOW))).toEqual({ do: 'delete-key', level: 'background', ref: refOf(idle().apiKey), uid: uidOf(idle().apiKey) })
    expect(nextStep(settled(NOW + 5_000))).toEqual({ do: 'wait', forMs: 5_000 })
    expect(nextStep(settled(NOW + 90 * 86_400_000))).toEqual({ do: 'wait', forMs: 86_400_000 })
    expect(nextStep(settled(undefined))).toBe(DONE)
    const unknown = { ...settled(NOW), isTimeKnown: false }
    expect(nextStep(unknown), 'by the clock of a leader that has not reached Redis').toEqual({ do: 'wait', forMs: 86_400_000 })
  })

  test('makes room for another one of the account, before that one is told that there is no room', () => {
    const spareKey = { ref: { namespace: 'people', name: 'k-1' }, uid: 'uid-1' }
    const full = fresh({ spareKey, accountLimit: { most: 22, of: 'AllKeys' } })
    expect(nextStep(inAccount(full))).toMatchObject({ do: 'delete-key', ...spareKey })
  })

  test('stays while a gateway may still admit the key', () => {
    const unproven = withStatus({ ...settledEdit(revoked({})), retiresAtMs: NOW, confirmation: waiting() })
    expect(doing(unproven)).toBe('wait')
  })
})
