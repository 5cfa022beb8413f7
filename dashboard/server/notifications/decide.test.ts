import type { Account } from '#api/account.ts'
import type { ApiKey } from '#api/apikey.ts'
import type { Credit } from '#api/credit.ts'
import type { Condition } from '#api/metadata.ts'
import { describe, expect, test } from 'vitest'
import { type AccountFacts, decide, type Decision, MAX_PER_DAY, type Subject, type ToldState } from './decide.ts'

const NOW = Date.parse('2026-11-24T12:00:00Z')
const DAY_MS = 86_400_000
const at = (ms: number): string => `${new Date(NOW + ms).toISOString().slice(0, 19)}Z`
const condition = (type: string, ms = 0): Condition =>
  ({ type, status: 'True', reason: type, message: '', lastTransitionTime: at(ms) }) as Condition

function account(balance?: string, billing: 'Prepaid' | 'Unmetered' = 'Prepaid'): Account {
  const isExhausted = balance !== undefined && Number(balance) < 0.01
  return {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'Account',
    metadata: { name: 'u-1' },
    spec: { planRef: { name: 'default' }, state: 'Active', billing },
    status: {
      ...(balance !== undefined && { balance: { amount: balance, currency: 'EUR', asOf: at(0) } }),
      ...(isExhausted && { conditions: [condition('BalanceExhausted')] }),
    },
  }
}

function credit(name: string, amount: string, bookedMs: number | 'never' = 0): Credit {
  return {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'Credit',
    metadata: { name },
    spec: { accountRef: { name: 'u-1' }, amount, type: amount.startsWith('-') ? 'Refund' : 'TopUp', reference: `pi_${name}` },
    ...(bookedMs !== 'never' && { status: { conditions: [condition('Booked', bookedMs)] } }),
  }
}

interface KeyTimes {
  readonly createdMs?: number
  readonly expiresMs?: number
  readonly state?: 'Active' | 'Revoked'
}

function key(name: string, { createdMs = 0, expiresMs, state = 'Active' }: KeyTimes = {}): ApiKey {
  return {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'ApiKey',
    metadata: { name, creationTimestamp: at(createdMs) },
    spec: {
      displayName: `Key ${name}`,
      models: ['*'],
      state,
      source: { type: 'Hash', hash: { sha256: '0'.repeat(64), hint: 'sk-h-4f9…wxyz' } },
      ...(expiresMs !== undefined && { expirationTime: at(expiresMs) }),
    },
  } as ApiKey
}

const facts = (change: Partial<AccountFacts> = {}): AccountFacts => ({
  ...{ account: account('10.00'), credits: [], keys: [], sinceMs: NOW - 30 * DAY_MS, nowMs: NOW, currency: 'EUR', lowBalance: 5_000_000n },
  ...change,
})
const names = ({ mails }: Decision): readonly string[] => mails.map(({ name }) => name)
const known = (balance: ToldState['balance'], mails: Partial<Record<Subject, number>> = {}): ToldState => ({
  balance,
  day: Math.floor(NOW / DAY_MS),
  mails: { credits: 0, balance: 0, keys: 0, ...mails },
})

/** Decides, and decides again with what the first decision keeps. */
function twice(now: AccountFacts, told: readonly string[] = [], before?: ToldState): readonly Decision[] {
  const first = decide(now, new Set(told), before)
  return [first, decide(now, new Set([...told, ...first.told]), first.state)]
}

