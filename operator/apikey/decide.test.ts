import { describe, expect, test } from 'vitest'
import { confirmed, heldKey, issued, NOW, secretOf, unconfirmed, verifierOf, withStatus } from '../../test/support/observed-key.ts'
import { decide, deletedLine, FINALIZER, isKeyLost } from './decide.ts'
import type { Observed } from './observed.ts'
import { lineOf } from './policy.ts'

const DELETED_AT = '2026-01-02T00:00:00Z' // = NOW
const DONE = undefined

/** A key that is minted and live, and stands in no Secret yet. */
function minted(change: Partial<Observed> = {}): Observed {
  const verifier = verifierOf(1, 'Minted')
  return { ...issued(heldKey(), verifier), secret: { state: 'Absent' }, holdsCredential: true, ...change }
}

/** An issued key that is being deleted, with the steps up to `line` done. */
function deleting(change: Partial<Observed> = {}): Observed {
  const key = heldKey({}, { deletionTimestamp: DELETED_AT })
  const observed = issued(key)
  return { ...observed, line: observed.line && deletedLine(observed.line, NOW), secret: { state: 'Unknown' }, ...change }
}

describe('decide: the order of the promises', () => {
  test('nothing is minted before the finalizer', () => {
    const key = heldKey({}, { finalizers: ['somebody/else'] })
    expect(decide({ ...issued(key), line: undefined, secret: { state: 'Absent' } })).toEqual({ do: 'add-finalizer' })
  })

  test('nothing is minted before the Secret was looked at', () => {
    expect(decide({ ...issued(), line: undefined, secret: { state: 'Unknown' } })).toEqual({ do: 'look-at-secret' })
  })

  test('with a free name and a store that answers the first generation is minted, and after a voided one the next', () => {
    const free: Partial<Observed> = { secret: { state: 'Absent' }, confirmation: undefined }
    expect(decide({ ...issued(), ...free, line: undefined })).toEqual({ do: 'mint', n: 1 })
    const voided = lineOf(heldKey(), [verifierOf(1, 'Revoked'), verifierOf(2, 'Revoked')], 7)
    expect(decide({ ...issued(), ...free, line: voided })).toEqual({ do: 'mint', n: 3 })
  })

  test.each<[string, Partial<Observed>]>([
    ['the store does not answer', { storeAvailable: false }],
    ['the name is taken', { secret: { state: 'Foreign' } }],
    ['the key is revoked', { apiKey: heldKey({ state: 'Revoked' }) }],
    ['the key was issued before and is lost', { apiKey: { ...heldKey(), status: { keyID: 'known' } } }],
  ])('nothing is minted when %s', (_what, change) => {
    const before: Observed = { ...issued(), line: undefined, secret: { state: 'Absent' }, projectedRev: undefined, confirmation: undefined }
    expect(decide({ ...before, ...change })?.do).not.toBe('mint')
  })

  test('what is durable goes to the gateways before anybody can read it', () => {
    expect(decide(minted({ projectedRev: undefined, confirmation: undefined }))).toEqual({ do: 'project' })
    expect(decide(minted({ confirmation: undefined }))).toEqual({ do: 'confirm', timeoutMs: 5_000 })
  })

  test('the Secret is written when every pod has the key, or none serves, or one was silent for five seconds', () => {
    const observed = minted()
    const write = { do: 'write-secret', verifier: observed.line?.ver[0] }
    expect(decide(observed)).toEqual(write)
    expect(decide({ ...observed, confirmation: confirmed(7, 0) })).toEqual(write)
    expect(decide({ ...observed, confirmation: unconfirmed(4_999) })).toEqual({ do: 'confirm', timeoutMs: 5_000 })
    expect(decide({ ...observed, confirmation: unconfirmed(5_000) })).toEqual(write)
  })

  test('an acknowledgement of an older record does not count', () => {
    expect(decide(minted({ projectedRev: 8, confirmation: confirmed(7) }))).toEqual({ do: 'confirm', timeoutMs: 5_000 })
  })
})

describe('decide: a minted key after a crash', () => {
  const states = (observed: Observed): string[] | undefined => {
    const step = decide(observed)
    return step && 'line' in step ? step.line.ver.map(({ state }) => state) : undefined
  }

  test('whose value stands in the Secret is issued', () => {
    const observed = minted({ holdsCredential: false })
    const [verifier] = observed.line?.ver ?? []
    if (!verifier) throw new Error('no verifier')
    const delivered: Observed = { ...observed, secret: secretOf(verifier) }
    expect(decide(delivered)?.do).toBe('mark-issued')
    expect(states(delivered)).toEqual(['Issued'])
  })

  test('whose value nobody can know is voided', () => {
    const lost = minted({ holdsCredential: false })
    expect(decide(lost)?.do).toBe('settle')
    expect(states(lost)).toEqual(['Revoked'])
  })

  test('whose delivery the status tells of is issued, although its Secret was deleted before the keyring knew', () => {
    const observed = minted({ holdsCredential: false })
    const id = observed.line?.ver[0]?.id ?? ''
    const status = { keyID: id, verifiers: [{ id, createTime: '2026-01-01T00:00:00Z' }] }
    expect(states({ ...observed, apiKey: { ...observed.apiKey, status } })).toEqual(['Issued'])
  })

  test('waits beside a foreign Secret while its value is still held', () => {
    expect(decide(minted({ secret: { state: 'Foreign' } }))).toBe(DONE)
  })
})

