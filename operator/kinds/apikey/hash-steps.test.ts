import { describe, expect, test } from 'vitest'
import { hashSpec, hashVerifier, notTaken, taken } from '../../../test/support/hash-keys.ts'
import { edited, failure, heldKey, NOW } from '../../../test/support/observed-key.ts'
import { nextStep } from './steps.ts'
import type { Observed } from './observed.ts'

const step = (observed: Observed) => nextStep(observed)
const ATLANTIS = { name: 'd', amount: '5', unit: 'Currency', window: 'Day', timeZone: 'Europe/Atlantis', onExceeded: 'Block' } as const

describe('the hash of a manifest', () => {
  test('is taken after the finalizer, without a read of a Secret, even if Redis does not answer', () => {
    const bare = notTaken(hashSpec('sk-a'))
    expect(step({ ...bare, apiKey: heldKey(hashSpec('sk-a'), { finalizers: [] }) })).toMatchObject({ do: 'add-finalizer' })
    expect(step(bare)).toEqual({ do: 'take-hash', level: 'create', id: undefined })
    expect(step({ ...bare, storeAvailable: false })).toMatchObject({ do: 'take-hash' })
  })

  test.each<[string, Observed]>([
    ['another key has the value', notTaken(hashSpec('sk-a'), { isDuplicate: true })],
    ['the hint is the value', notTaken(hashSpec('sk-a', 0, 'sk-a'))],
    ['the namespace is full', notTaken(hashSpec('sk-a'), { namespaceLimit: 3 })],
    ['a time zone does not exist', notTaken({ ...hashSpec('sk-a'), budgets: [ATLANTIS] })],
    ['the key is revoked', notTaken({ ...hashSpec('sk-a'), state: 'Revoked' })],
    ['the keyring has refused it', notTaken(hashSpec('sk-a'), { failures: [failure('Keyring', 'KeyringFull', 900)] })],
    ['an entry of a newer version is there', notTaken(hashSpec('sk-a'), { isUnreadable: true })],
  ])('is not taken while %s', (_, observed) => {
    expect(step(observed)?.do).not.toBe('take-hash')
  })

  test('without an overlap is urgent, since it ends a value', () => {
    expect(step(taken([hashVerifier('sk-a')], hashSpec('sk-b', 0)))).toMatchObject({ do: 'take-hash', level: 'urgent' })
    expect(step(notTaken(hashSpec('sk-b', 0)))).toMatchObject({ level: 'create' })
  })

  test('has an id in the status only when it is durable, so that a crash loses no reported id', () => {
    const fresh = { ...taken([hashVerifier('sk-a', 1, { createdMs: NOW - 100 })], hashSpec('sk-a')), isCommitting: true }
    expect(step(fresh)).toEqual({ do: 'wait', forMs: 4_900 })
    expect(step({ ...fresh, isCommitting: false })).toMatchObject({ do: 'write-status' })
    expect(step({ ...fresh, now: NOW + 5_000 })).toMatchObject({ do: 'write-status' })
  })

  test('makes one revision per second if it is changed many times a second', () => {
    expect(step({ ...taken([hashVerifier('sk-a')], hashSpec('sk-b', 0)), revisionInMs: 300 })).toEqual({ do: 'wait', forMs: 300 })
  })
})

describe('a former value', () => {
  const present = hashVerifier('sk-b', 2)

  test('that an edit ends at once is urgent', () => {
    const observed = taken([hashVerifier('sk-a', 1, { expiresMs: Date.UTC(2027, 0, 1) }), present], hashSpec('sk-b'))
    const ended = edited(observed, hashSpec('sk-b', 0))
    expect(step(ended)).toMatchObject({ do: 'commit', level: 'urgent', isUncounted: true, entry: { verifiers: [{ id: present.id }] } })
  })

  test('of two keys stays with the key that had it first, and the other key drops it at once', () => {
    const observed = taken([hashVerifier('sk-b')], hashSpec('sk-b'))
    expect(step({ ...observed, isDuplicate: true })).toMatchObject({ do: 'commit', level: 'urgent', entry: { verifiers: [] } })
  })
})
