import { describe as group, expect, test } from 'vitest'
import { confirmed, heldKey, issued, NOW, secretOf, unconfirmed, verifierOf, withStatus } from '../../test/support/observed-key.ts'
import { apiKeyStatus } from '../api/apikey.ts'
import { describe, eventsOf } from './describe.ts'
import type { Observed } from './observed.ts'
import { lineOf } from './policy.ts'

type Status = ReturnType<typeof describe>
const reason = ({ conditions }: Status, type: string): string | undefined => {
  const found = conditions?.find((condition) => condition.type === type)
  return found && `${found.status} ${found.reason}`
}
const message = ({ conditions }: Status, type: string): string => conditions?.find((condition) => condition.type === type)?.message ?? ''
const events = (observed: Observed): string[] => eventsOf(observed, describe(observed)).map((event) => event.reason)
const during = (state: 'Suspended' | 'Revoked' | 'Active', observed = issued()): Observed => {
  const key = { ...observed.apiKey, spec: { ...observed.apiKey.spec, state } }
  return { ...observed, apiKey: key, line: observed.line && lineOf(key, observed.line.ver, 7) }
}

group('status of an ApiKey', () => {
  test('a key that works says so, in a form that the API server accepts', () => {
    const observed = issued(heldKey({ models: ['llama-*', 'qwen'], ttlSeconds: 86_400 * 30 }))
    const status = describe(observed)
    const [verifier] = observed.line?.ver ?? []
    expect(status).toMatchObject({
      observedGeneration: 1,
      keyID: verifier?.id,
      prefix: verifier?.prefix,
      secretRef: { name: 'bot' },
      verifiers: [{ id: verifier?.id, createTime: '2026-01-01T23:59:00Z' }],
      expirationTime: '2026-01-31T00:00:00Z',
      programmed: { revision: 7, ready: 2, total: 2 },
      summary: { programmed: '2/2', models: 'llama-*,qwen' },
    })
    expect(status.conditions?.map(({ type, status: is, reason: why }) => `${type} ${is} ${why}`)).toEqual([
      'Ready True Ready',
      'Accepted True Accepted',
      'SecretIssued True Issued',
      'Programmed True Programmed',
    ])
    expect(apiKeyStatus.safeParse(status).success).toBe(true)
    expect(JSON.stringify(status)).not.toContain(verifier?.h)
  })

  test('every condition carries the generation that it was judged by', () => {
    const generations = describe(issued(heldKey({}, { generation: 4 }))).conditions?.map(({ observedGeneration }) => observedGeneration)
    expect(new Set(generations)).toEqual(new Set([4]))
  })

  test.each<[string, Observed, string, string]>([
    ['revoked before all else', { ...during('Revoked'), now: NOW }, 'Ready', 'False Revoked'],
    ['suspended', during('Suspended'), 'Ready', 'False Suspended'],
    ['suspended, and says so in a condition of its own', during('Suspended'), 'Suspended', 'True Suspended'],
    ['expired', { ...issued(heldKey({ ttlSeconds: 60 })), now: NOW + 60_000 }, 'Ready', 'False Expired'],
    [
      'expired, and says so in a condition of its own',
      { ...issued(heldKey({ ttlSeconds: 60 })), now: NOW + 60_000 },
      'Expired',
      'True Expired',
    ],
    ['not delivered', { ...issued(heldKey(), verifierOf(1, 'Minted')), secret: { state: 'Absent' } }, 'Ready', 'False SecretNotIssued'],
    [
      'not made since the store is away',
      { ...issued(), line: undefined, secret: { state: 'Absent' }, storeAvailable: false },
      'SecretIssued',
      'False WaitingForStore',
    ],
    ['held up by a foreign Secret', { ...issued(), line: undefined, secret: { state: 'Foreign' } }, 'SecretIssued', 'False SecretConflict'],
    [
      'held up by a foreign Secret: a person must act',
      { ...issued(), line: undefined, secret: { state: 'Foreign' } },
      'Stalled',
      'True SecretConflict',
    ],
    ['without its Secret', { ...issued(), secret: { state: 'Absent' } }, 'SecretIssued', 'False SecretMissing'],
    ['without its Secret, and works', { ...issued(), secret: { state: 'Absent' } }, 'Ready', 'True Ready'],
    ['with another value in its Secret', { ...issued(), secret: secretOf(verifierOf(2)) }, 'SecretIssued', 'False SecretModified'],
    ['with another value in its Secret, and works', { ...issued(), secret: secretOf(verifierOf(2)) }, 'Ready', 'True Ready'],
    ['not known to one pod', { ...issued(), confirmation: unconfirmed(1_000) }, 'Programmed', 'False Unconfirmed'],
    ['not known to one pod and never was', { ...issued(), confirmation: unconfirmed(1_000) }, 'Ready', 'False NotProgrammed'],
    ['served by nobody', { ...issued(), confirmation: confirmed(7, 0) }, 'Programmed', 'False NoGateways'],
    ['of unknown whereabouts', { ...issued(), confirmation: { ...confirmed(), known: false } }, 'Programmed', 'Unknown StoreUnreachable'],
    ['not told yet', { ...issued(), projectedRev: undefined, confirmation: undefined }, 'Programmed', 'False Pending'],
  ])('a key that is %s', (_what, observed, type, expected) => {
    expect(reason(describe(observed), type)).toBe(expected)
  })

  test('a lost key keeps its id in the status, since that is what tells that there was one', () => {
    const before = withStatus(issued())
    const status = describe({ ...before, line: undefined, secret: { state: 'Absent' } })
    expect(reason(status, 'Ready')).toBe('False KeyLost')
    expect(reason(status, 'Stalled')).toBe('True KeyLost')
    expect(status.keyID).toBe(before.apiKey.status?.keyID)
  })

  test('the message names the pods that are missing, ten at most', () => {
    const missing = Array.from({ length: 12 }, (_, index) => `gateway-${index}`)
    const status = describe({ ...issued(), confirmation: { ...confirmed(7, 12), ready: 0, missing } })
    expect(message(status, 'Programmed')).toMatch(/^0 of 12 gateway pods .* gateway-9, …\.$/)
  })

  test('pods that come or go later rewrite nothing: what was programmed once stays so', () => {
    const before = withStatus(issued())
    const after = describe({ ...before, confirmation: unconfirmed(1_000), projectedRev: 9 })
    expect(after).toEqual(before.apiKey.status)
  })

  test('an edit shows in Programmed and does not make Ready flap', () => {
    const before = withStatus(issued())
    const key = { ...before.apiKey, metadata: { ...before.apiKey.metadata, generation: 2 } }
    const after = describe({ ...before, apiKey: key, projectedRev: 8, confirmation: unconfirmed(1_000, 8) })
    expect(reason(after, 'Programmed')).toBe('False Unconfirmed')
    expect(after.programmed).toEqual({ revision: 8, ready: 2, total: 3 })
    expect(reason(after, 'Ready')).toBe('True Ready')
  })

  test('a restart while the store is away does not pretend to know', () => {
    const before = withStatus(issued())
    const after = describe({ ...before, projectedRev: undefined, confirmation: undefined, storeAvailable: false })
    expect(reason(after, 'Programmed')).toBe('Unknown StoreUnreachable')
    expect(reason(after, 'Ready')).toBe('True Ready')
  })

  test('after a revocation the status does not claim that a Secret holds the key', () => {
    const gone: Observed = { ...during('Revoked'), secret: { state: 'Absent' } }
    expect(message(describe(gone), 'SecretIssued')).toBe('The key was issued; Secret bot went with its revocation.')
    expect(describe(gone).secretRef).toBeUndefined()
    const never: Observed = { ...gone, line: undefined }
    expect(message(describe(never), 'SecretIssued')).toBe('spec.state is Revoked, so no key is made.')
  })

  test('a voided generation is not shown as one that gateways accept', () => {
    const key = heldKey()
    const [voided, live] = [verifierOf(1, 'Revoked'), verifierOf(2)]
    const status = describe({ ...issued(key, live), line: lineOf(key, [voided, live], 7) })
    expect(status.verifiers?.map(({ id }) => id)).toEqual([live.id])
  })

  test('a long allow-list is shortened for the column', () => {
    const models = Array.from({ length: 30 }, (_, index) => `model-${index}`)
    expect(describe(issued(heldKey({ models }))).summary?.models).toMatch(/^.{59}…$/)
    expect(describe(issued()).summary?.models).toBe('*')
  })
})

