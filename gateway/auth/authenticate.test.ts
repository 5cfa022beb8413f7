import { describe, expect, test } from 'vitest'
import { tombstoneOf } from '#contract/records/tombstone.ts'
import { issuedKey, type IssuedKey, keyringEntry } from '../../test/support/records.ts'
import { errorMessage, GatewayError } from '../errors.ts'
import { hashCredential, mintCredential, proofOf } from '#contract/values/credential.ts'
import { encodeKeyRecord, type KeyRecord } from '#contract/records/key-record.ts'
import { type Caller, callersOf, KeyTable } from './key-table.ts'
import { authenticate, reasonToEnd, type AuthDeps } from './authenticate.ts'
import type { RefusedKey } from './refusal-log.ts'

const NOW = 1_000_000
const UNKNOWN = 'Authentication Error: unknown API key; it was deleted, or it belongs to another gateway'

function gate(keys: readonly KeyRecord[], change: Partial<AuthDeps['projection']> = {}) {
  const table = new KeyTable()
  const refused: string[] = []
  for (const record of keys) table.put(record.uid, encodeKeyRecord(record))
  const deps = {
    keys: table,
    accounts: { link: (caller: Caller) => caller },
    projection: { loaded: true, unreadForMs: 0, lacksKeys: false, ...change },
    now: () => NOW,
    apiKeyHeader: true,
    refusals: { refused: ({ namespace, name }: RefusedKey, keyID: string) => void refused.push(`${namespace}/${name} ${keyID}`) },
  }
  return {
    refused,
    table,
    asks: (credential?: string) => {
      const headers = credential === undefined ? {} : { authorization: `Bearer ${credential}` }
      return authenticate({ headers, rawHeaders: [] }, deps)
    },
    /** Of a call that was admitted with this record. */
    ends: (record: KeyRecord) => reasonToEnd([...callersOf(record)][0]![1], deps),
  }
}

/** Row of the catalogue and message, as a client sees them. */
function refusal(answer: unknown): string {
  if (!(answer instanceof GatewayError)) throw new Error('was let in')
  return `${answer.row.number} ${answer.row.status.openai} ${errorMessage(answer.row, answer.params, 'openai')}`
}

function withVerifier({ credential, record }: IssuedKey, change: object): IssuedKey {
  return { credential, record: { ...record, verifiers: record.verifiers.map((verifier) => ({ ...verifier, ...change })) } }
}

describe('the log of refused keys', () => {
  test('gets the ApiKey of a known value that does not work, also of a deleted one, and nothing of other requests', () => {
    const [works, suspended, deleted] = [issuedKey('works'), issuedKey('suspended', { state: 'Suspended' }), issuedKey('deleted')]
    const { asks, refused, table } = gate([works.record, suspended.record])
    table.override([tombstoneOf(keyringEntry(deleted.record), NOW)])
    for (const { credential } of [works, suspended, deleted, issuedKey('unknown')]) asks(credential)
    asks()
    asks('mistyped')
    expect(refused).toEqual(
      [suspended, deleted].map(({ record: { namespace, name, verifiers } }) => `${namespace}/${name} ${verifiers[0]!.id}`),
    )
  })
})

describe('who holds a key', () => {
  test('is let in as that key, and named by its public id', () => {
    const { credential, record } = issuedKey('a')
    expect(gate([record]).asks(credential)).toMatchObject({
      record,
      hash: record.verifiers[0]!.hash,
      keyID: record.verifiers[0]!.id,
      expiresAt: Infinity,
    })
  })

  test('is let in with a key that another gateway issued', () => {
    const { record } = issuedKey('a')
    const imported = { ...record, verifiers: [{ id: 'imported', hash: hashCredential('sk-1234567890abcdefghij'), expiresMs: null }] }
    expect(gate([imported]).asks('sk-1234567890abcdefghij')).toMatchObject({ keyID: 'imported' })
  })

  test.each(['sk-1234', 'sk-my.own/key!#', 'sk-1234567890abcdefghijAB', 'no-prefix-at-all', `sk-${'x'.repeat(253)}`])(
    'is admitted with a value that a person chose: %s',
    (value) => {
      const { record } = issuedKey('a')
      const imported = { ...record, verifiers: [{ id: 'imported', hash: hashCredential(value), expiresMs: null }] }
      expect(gate([imported]).asks(value)).toMatchObject({ keyID: 'imported' })
      expect(refusal(gate([imported]).asks(`${value.slice(0, -1)}_`))).toMatch(value.startsWith('sk-') ? /^3 401/ : /^2 401/)
    },
  )

  test.each([
    ['revoked', { state: 'Revoked' as const }],
    ['suspended', { state: 'Suspended' as const }],
    ['expired', { expiresMs: NOW }],
  ])('reads that it is %s', (state, change) => {
    const { credential, record } = issuedKey('a', change)
    expect(refusal(gate([record]).asks(credential))).toMatch(`4 401 Authentication Error: API key ${state}; `)
  })

  test('is let in until the very millisecond of expiry, by the clock of the pod', () => {
    const { credential, record } = issuedKey('a', { expiresMs: NOW + 1 })
    expect(gate([record]).asks(credential)).toMatchObject({ record })
  })

  test('reads that a rotated value has expired while the key itself lives on', () => {
    const { credential, record } = withVerifier(issuedKey('a'), { expiresMs: NOW - 1 })
    expect(refusal(gate([record]).asks(credential))).toMatch(/^4 401 .* API key expired; /)
  })
})

