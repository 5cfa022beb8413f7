import { describe, expect, test } from 'vitest'
import {
  ACCOUNT_REFUSALS,
  acknowledged,
  edited,
  failure,
  fresh,
  heldKey,
  inAccount,
  issued,
  minted,
  NOW,
  secretOf,
  settledEdit,
  UNKNOWN,
  verifierOf,
  waiting,
  withStatus,
} from '../../../test/support/observed-key.ts'
import { hashSpec, hashVerifier, notTaken, taken } from '../../../test/support/hash-keys.ts'
import { API_KEY_CONDITIONS } from '#api/conditions.ts'
import { EVENTS } from '#api/event-table.ts'
import type { BudgetSpec as Budget } from '#api/limits.ts'
import { eventsOf } from './events.ts'
import type { Failure, Observed } from './observed.ts'
import { statusOf } from './status.ts'

const events = (observed: Observed): string[] => eventsOf(observed, statusOf(observed)).map(({ reason }) => reason)
const idle = (change: Partial<Observed> = {}): Observed => ({ ...withStatus(issued()), ...change })
const nothing = { entry: undefined, verifier: undefined, projected: undefined, confirmation: undefined }
const refused = (code: Failure['code']): Observed => fresh({ secret: { state: 'Absent' }, failures: [failure('SecretWrite', code)] })

const ATLANTIS = { name: 'day', amount: '5', unit: 'Currency', window: 'Day', timeZone: 'Europe/Atlantis', onExceeded: 'Block' } as const

const MONTH: Budget = { name: 'month', amount: '25', unit: 'Currency', window: 'Month', onExceeded: 'Block' }

