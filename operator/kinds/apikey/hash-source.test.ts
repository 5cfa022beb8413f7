import { describe, expect, test } from 'vitest'
import { hashCredential } from '#contract/values/credential.ts'
import { hashSpec, hashVerifier, taken } from '../../../test/support/hash-keys.ts'
import { edited, withStatus } from '../../../test/support/observed-key.ts'
import { restoredHashes } from './hash-source.ts'

describe('a lost entry', () => {
  const former = hashVerifier('sk-former', 1, { expiresMs: Date.UTC(2027, 0, 1) })
  const present = hashVerifier('sk-present', 2)
  const { apiKey } = withStatus(taken([former, present], hashSpec('sk-present')))
  const hashes = (verifiers: ReturnType<typeof restoredHashes>): string[] => verifiers.map(({ hash }) => hash)

  test('gets no value that was forged in Redis: neither another id nor another hash under the id of the status', () => {
    const forged = { id: present.id, hash: hashCredential('sk-forged'), expiresMs: null }
    const foreign = { id: 'another', hash: hashCredential('sk-forged'), expiresMs: null }
    expect(hashes(restoredHashes(apiKey, { verifiers: [forged, foreign] }))).toEqual([present.hash])
  })

  test('gets nothing from a manifest whose hash belongs to another key: the id in the status is that of a former value', () => {
    const refused = withStatus({ ...taken([former], hashSpec('sk-present')), isDuplicate: true }).apiKey
    expect(refused.status?.keyID).toBe(former.id)
    expect(restoredHashes(refused, undefined)).toEqual([])
  })

  test('of a manifest that was edited since gets the working value back, and takes the new value later', () => {
    const later = edited(taken([present], hashSpec('sk-present')), hashSpec('sk-next')).apiKey
    const status = withStatus(taken([present], hashSpec('sk-present'))).apiKey.status!
    expect(hashes(restoredHashes({ ...later, status }, { verifiers: [present] }))).toEqual([present.hash])
    expect(restoredHashes({ ...later, status }, undefined)).toEqual([])
  })
})