describe('a Credit', () => {
  test('that counts is mailed once: what was added, and what was taken away', () => {
    const [added, again] = twice(facts({ credits: [credit('a', '25')] }))
    expect(added?.mails).toEqual([
      {
        name: 'credit-added',
        parameters: { amount: '25.00', currency: 'EUR', type: 'TopUp', reference: 'pi_a', at: at(0) },
      },
    ])
    expect(again).toMatchObject({ mails: [], told: [] })
    const [reversed] = twice(facts({ credits: [credit('b', '-10.5')] }))
    expect(reversed?.mails).toMatchObject([{ name: 'credit-reversed', parameters: { amount: '-10.50', type: 'Refund' } }])
  })

  test('that does not count is no news, and is mailed once it counts', () => {
    const [waiting] = twice(facts({ credits: [credit('a', '25', 'never')] }))
    expect(waiting).toMatchObject({ mails: [], told: [] })
    expect(names(decide(facts({ credits: [credit('a', '25')] }), new Set(waiting?.told), waiting?.state))).toEqual(['credit-added'])
  })

  test.each([
    ['longer ago than two days, for a new or an older database', { credits: [credit('a', '25', -2 * DAY_MS - 1_000)] }],
    ['before anybody belonged to the account', { credits: [credit('a', '25', -2_000)], sinceMs: NOW - 1_000 }],
  ])('that was booked %s is history', (_, change) => {
    expect(decide(facts(change), new Set(), undefined)).toMatchObject({ mails: [], told: [] })
  })

  test('of the second in which the person came is news: Kubernetes writes whole seconds', () => {
    expect(names(decide(facts({ credits: [credit('a', '5')], sinceMs: NOW + 900 }), new Set(), undefined))).toEqual(['credit-added'])
  })

  test('among 5,000 at once is in one mail, which has their exact sums and names the newest ten', () => {
    const many = Array.from({ length: 5_000 }, (_, nth) => credit(`c${nth}`, nth % 2 === 0 ? '0.000001' : '-0.10', nth - 5_000))
    const [first, again] = twice(facts({ credits: many }))
    expect(first?.mails).toMatchObject([{ name: 'credits', parameters: { count: 5_000, added: '0.0025', reversed: '250.00' } }])
    expect(first?.mails[0]?.parameters).toMatchObject({ newest: { length: 10 } })
    expect(first?.told).toHaveLength(5_000)
    expect(again?.mails).toEqual([])
  })
})

describe('a balance', () => {
  const story = (...amounts: readonly string[]): readonly string[] => {
    let state: ToldState | undefined
    return amounts.flatMap((amount) => {
      const decision = decide(facts({ account: account(amount) }), new Set(), state)
      ;({ state } = decision)
      return names(decision).map((name) => `${amount}: ${name}`)
    })
  }

  test('is mailed once for each crossing downwards, and never on the way up', () => {
    expect(story('10.00', '4.999999', '4.50', '0.004', '-3.00', '0.00', '7.00', '4.00', '20.00', '0.00')).toEqual([
      '4.999999: balance-low',
      '0.004: balance-empty',
      '4.00: balance-low',
      '0.00: balance-empty',
    ])
  })

  test('that begins at nothing, as each new account does, is no news', () => {
    expect(story('0.00', '5.00', '0.00')).toEqual(['0.00: balance-empty'])
  })

  test('is never low without a setting, and never used up for an account that is not prepaid', () => {
    const low = decide(facts({ account: account('0.50'), lowBalance: undefined }), new Set(), known('Enough'))
    const unmetered = decide(facts({ account: account('-5.00', 'Unmetered') }), new Set(), known('Enough'))
    expect([...low.mails, ...unmetered.mails]).toEqual([])
  })

  test('that the status does not show for a moment is neither crossed nor forgotten', () => {
    const decision = decide(facts({ account: account() }), new Set(), known('Low'))
    expect([decision.mails, decision.state.balance]).toEqual([[], 'Low'])
  })

  test('says how much is left and what is called low', () => {
    const { mails } = decide(facts({ account: account('4.20') }), new Set(), known('Enough'))
    expect(mails).toEqual([{ name: 'balance-low', parameters: { amount: '4.20', bound: '5.00', currency: 'EUR' } }])
  })
})