describe('Events of an ApiKey', () => {
  test('the first delivery is an Event with the prefix and without the value', () => {
    expect(eventsOf(issued(), statusOf(issued()))).toEqual([
      { reason: 'Issued', note: expect.stringMatching(/^The key sk-hg1..….{4} is in Secret bot\.$/) },
    ])
  })

  test('a delivery before every pod has the key causes an Event that names the missing pod', () => {
    const early = { ...issued(), confirmation: waiting() }
    const reported = eventsOf(early, statusOf(early))
    expect(reported.map(({ reason }) => reason)).toEqual(['Issued', 'Unconfirmed'])
    expect(reported[1]?.note).toContain('gateway-2')
  })

  test('an edit that one pod does not acknowledge causes no Event about a delivery', () => {
    expect(events({ ...settledEdit(edited(idle(), { models: ['a'] })), confirmation: waiting() })).toEqual([])
  })

  test('a new key that does not fit into the keyring is reported once, and not for each retry', () => {
    const refusedOnce = fresh({ failures: [failure('Keyring', 'KeyringFull', 700)] })
    const askedAgain = minted({ isCommitting: true, failures: [failure('Keyring', 'KeyringFull', 0)] })
    expect(events(refusedOnce)).toEqual(['KeyringFull'])
    expect(events({ ...askedAgain, apiKey: withStatus(refusedOnce).apiKey })).toEqual([])
  })

  const warnings: readonly [string, Observed][] = [
    ['SecretConflict', fresh({ secret: { state: 'Foreign' } })],
    ['SecretConflict', idle({ secret: { state: 'Foreign' } })],
    ['SecretMissing', idle({ secret: { state: 'Absent' } })],
    ['SecretModified', idle({ secret: secretOf(verifierOf(2)) })],
    ['SecretUnreadable', idle({ secret: { state: 'Unknown' }, failures: [failure('SecretRead', 'Forbidden')] })],
    ['QuotaExceeded', refused('QuotaExceeded')],
    ['AdmissionDenied', refused('AdmissionDenied')],
    ['Forbidden', refused('Forbidden')],
    ['KeyringFull', fresh({ failures: [failure('Keyring', 'KeyringFull')] })],
    ['KeyringFull', idle({ failures: [failure('Keyring', 'KeyringFull', 700)] })],
    ['KeyLost', idle({ ...nothing, secret: { state: 'Absent' } })],
    ['EntryUnreadable', idle({ ...nothing, isUnreadable: true })],
    ['NamespaceLimitReached', fresh({ namespaceLimit: 3 })],
    ['DuplicateKey', notTaken(hashSpec('sk-a'), { isDuplicate: true })],
    ['SourceInvalid', notTaken(hashSpec('sk-a', 0, 'sk-a'))],
    ['ProofRequired', notTaken(hashSpec('sk-a'), { mayBeUnproven: false })],
    ['ValueUsed', notTaken(hashSpec('sk-a'), { valueUse: 'Taken' })],
    ['ValueUsed', notTaken(hashSpec('sk-a'), { valueUse: 'Full' })],
    ['NamedElsewhere', { ...withStatus(taken([hashVerifier('sk-a')], hashSpec('sk-a'))), isNamedElsewhere: true }],
    ['InvalidTimeZone', fresh({}, heldKey({ budgets: [ATLANTIS] }))],
    ...ACCOUNT_REFUSALS.map(([reason, refused]) => [reason, refused(fresh())] as [string, Observed]),
    ['AccountSuspended', inAccount(idle(), { state: 'Suspended' })],
    ['SpendHeldBack', { ...withStatus(issued(heldKey({ limits: { requestsPerMinute: 1 } }))), heldBack: ['month'] }],
    ['SpendUncertain', { ...withStatus(issued(heldKey({ limits: { requestsPerMinute: 1 } }))), spendLoss: { fromMs: 1_000, toMs: 9_000 } }],
  ]

  test.each(warnings)('%s is reported once, with the remedy, and not again while the condition lasts', (reason, observed) => {
    const reported = eventsOf(observed, statusOf(observed))
    expect(reported.map((event) => event.reason)).toEqual([reason])
    const conditions = statusOf(observed).conditions ?? []
    expect(conditions.map(({ message }) => message)).toContain(reported[0]?.note)
    const lasting = withStatus(observed)
    expect(events(lasting)).toEqual([])
    expect(events({ ...lasting, failures: lasting.failures.map((one) => ({ ...one, message: 'said in other words' })) })).toEqual([])
  })

  test('every Warning that a condition of an ApiKey can cause has its case above', () => {
    const reasons = Object.values(API_KEY_CONDITIONS).flatMap(({ reasons: table }) => Object.keys(table))
    const isWarning = (reason: string): boolean => reason in EVENTS && EVENTS[reason as keyof typeof EVENTS].type === 'Warning'
    const covered = new Set([...warnings.map(([reason]) => reason), 'Unconfirmed', 'BudgetExhausted', 'BalanceExhausted'])
    expect(reasons.filter((reason) => isWarning(reason) && !covered.has(reason))).toEqual([])
  })

  test('a balance that is used up is an Event of the Account alone, which may have thousands of keys', () => {
    expect(events(inAccount(idle(), { isBalanceExhausted: true }))).toEqual([])
  })

  describe('of a budget', () => {
    const JANUARY = Date.UTC(2026, 0, 1)
    const spending = (spent: number, before = working(), windowStartMs = JANUARY): Observed => ({
      ...before,
      usage: { budgets: [{ budget: 'month', unit: 'Currency', window: 'Month', spent, windowStartMs }], lastUsedMs: undefined },
    })
    const working = (change: Partial<typeof MONTH> = {}): Observed => withStatus(issued(heldKey({ budgets: [{ ...MONTH, ...change }] })))

    test('there is one at 80 % and one at 100 %, with the effect on requests', () => {
      expect(events(spending(19_999_999))).toEqual([])
      const near = spending(20_000_000)
      expect(eventsOf(near, statusOf(near))).toEqual([{ reason: 'BudgetNearlyUsed', note: '80 % of budget month are used.' }])
      const full = spending(25_000_000, withStatus(near))
      expect(eventsOf(full, statusOf(full))).toEqual([
        {
          reason: 'BudgetExhausted',
          note: 'Budget month is used up. Requests answer 402 until the next Month begins (UTC), or its amount is raised.',
        },
      ])
    })

    test('there is one, not two, if a request crosses both thresholds', () => {
      expect(events(spending(30_000_000))).toEqual(['BudgetExhausted'])
    })

    test('there is no second one in the same window, even if spend or amount change or the operator restarts', () => {
      const near = withStatus(spending(21_000_000))
      const back = withStatus(spending(10_000_000, near))
      expect(events(spending(22_000_000, back))).toEqual([])
      expect(events({ ...near, usage: undefined })).toEqual([])
    })

    test('there is one again in the next window', () => {
      const full = withStatus(spending(25_000_000))
      const next = withStatus(spending(0, full, Date.UTC(2026, 1, 1)))
      expect(events(spending(21_000_000, next, Date.UTC(2026, 1, 1)))).toEqual(['BudgetNearlyUsed'])
    })

    test('that only audits says that the key continues to work', () => {
      const full = spending(25_000_000, working({ onExceeded: 'Audit' }))
      expect(eventsOf(full, statusOf(full))[0]?.note).toBe('Budget month is used up. It only audits, so the key works on.')
    })
  })

  test('a value that a user puts back causes no Event about a new key', () => {
    const before = idle()
    const missing = withStatus({ ...before, secret: { state: 'Absent' } })
    expect(events({ ...missing, secret: before.secret })).toEqual([])
  })

  test('a Secret that is refused for another reason causes another Event', () => {
    expect(events({ ...withStatus(refused('QuotaExceeded')), failures: [failure('SecretWrite', 'AdmissionDenied')] })).toEqual([
      'AdmissionDenied',
    ])
  })

  test('a key that is issued after a refusal is reported as issued', () => {
    const observed = withStatus(refused('QuotaExceeded'))
    expect(events({ ...issued(), apiKey: observed.apiKey })).toEqual(['Issued'])
  })

  test('a suspension and a resumption are reported', () => {
    const suspended = settledEdit(edited(idle(), { state: 'Suspended' }))
    expect(events(suspended)).toEqual(['Suspended'])
    expect(events(withStatus(suspended))).toEqual([])
    expect(events(settledEdit(edited(withStatus(suspended), { state: 'Active' }), 9))).toEqual(['Resumed'])
  })

  test('the expiry of a key is reported', () => {
    const working = withStatus(issued(heldKey({ ttlSeconds: 86_400 + 60 })))
    expect(events(working)).toEqual([])
    expect(events({ ...working, now: NOW + 61_000 })).toEqual(['Expired'])
  })

  describe('a revocation', () => {
    const revoked = (change: Partial<Observed>): Observed => ({
      ...settledEdit(edited(idle(), { state: 'Revoked' })),
      secret: { state: 'Absent' },
      ...change,
    })

    test('is reported as proven when every pod refuses the key, or no pod serves', () => {
      expect(events(revoked({ confirmation: acknowledged() }))).toEqual(['Revoked'])
      expect(events(revoked({ confirmation: acknowledged(0) }))).toEqual(['Revoked'])
    })

    test.each<[string, Partial<Observed>]>([
      ['a pod is silent', { confirmation: waiting() }],
      ['Redis is away', { confirmation: UNKNOWN }],
      ['Redis has not taken it', { projected: undefined, confirmation: undefined, storeAvailable: false }],
    ])('is reported as unconfirmed while %s, and as proven afterwards', (_what, change) => {
      const first = revoked(change)
      expect(events(first)).toEqual(['RevocationUnconfirmed'])
      const later = { ...withStatus(first), projected: { revision: 8, forMs: 0 }, confirmation: acknowledged(), storeAvailable: true }
      expect(events(later)).toEqual(['Revoked'])
      expect(events(withStatus(later))).toEqual([])
    })

    test('the revocation of a key that was never issued has an Event too', () => {
      const never = fresh({ projected: { revision: 8, forMs: 0 }, confirmation: acknowledged() }, heldKey({ state: 'Revoked' }))
      expect(events(never)).toEqual(['Revoked'])
    })
  })
})