describe('who holds a value whose hash several ApiKeys name with a proof', () => {
  const VALUE = 'sk-1234567890abcdefghij'
  /** An ApiKey that names the hash of VALUE. @param of the value, namespace and name that its proof was made from */
  const claim = (uid: string, of: { value?: string; namespace?: string } = {}, change: Partial<KeyRecord> = {}): KeyRecord => {
    const { record } = issuedKey(uid, { namespace: uid, name: 'bot', ...change })
    const proof = proofOf(of.value ?? VALUE, { namespace: of.namespace ?? uid, name: 'bot' })
    return { ...record, verifiers: [{ id: uid, hash: hashCredential(VALUE), expiresMs: null, proof, createdMs: 1 }] }
  }
  const UNPROVEN = '3 401 Authentication Error: unknown API key; an ApiKey names its SHA-256, but source.hash.proof of that ApiKey was made'

  test('is let in as the ApiKey whose proof was made from the value, in any order of the claims', () => {
    const guessed = claim('evil', { value: 'sk-another' }, {})
    const copied = claim('eve', { namespace: 'owner' })
    for (const order of [
      [guessed, copied, claim('owner')],
      [claim('owner'), copied, guessed],
    ])
      expect(gate(order).asks(VALUE)).toMatchObject({ keyID: 'owner' })
  })

  test('is let in as nobody while no proof was made from the value, and reads whose fault it is', () => {
    expect(refusal(gate([claim('evil', { value: 'sk-another' }), claim('eve', { namespace: 'owner' })]).asks(VALUE))).toContain(UNPROVEN)
    expect(refusal(gate([claim('evil', { value: 'sk-another' })], { lacksKeys: true }).asks(VALUE))).toMatch(/^24 503/)
  })

  test('is let in as the ApiKey that alone has the hash, unless another one proves that it knows the value', () => {
    const plain = { ...claim('plain'), verifiers: [{ id: 'plain', hash: hashCredential(VALUE), expiresMs: null }] }
    expect(gate([plain, claim('evil', { value: 'sk-another' })]).asks(VALUE)).toMatchObject({ keyID: 'plain' })
    expect(gate([plain, claim('owner')]).asks(VALUE)).toMatchObject({ keyID: 'owner' })
  })

  test('is refused for the first of several owners, even if a later one is Active', () => {
    const first = claim('first', {}, { state: 'Revoked' })
    const second = { ...claim('second'), verifiers: claim('second').verifiers.map((one) => ({ ...one, createdMs: 2 })) }
    expect(refusal(gate([second, first]).asks(VALUE))).toMatch(/^4 401 .* API key revoked; /)
    expect(gate([second]).asks(VALUE)).toMatchObject({ keyID: 'second' })
  })

  test('loses a running call when its own ApiKey no longer names the hash, whatever others name', () => {
    const owner = claim('owner')
    expect(gate([owner, claim('evil', { value: 'sk-another' })]).ends(owner)).toBeUndefined()
    expect(gate([claim('evil', { value: 'sk-another' })]).ends(owner)).toBeInstanceOf(GatewayError)
    expect(refusal(gate([{ ...owner, state: 'Suspended' }]).ends(owner))).toMatch(/^4 401/)
  })
})