describe('decide: a value that a deposed leader wrote late', () => {
  const stale = verifierOf(1, 'Revoked')
  const fresh = verifierOf(2, 'Minted')
  const around: Observed = { ...minted(), line: lineOf(heldKey(), [stale, fresh], 7) }

  test('of a voided generation makes room for the living one', () => {
    expect(decide({ ...around, secret: secretOf(stale) })).toEqual({ do: 'delete-secret', uid: 'secret-1' })
  })

  test('of a generation that never became durable makes room too', () => {
    expect(decide({ ...around, secret: secretOf(verifierOf(9)) })).toEqual({ do: 'delete-secret', uid: 'secret-1' })
  })

  test('makes room for minting when no generation lives', () => {
    const voided: Observed = { ...around, line: lineOf(heldKey(), [stale], 7), holdsCredential: false }
    expect(decide({ ...voided, secret: secretOf(stale) })).toEqual({ do: 'delete-secret', uid: 'secret-1' })
  })

  test.each<[string, Parameters<typeof Object.assign>[1]]>([
    ['is none of ours', { hash: undefined, valueID: '' }],
    ['carries another id than the annotation', { keyID: 'another' }],
  ])('an edit that %s stays', (_what, change) => {
    const edited = { ...secretOf(verifierOf(9)), ...change }
    expect(decide({ ...around, secret: edited })?.do).not.toBe('delete-secret')
  })

  test('beside an issued key nothing is taken away', () => {
    const line = lineOf(heldKey(), [stale, verifierOf(2)], 7)
    expect(decide(withStatus({ ...around, line, secret: secretOf(stale) }))).toBe(DONE)
  })
})

describe('decide: a key that is issued', () => {
  test('needs nothing once its status says so: a restart looks at the Secret and waits for nobody', () => {
    const restarted: Observed = { ...withStatus(issued()), secret: { state: 'Unknown' }, confirmation: undefined }
    expect(decide(restarted)).toEqual({ do: 'look-at-secret' })
    expect(decide({ ...restarted, secret: issued().secret })).toBe(DONE)
  })

  test('a suspension does not wait for a look at the Secret', () => {
    const observed = withStatus(issued())
    const suspended = {
      ...observed.apiKey,
      spec: { state: 'Suspended' as const },
      metadata: { ...observed.apiKey.metadata, generation: 2 },
    }
    const step = decide({ ...observed, apiKey: suspended, secret: { state: 'Unknown' } })
    expect(step).toMatchObject({ do: 'settle', line: { st: 'Suspended', gen: 2 } })
  })

  test('an edit waits for the gateways one second at most before the status is written', () => {
    const observed = issued()
    expect(decide({ ...observed, confirmation: undefined })).toEqual({ do: 'confirm', timeoutMs: 1_000 })
    expect(decide({ ...observed, confirmation: unconfirmed(1_000) })).toBe(DONE)
  })

  test('what is not known to be in the store is written again, when the store answers', () => {
    expect(decide({ ...issued(), projectedRev: undefined })).toEqual({ do: 'project' })
    expect(decide({ ...issued(), projectedRev: undefined, storeAvailable: false })).toBe(DONE)
  })

  test('a Secret with outdated entries is refreshed, unless it is not ours', () => {
    const observed = issued()
    if (observed.secret.state !== 'Ours') throw new Error('not ours')
    expect(decide({ ...observed, secret: { ...observed.secret, current: false } })).toEqual({ do: 'refresh-secret' })
    expect(decide({ ...observed, secret: { state: 'Foreign' } })).toBe(DONE)
  })

  test('a deleted Secret is not written again', () => {
    expect(decide({ ...issued(), secret: { state: 'Absent' } })).toBe(DONE)
  })

  test('Revoked takes the Secret when the gateways refuse the key, or after a second', () => {
    const key = heldKey({ state: 'Revoked' })
    const observed = issued(key)
    expect(decide({ ...observed, confirmation: unconfirmed(0) })).toEqual({ do: 'confirm', timeoutMs: 1_000 })
    expect(decide(observed)).toEqual({ do: 'delete-secret', uid: 'secret-1' })
    expect(decide({ ...observed, confirmation: unconfirmed(1_000) })).toEqual({ do: 'delete-secret', uid: 'secret-1' })
    expect(decide({ ...observed, secret: { state: 'Foreign' } })).toBe(DONE)
    expect(decide({ ...withStatus(observed), secret: { state: 'Absent' }, confirmation: undefined })).toBe(DONE)
  })
})

