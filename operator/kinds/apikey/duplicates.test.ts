import { expect, test } from 'vitest'
import { hashSpec, hashVerifier } from '../../../test/support/hash-keys.ts'
import { entryFor, heldKey } from '../../../test/support/observed-key.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import type { ApiKey } from '#api/apikey.ts'
import type { ApiKeyDeps } from './kind.ts'
import { isDuplicate } from './observe.ts'

const keyOf = (uid: string, createdS: number): ApiKey =>
  heldKey(hashSpec('sk-a'), { uid, creationTimestamp: new Date(createdS * 1000).toISOString() })

/** The state of the operator: ApiKeys with the hash, and entries with the value. */
function among(keys: readonly ApiKey[], holders: readonly KeyringEntry[]) {
  const settings = { unprovenHashNamespaces: ['*'] }
  const deps = { apiKeys: { byIndex: () => keys }, keyring: { holdersOf: () => holders }, settings } as unknown as Pick<
    ApiKeyDeps,
    'keyring' | 'apiKeys' | 'settings'
  >
  return (key: ApiKey, entry?: KeyringEntry) => isDuplicate(key, entry, deps)
}

const [older, younger] = [keyOf('b', 1), keyOf('a', 2)]
const entry = (key: ApiKey, createdMs = 7): KeyringEntry => entryFor(key, [hashVerifier('sk-a', 1, { createdMs })])

test('of two new keys the older one gets the value; of two keys of the same second, the one with the lower uid', () => {
  const check = among([older, younger], [])
  expect([check(older), check(younger)]).toEqual([false, true])
  const twins = [keyOf('b', 1), keyOf('a', 1)] as const
  expect(twins.map((one) => among(twins, [])(one))).toEqual([true, false])
})

test('an older key that is being deleted does not keep the value from another key', () => {
  const deleting = { ...older, metadata: { ...older.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }
  expect(among([deleting, younger], [])(younger)).toBe(false)
})

test('of two entries with one value after a restore, the one that had the value first keeps it', () => {
  const [first, second] = [entry(younger, 5), entry(older, 6)]
  const check = among([older, younger], [first, second])
  expect([check(younger, first), check(older, second)]).toEqual([false, true])
})
