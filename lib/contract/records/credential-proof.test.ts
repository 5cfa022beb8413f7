import { describe, expect, test } from 'vitest'
import { type BackendPlace, credentialProof, isProven } from './credential-proof.ts'

const PLACE: BackendPlace = { name: 'main', url: 'https://models.example', service: null, endpoints: [] }
const proof = credentialProof('org-owned-token', 'uid-1', PLACE)

describe('the proof that a credential may go to an address', () => {
  test('holds for the addresses for which it was made', () => {
    expect(isProven(proof, 'org-owned-token', 'uid-1', { ...PLACE })).toBe(true)
  })

  test.each<[string, Partial<BackendPlace>]>([
    ['another url', { url: 'https://evil.example' }],
    ['another path', { url: 'https://models.example/log' }],
    ['another Service', { url: null, service: 'evil.shop.svc:80' }],
    ['another endpoint', { url: null, endpoints: ['10.6.6.6:80'] }],
    ['another header', { credentialHeader: 'x-echo' }],
    ['another backend', { name: 'other' }],
  ])('does not hold for %s', (_what, change) => {
    expect(isProven(proof, 'org-owned-token', 'uid-1', { ...PLACE, ...change })).toBe(false)
  })

  test('holds neither for another ServedModel nor for another credential, and a record without a proof proves nothing', () => {
    expect(isProven(proof, 'org-owned-token', 'uid-2', PLACE)).toBe(false)
    expect(isProven(proof, 'other-token', 'uid-1', PLACE)).toBe(false)
    expect(isProven(undefined, 'org-owned-token', 'uid-1', PLACE)).toBe(false)
  })
})