describe('decide: a lost keyring', () => {
  function lost(change: Partial<Observed> = {}): Observed {
    const observed = withStatus(issued())
    return { ...observed, line: undefined, projectedRev: undefined, confirmation: undefined, ...change }
  }

  test('is restored from the Secret whose value carries the id that the status names', () => {
    const observed = lost()
    const step = decide(observed)
    expect(step).toMatchObject({
      do: 'settle',
      restored: true,
      line: { deleted: null, ver: [{ id: observed.apiKey.status?.keyID, n: 1, state: 'Issued' }] },
    })
    expect(isKeyLost(observed)).toBe(false)
  })

  test.each<[string, Parameters<typeof Object.assign>[1]]>([
    ['whose value is none of ours', { hash: undefined, valueID: '' }],
    ['whose annotation names another key', { keyID: 'another' }],
    ['whose value has another id: somebody put their own there', { valueID: 'another' }],
  ])('is not restored from a Secret %s', (_what, change) => {
    const observed = lost()
    const changed: Observed = { ...observed, secret: { ...observed.secret, ...change } }
    expect(isKeyLost(changed)).toBe(true)
    expect(decide(changed)).toBe(DONE)
  })

  test('is not restored without a status: who may write Secrets could choose the value of a key', () => {
    const { status: _gone, ...key } = lost().apiKey
    const step = decide(lost({ apiKey: key }))
    expect(step?.do).not.toBe('settle')
  })
})

describe('decide: deletion', () => {
  test('without our finalizer it is none of our business', () => {
    expect(decide({ ...deleting(), apiKey: heldKey({}, { finalizers: ['somebody/else'], deletionTimestamp: DELETED_AT }) })).toBe(DONE)
  })

  test('the revocation is durable and live before anything else, whatever the Secret', () => {
    const step = decide({ ...deleting(), line: issued().line })
    expect(step).toMatchObject({ do: 'settle', line: { st: 'Revoked', deleted: NOW, ver: [{ state: 'Revoked' }] } })
    expect(decide(deleting({ projectedRev: undefined }))).toEqual({ do: 'project' })
  })

  test('then it is proven, then the Secret goes, and the finalizer last', () => {
    expect(decide(deleting({ confirmation: undefined }))).toEqual({ do: 'confirm', timeoutMs: 1_000 })
    expect(decide(deleting())).toEqual({ do: 'look-at-secret' })
    expect(decide(deleting({ secret: issued().secret }))).toEqual({ do: 'delete-secret', uid: 'secret-1' })
    const end = { do: 'remove-finalizer', confirmed: true, hadKey: true }
    expect(decide(deleting({ secret: { state: 'Absent' } }))).toEqual(end)
    expect(decide(deleting({ secret: { state: 'Foreign' } }))).toEqual(end)
    expect(decide(deleting({ secret: { state: 'Absent' }, confirmation: confirmed(7, 0) }))).toEqual(end)
  })

  test('a pod that stays silent holds it up for its bound and no longer', () => {
    const silent = deleting({ confirmation: unconfirmed(1_000), secret: { state: 'Absent' } })
    expect(decide({ ...silent, now: NOW + 29_999 })).toBe(DONE)
    expect(decide({ ...silent, now: NOW + 30_000 })).toEqual({ do: 'remove-finalizer', confirmed: false, hadKey: true })
  })

  test('a store that is down holds it up for its bound and no longer', () => {
    const down = deleting({
      storeAvailable: false,
      projectedRev: undefined,
      secret: { state: 'Absent' },
      confirmation: { ...confirmed(0), known: false },
    })
    expect(decide({ ...down, now: NOW + 29_999 })).toBe(DONE)
    expect(decide({ ...down, now: NOW + 30_000 })).toEqual({ do: 'remove-finalizer', confirmed: false, hadKey: true })
  })

  test('a wait never goes beyond the bound', () => {
    expect(decide(deleting({ confirmation: undefined, now: NOW + 29_700 }))).toEqual({ do: 'confirm', timeoutMs: 300 })
    expect(decide(deleting({ confirmation: undefined, now: NOW + 60_000 }))).toEqual({ do: 'confirm', timeoutMs: 0 })
  })

  test('a key that was never made leaves without a word', () => {
    const never = deleting({ line: undefined, secret: { state: 'Absent' } })
    expect(decide(never)).toEqual({ do: 'remove-finalizer', confirmed: true, hadKey: false })
    expect(FINALIZER).toBe('headgate.dev/revoke')
  })
})
