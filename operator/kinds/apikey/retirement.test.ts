import { describe, expect, test } from 'vitest'
import type { ApiKey } from '#api/apikey.ts'
import { heldKey } from '../../../test/support/observed-key.ts'
import { firstToRetire, retiresAtMs } from './retirement.ts'

const DAY_MS = 86_400_000
const RULE = { namespace: 'people', afterMs: 90 * DAY_MS }
const REVOKED_TIME = '2026-01-02T00:00:00Z'

function revokedKey(
  change: { namespace?: string; labels?: Record<string, string>; state?: 'Active' | 'Revoked'; revokedTime?: string | undefined } = {},
): ApiKey {
  const { namespace = 'people', labels = { 'headgate.dev/created-by': 'dashboard' }, state = 'Revoked' } = change
  const revokedTime = 'revokedTime' in change ? change.revokedTime : REVOKED_TIME
  return { ...heldKey({ state }, { namespace, labels }), status: { ...(revokedTime !== undefined && { revokedTime }) } }
}

describe('the ApiKey of a revoked key', () => {
  test('that a person made in the dashboard goes after the time of the setting', () => {
    expect(retiresAtMs(revokedKey(), RULE)).toBe(Date.parse(REVOKED_TIME) + 90 * DAY_MS)
  })

  test.each([
    ['of another namespace', revokedKey({ namespace: 'team' }), RULE],
    ['that a manifest made', revokedKey({ labels: {} }), RULE],
    ['that works', revokedKey({ state: 'Active' }), RULE],
    ['whose end is not reported yet', revokedKey({ revokedTime: undefined }), RULE],
    ['of an installation without a dashboard', revokedKey(), undefined],
  ])('%s stays', (_which, key, rule) => {
    expect(retiresAtMs(key, rule)).toBeUndefined()
  })
})

describe('where an account has no room for another ApiKey', () => {
  const first = revokedKey({ revokedTime: '2026-01-01T00:00:00Z' })
  const keys = [revokedKey(), revokedKey({ state: 'Active' }), first, revokedKey({ labels: {} })]

  test('the one that was revoked first goes', () => {
    expect(firstToRetire(keys, RULE)).toBe(first)
  })

  test('none goes while another one is being deleted, and none that works or that a manifest made', () => {
    const leaving = { ...first, metadata: { ...first.metadata, deletionTimestamp: REVOKED_TIME } }
    expect(firstToRetire([...keys, leaving], RULE)).toBeUndefined()
    expect(firstToRetire([revokedKey({ state: 'Active' }), revokedKey({ labels: {} })], RULE)).toBeUndefined()
    expect(firstToRetire(keys, undefined)).toBeUndefined()
  })
})