group('Events of an ApiKey', () => {
  const settled = (observed: Observed, change: Partial<Observed>): Observed => ({ ...withStatus(observed), ...change })

  test('the first delivery is told with the prefix, not the value', () => {
    const [event, ...others] = eventsOf(issued(), describe(issued()))
    expect(others).toEqual([])
    expect(event).toMatchObject({ reason: 'Issued', note: expect.stringMatching(/^The key sk-hg1..….{4} stands in Secret bot\.$/) })
  })

  test('nothing changed, nothing told', () => {
    expect(events(withStatus(issued()))).toEqual([])
  })

  test('a delivery before some pod knew the key names it', () => {
    const told = eventsOf({ ...issued(), confirmation: unconfirmed(5_000) }, describe({ ...issued(), confirmation: unconfirmed(5_000) }))
    expect(told.map((event) => event.reason)).toEqual(['Issued', 'Unconfirmed'])
    expect(told[1]?.note).toContain('gateway-2')
  })

  test.each<[string, Partial<Observed>, string[]]>([
    ['a deleted Secret', { secret: { state: 'Absent' } }, ['SecretMissing']],
    ['an edited value', { secret: secretOf(verifierOf(2)) }, ['SecretModified']],
    ['a lost key', { line: undefined, secret: { state: 'Absent' } }, ['KeyLost']],
  ])('%s is told once', (_what, change, expected) => {
    const changed = settled(issued(), change)
    expect(events(changed).filter((event) => expected.includes(event))).toEqual(expected)
    expect(events(withStatus(changed))).toEqual([])
  })

  test('a value that is put back is no new issue', () => {
    const gone = settled(issued(), { secret: { state: 'Absent' } })
    expect(events({ ...withStatus(gone), secret: issued().secret })).not.toContain('Issued')
  })

  test('suspension and resumption are told', () => {
    const working = withStatus(issued())
    const suspended = during('Suspended', working)
    expect(events(suspended)).toEqual(['Suspended'])
    expect(events(during('Active', withStatus(suspended)))).toEqual(['Resumed'])
  })

  test('expiry is told', () => {
    const working = withStatus(issued(heldKey({ ttlSeconds: 86_400 + 60 })))
    expect(events(working)).toEqual([])
    expect(events({ ...working, now: NOW + 61_000 })).toEqual(['Expired'])
  })

  group('revocation', () => {
    const working = withStatus(issued())
    const revoked = (change: Partial<Observed>): Observed => {
      const observed = during('Revoked', working)
      const metadata = { ...observed.apiKey.metadata, generation: 2 }
      return { ...observed, apiKey: { ...observed.apiKey, metadata }, projectedRev: 8, secret: { state: 'Absent' }, ...change }
    }

    test('is told as proven when every pod refuses the key, or none serves', () => {
      expect(events(revoked({ confirmation: confirmed(8) }))).toEqual(['Revoked'])
      expect(events(revoked({ confirmation: confirmed(8, 0) }))).toEqual(['Revoked'])
    })

    test.each<[string, Partial<Observed>]>([
      ['a pod is silent', { confirmation: unconfirmed(1_000, 8) }],
      ['the store is away', { confirmation: { ...confirmed(8), known: false } }],
      ['the store has not taken it', { projectedRev: undefined, confirmation: undefined, storeAvailable: false }],
    ])('is told as unconfirmed while %s, and as proven when that is over', (_what, change) => {
      const first = revoked(change)
      expect(events(first)).toEqual(['RevocationUnconfirmed'])
      const later: Observed = { ...withStatus(first), projectedRev: 8, confirmation: confirmed(8), storeAvailable: true }
      expect(events(later)).toEqual(['Revoked'])
      expect(events(withStatus(later))).toEqual([])
    })
  })
})