describe('a key', () => {
  test('that was created is mailed once, with the first characters of its value alone', () => {
    const [first, again] = twice(facts({ keys: [key('k-1')] }))
    expect(first?.mails).toEqual([{ name: 'key-created', parameters: { name: 'Key k-1', prefix: 'sk-h-4f9', at: at(0) } }])
    expect(JSON.stringify(first)).not.toContain('wxyz')
    expect(again).toMatchObject({ mails: [], told: [] })
  })

  test('that was there before is history, and its revocation is news', () => {
    const [first] = twice(facts({ keys: [key('k-1', { createdMs: -9 * DAY_MS })] }))
    expect(first?.mails).toEqual([])
    const [revoked, again] = twice(facts({ keys: [key('k-1', { createdMs: -9 * DAY_MS, state: 'Revoked' })] }), first?.told, first?.state)
    expect(revoked?.mails).toMatchObject([{ name: 'key-revoked', parameters: { name: 'Key k-1', prefix: 'sk-h-4f9' } }])
    expect(again?.mails).toEqual([])
  })

  test('that was revoked before anybody looked is history; one that was made and revoked just now is not', () => {
    expect(twice(facts({ keys: [key('k-1', { createdMs: -9 * DAY_MS, state: 'Revoked' })] })).flatMap(names)).toEqual([])
    expect(twice(facts({ keys: [key('k-1', { state: 'Revoked' })] })).flatMap(names)).toEqual(['key-revoked'])
  })

  test('is announced to expire once for each end, 7 days before', () => {
    const ends = (expiresMs: number): AccountFacts => facts({ keys: [key('k-1', { createdMs: -30 * DAY_MS, expiresMs })] })
    const told = ['key k-1']
    expect(twice(ends(7 * DAY_MS + 1_000), told).flatMap(names)).toEqual([])
    const [soon, again] = twice(ends(7 * DAY_MS), told)
    expect(soon?.mails).toMatchObject([{ name: 'key-expires', parameters: { at: at(7 * DAY_MS) } }])
    expect(again?.mails).toEqual([])
    expect(names(decide(ends(3 * DAY_MS), new Set([...told, ...(soon?.told ?? [])]), soon?.state))).toEqual(['key-expires'])
  })

  test.each<[string, KeyTimes]>([
    ['has expired', { createdMs: -30 * DAY_MS, expiresMs: -1_000 }],
    ['was made for a week or less', { createdMs: -3 * DAY_MS, expiresMs: 4 * DAY_MS }],
  ])('that %s is not announced to expire', (_, times) => {
    expect(twice(facts({ keys: [key('k-1', times)] }), ['key k-1']).flatMap(names)).toEqual([])
  })

  test('that is revoked is not announced to expire', () => {
    const revoked = key('k-1', { createdMs: -30 * DAY_MS, expiresMs: DAY_MS, state: 'Revoked' })
    expect(twice(facts({ keys: [revoked] }), ['key k-1', 'key-revoked k-1']).flatMap(names)).toEqual([])
  })

  test('among many is in one mail', () => {
    const many = Array.from({ length: 30 }, (_, nth) => key(`k-${nth}`, nth === 0 ? { state: 'Revoked' } : {}))
    const [first, again] = twice(facts({ keys: many }))
    expect(first?.mails).toMatchObject([{ name: 'keys', parameters: { count: 30, changes: { length: 10 } } }])
    expect(first?.mails[0]?.parameters).toMatchObject({
      changes: [{ change: 'revoked' }, { change: 'created' }, {}, {}, {}, {}, {}, {}, {}, {}],
    })
    expect(again?.mails).toEqual([])
  })
})

describe('the bound of a day', () => {
  const full = { credits: MAX_PER_DAY, keys: MAX_PER_DAY, balance: MAX_PER_DAY }
  const everything = facts({ account: account('0.00'), credits: [credit('a', '25'), credit('b', '1')], keys: [key('k-1')] })

  test('lets the last mail of each subject say that it is the last', () => {
    const before = known('Enough', { credits: MAX_PER_DAY - 1, keys: MAX_PER_DAY - 1, balance: MAX_PER_DAY - 2 })
    const { mails, isPutOff } = decide(everything, new Set(), before)
    expect(mails).toMatchObject([
      { name: 'credits', parameters: { isLastToday: true } },
      { name: 'balance-empty', parameters: {} },
      { name: 'key-created', parameters: { isLastToday: true } },
    ])
    expect(mails[1]?.parameters).toEqual({})
    expect(isPutOff).toBe(false)
  })

  test('puts everything else off to the next day, and loses nothing', () => {
    const today = decide(everything, new Set(), known('Enough', full))
    expect(today).toMatchObject({ mails: [], told: [], isPutOff: true, state: { balance: 'Enough', mails: full } })
    const tomorrow = decide({ ...everything, nowMs: NOW + DAY_MS }, new Set(today.told), today.state)
    expect(names(tomorrow)).toEqual(['credits', 'balance-empty', 'key-created'])
    expect(tomorrow).toMatchObject({ isPutOff: false, state: { mails: { credits: 1, balance: 1, keys: 1 } } })
  })

  test('of one subject leaves the others alone', () => {
    expect(names(decide(everything, new Set(), known('Enough', { ...full, balance: 0 })))).toEqual(['balance-empty'])
  })

  test('makes 5,000 Credits that come one by one 20 mails', () => {
    let state: ToldState | undefined
    const told = new Set<string>()
    let mails = 0
    const credits: Credit[] = []
    for (let nth = 0; nth < 5_000; nth += 1) {
      credits.push(credit(`c${nth}`, '1'))
      const decision = decide(facts({ credits: credits.slice(-50) }), told, state)
      for (const id of decision.told) told.add(id)
      mails += decision.mails.length
      ;({ state } = decision)
    }
    expect(mails).toBe(20)
  })
})
