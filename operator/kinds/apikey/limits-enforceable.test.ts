import { describe, expect, test } from 'vitest'
import { heldKey, issued, withStatus } from '../../../test/support/observed-key.ts'
import { limitsEnforceable } from './limits-enforceable.ts'
import type { Observed } from './observed.ts'

const limited = (change: Partial<Observed> = {}): Observed => ({ ...issued(heldKey({ limits: { requestsPerMinute: 1 } })), ...change })
const reason = (observed: Observed): string => limitsEnforceable(observed).reason
const message = (observed: Observed): string => limitsEnforceable(observed).message

describe('LimitsEnforceable', () => {
  test('is False while a gateway cannot enforce limits, before all other reasons, and says what such a gateway does', () => {
    const old = limited({ gatewayLimits: 'TooOld', unpricedModels: ['a'] })
    expect(reason(old)).toBe('GatewayTooOld')
    expect(message(old)).toMatch(/refuses the key with 503.*Update all gateway pods/)
  })

  test('stays unchanged after a start of the operator, until the gateways were polled', () => {
    const old = withStatus(limited({ gatewayLimits: 'TooOld' }))
    expect(reason({ ...old, gatewayLimits: 'Unknown' })).toBe('GatewayTooOld')
    expect(reason({ ...old, gatewayLimits: 'Current' })).toBe('Enforceable')
    expect(reason({ ...withStatus(limited()), gatewayLimits: 'Unknown' })).toBe('Enforceable')
  })

  test('names the period in which spend may have been lost, before missing prices', () => {
    const loss = { fromMs: Date.UTC(2026, 0, 2, 3, 4, 5), toMs: Date.UTC(2026, 0, 2, 3, 4, 12) }
    const lost = limited({ spendLoss: loss, unpricedModels: ['llama'] })
    expect(reason(lost)).toBe('SpendUncertain')
    expect(message(lost)).toContain('between 2026-01-02T03:04:05Z and 2026-01-02T03:04:12Z')
  })

  test('names five models at most, so that a sixth model without a price changes no status', () => {
    const five = ['a', 'b', 'c', 'd', 'e', 'f']
    expect(message(limited({ unpricedModels: five }))).toContain('a, b, c, d, e and others')
    expect(message(limited({ unpricedModels: [...five, 'g'] }))).toBe(message(limited({ unpricedModels: five })))
  })

  test('names the models whose answers have no bound', () => {
    const unbounded = limited({ unboundedModels: ['llama'] })
    expect(reason(unbounded)).toBe('OutputUnbounded')
    expect(message(unbounded)).toMatch(/Answers of llama .*Set maxOutputTokens or contextTokens/)
  })
})
