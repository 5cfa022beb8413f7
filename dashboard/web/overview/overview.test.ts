/** The words of Overview for each state of the account, as a browser gets them. */
import { createElement } from 'react'
import { describe, expect, it } from 'vitest'
import type { Billing } from '../../server/page-data/billing.ts'
import type { Keys, KeyView, PlanView } from '../../server/page-data/keys.ts'
import type { AccountView, Me } from '../../server/page-data/people.ts'
import { htmlOf, wordsOf } from '../static-page.ts'
import { Overview } from './overview.tsx'
import { standingOf } from './standing-of-account.ts'

const known = { name: 'u-4kq7', plan: 'team', isReady: true } as const
const ACTIVE: AccountView = { state: 'Active', ...known }
const ME: Me = {
  person: {
    ...{ id: 'p1', name: 'Maya', email: 'maya@x.example', createdAt: '2026-11-27T00:00:00Z', role: 'owner', hasPassword: true },
    twoFactor: { isOn: false },
  },
  account: ACTIVE,
  installation: { apiURL: 'https://models.x.example', providers: [], hasPasswords: true },
}
const BILLING: Billing = {
  ...{ account: 'u-4kq7', currency: 'EUR', isPrepaid: true, balance: '0.00', spentThisMonth: '0.00', asOf: '2026-11-24T12:03:00Z' },
  ...{ incomplete: [], movements: [], payments: { provider: 'stripe', amounts: ['10.00'] } },
}
const KEY: KeyView = {
  ...{
    id: 'k-1',
    name: 'docs-search',
    hint: 'hg_12345…wxyz',
    state: 'Active',
    wanted: 'Active',
    isManaged: false,
    models: ['*'],
    limits: [],
    budgets: [],
  },
  createdAt: '2026-11-01T00:00:00Z',
}
const PLAN: PlanView = { name: 'team', most: 20, models: [{ name: 'llama' }], limits: [], budgets: [], ttl: {}, currency: 'EUR' }
const SPENT: Billing = {
  ...BILLING,
  ...{ balance: '61.61', spentThisMonth: '97.25' },
  movements: [
    { time: '2026-11-23', type: 'Spend', id: '', reference: '', amount: '-7.00', balance: '61.61' },
    { time: '2026-11-03T08:00:00Z', type: 'TopUp', id: 'x', reference: '', amount: '68.61', balance: '68.61' },
  ],
}

interface Answers {
  readonly account?: AccountView
  readonly billing?: Billing | undefined
  readonly keys?: Keys['keys'] | undefined
  readonly plan?: PlanView
}

function html({ account = ACTIVE, billing = BILLING, keys = [], plan = PLAN }: Answers): string {
  const data = [
    [['me'], { ...ME, account }],
    [['billing'], billing],
    [['keys'], { keys, used: keys.length, most: 20 }],
    [['plan'], plan],
  ] as const
  return htmlOf(createElement(Overview), { data })
}
const shown = (answers: Answers): string => wordsOf(html(answers))

describe('a new account', () => {
  it('has four steps, of which the first is done, and is led to the next one', () => {
    const text = shown({})
    expect(text).toContain('Four steps to your first answer')
    expect(text).toContain('Verify your email (done) maya@x.example')
    expect(text).toContain('Your balance is €0.00. Calls are answered once there is credit')
    expect(html({})).toContain('<a href="/billing" class="button primary">Top up</a>')
  })

  it('has the command of its first call, with the address of the API and a model of its plan', () => {
    const text = shown({})
    expect(text).toContain('curl https://models.x.example/v1/chat/completions')
    expect(text).toContain('llama')
  })

  it('has one primary button at each step', () => {
    const withCredit = { ...BILLING, balance: '10.00' }
    const all = [{}, { billing: withCredit }, { billing: withCredit, keys: [KEY] }]
    expect(all.map((answers) => [...html(answers).matchAll(/class="button primary"[^>]*>([^<]*)/g)].map(([, name]) => name))).toEqual([
      ['Top up'],
      ['New key'],
      [],
    ])
  })

  it('whose administrator adds credit has the name to give, and the command where the person is the administrator', () => {
    const payments = { provider: 'manual', amounts: [], command: 'headgate credit add u-4kq7 10.00' } as const
    const text = shown({ billing: { ...BILLING, payments } })
    expect(text).toContain('Ask your administrator, and name your account. Account u-4kq7')
    expect(text).toContain('headgate credit add u-4kq7 10.00')
  })

  it('that does not pay in advance has three steps', () => {
    const text = shown({ billing: { ...BILLING, isPrepaid: false } })
    expect(text).toContain('Three steps')
    expect(text).not.toContain('Top up')
  })
})

describe('an account in use', () => {
  it('has its balance, the spend of the month, and the keys in use', () => {
    const text = shown({ billing: SPENT, keys: [KEY, { ...KEY, id: 'k-2', state: 'Suspended' }] })
    expect(text).toContain('Balance €61.61 About 61 days at this week’s pace.')
    expect(text).toContain('Spent in November €97.25')
    expect(text).toContain('API keys in use 1 2 of 20 in the team plan')
    expect(text).toContain('All keys are well.')
  })

  it('has the month’s budget of all keys beside the spend', () => {
    const budget = {
      name: 'all',
      owner: 'account',
      unit: 'Currency',
      window: 'Month',
      amount: '300',
      timeZone: 'UTC',
      isAudit: false,
    } as const
    expect(shown({ billing: SPENT, keys: [KEY], plan: { ...PLAN, budgets: [{ ...budget, isShared: true, percent: 32 }] } })).toContain(
      'of €300.00 account',
    )
  })

  it('whose balance is used up says once that all keys are stopped, and how to go on', () => {
    const below = { ...SPENT, balance: '-1.00', movements: [{ ...SPENT.movements[0], balance: '-1.00' }, SPENT.movements[1]] } as Billing
    const text = shown({ billing: below, keys: [{ ...KEY, state: 'BalanceUsedUp' }] })
    expect(text.match(/All keys are stopped/g)).toHaveLength(1)
    expect(text).toContain('top up at least €1.01. Top up')
  })
})

describe('an account that is', () => {
  it('Suspended says what calls answer and whom to ask, and offers no call', () => {
    const text = shown({ account: { state: 'Suspended', ...known } })
    expect(text).toContain('Calls with its keys answer 401. Ask your administrator')
    expect(text).toContain('The account is u-4kq7')
    expect(text).not.toContain('Call a model')
  })

  it('Closed says that its keys no longer work', () => {
    expect(shown({ account: { state: 'Closed' } })).toContain('Its keys no longer work')
  })

  it('not known says why, and that the page checks again', () => {
    const text = shown({ account: { state: 'Unknown' } })
    expect(text).toContain('The cluster does not answer the dashboard, so the state of your account is not known here.')
    expect(text).toContain('This page checks again')
  })
})

it('a name with HTML is shown as text', () => {
  expect(
    html({ billing: SPENT, keys: [{ ...KEY, name: '<script>x</script>', expiresAt: new Date(Date.now() + 3_600_000).toISOString() }] }),
  ).toMatch(/&lt;script&gt;x/)
})

it('an account that is not ready says why, as a whole sentence', () => {
  const { isUsable, consequence } = standingOf({ state: 'Active', ...known, isReady: false, message: 'Plan "team" does not exist' })
  expect([isUsable, consequence]).toEqual([false, 'Plan "team" does not exist. This page checks again every few seconds.'])
})