describe('any other client', () => {
  test('with a value that is too long for any key gets row 2, and the value is not even hashed', () => {
    let lookups = 0
    const deps = {
      keys: { find: () => void (lookups += 1), current: () => undefined, isClaimed: () => false, tombstone: () => undefined },
      accounts: { link: (caller: Caller) => caller },
      projection: { loaded: true, unreadForMs: 0, lacksKeys: false },
      now: () => NOW,
      apiKeyHeader: true,
    }
    const asks = (value: string) => authenticate({ headers: { authorization: `Bearer ${value}` }, rawHeaders: [] }, deps)
    expect(refusal(asks(`sk-${'x'.repeat(254)}`))).toMatch(/^2 401/)
    expect(lookups).toBe(0)
    expect(refusal(asks(`sk-${'x'.repeat(253)}`))).toMatch(/^3 401/)
    expect(lookups).toBe(1)
  })

  test('with an unknown key gets row 3, whether such a key ever existed or not', () => {
    expect(refusal(gate([]).asks(mintCredential().credential))).toBe(`3 401 ${UNKNOWN}`)
    expect(refusal(gate([]).asks('sk-1234567890abcdefghij'))).toBe(`3 401 ${UNKNOWN}`)
  })

  test('does not learn the state of a key from its id alone', () => {
    const { record } = issuedKey('a', { state: 'Suspended' })
    const [verifier] = record.verifiers
    const { credential } = mintCredential()
    expect(credential).not.toContain(verifier!.id)
    expect(refusal(gate([record]).asks(credential))).toMatch(/^3 401/)
  })
})

describe('a pod that may lack keys', () => {
  test('answers 503 for an unknown key of ours once the log was unread for 5 s', () => {
    const { credential } = mintCredential()
    expect(refusal(gate([], { unreadForMs: 4_999 }).asks(credential))).toMatch(/^3 401/)
    expect(refusal(gate([], { unreadForMs: 5_000 }).asks(credential))).toMatch(/^24 503/)
  })

  test('answers 503 for every unknown key while there are keys whose record it cannot read', () => {
    expect(refusal(gate([], { lacksKeys: true }).asks(mintCredential().credential))).toMatch(/^24 503/)
    expect(refusal(gate([], { lacksKeys: true }).asks('sk-1234567890abcdefghij'))).toMatch(/^24 503/)
    expect(refusal(gate([], { lacksKeys: true }).asks('sk-hg1'))).toMatch(/^2 401/)
  })

  test('still distinguishes a typo from an unknown key', () => {
    expect(refusal(gate([], { loaded: false, unreadForMs: 60_000 }).asks('sk-hg1'))).toMatch(/^2 401/)
  })

  test('answers 401 for an unknown imported key, which looks like an invented one', () => {
    expect(refusal(gate([], { unreadForMs: 60_000 }).asks('sk-1234567890abcdefghij'))).toMatch(/^3 401/)
  })

  test('goes on serving the keys that it knows', () => {
    const { credential, record } = issuedKey('a')
    expect(gate([record], { unreadForMs: 3_600_000 }).asks(credential)).toMatchObject({ record })
  })
})

describe('a running call', () => {
  const { record } = issuedKey('a')

  test('goes on while its key works, whatever else of the key was edited', () => {
    expect(gate([{ ...record, generation: 9, models: [['other']] }]).ends(record)).toBeUndefined()
  })

  test.each<[string, readonly KeyRecord[], string]>([
    [
      'suspended',
      [{ ...record, state: 'Suspended' }],
      '4 401 Authentication Error: API key suspended; its owner can set the ApiKey to Active again',
    ],
    [
      'revoked',
      [{ ...record, state: 'Revoked' }],
      '4 401 Authentication Error: API key revoked; a revoked key stays revoked; ask its owner for a new one',
    ],
    [
      'expired',
      [{ ...record, expiresMs: NOW }],
      '4 401 Authentication Error: API key expired; ask its owner to extend it or issue a new key',
    ],
    ['deleted', [], `3 401 ${UNKNOWN}`],
  ])('ends when its key is %s', (_state, keys, reason) => {
    expect(refusal(gate(keys).ends(record))).toBe(reason)
  })

  test.each([{ loaded: false }, { lacksKeys: true }, { unreadForMs: 5_000 }])(
    'does not end where nothing is known for sure: %j',
    (state) => {
      expect(gate([], state).ends(record)).toBeUndefined()
    },
  )
})
