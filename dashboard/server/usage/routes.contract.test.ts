/** What people see of usage and money, over the operator's own interface. */
import { accounts, plans } from '#api/resources.ts'
import { apiVersionOf } from '#kube/port.ts'
import { describe, expect, test } from 'vitest'
import { DashboardWorld, type DashboardWorldOptions, type FormBrowser } from '../../../test/support/dashboard-world.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'
import { UsageOfAccounts } from '../../../test/support/usage-of-accounts.ts'

const MAYA = 'maya@fernwood.example'
const PATHS = ['/api/usage', '/api/usage.csv', '/api/billing', '/api/billing/ledger.csv']

async function opened(operator: UsageOfAccounts, options: Partial<DashboardWorldOptions> = {}): Promise<DashboardWorld> {
  const payments = { provider: 'manual', command: (account: string, id: string) => `credit add ${account} --id ${id}` } as const
  return await DashboardWorld.open({ folder: temporaryFolder(), money: { url: operator.url, payments }, ...options })
}

const accountOf = async (browser: FormBrowser): Promise<string> => (await browser.get('/api/me')).json().account.name

describe('a signed-in person', () => {
  test('sees what the keys of the own account have used, and the movements of its balance', async () => {
    using operator = await UsageOfAccounts.start()
    await using world = await opened(operator)
    const browser = await world.person(MAYA)
    const account = await accountOf(browser)
    await world.store.create(plans, {
      apiVersion: apiVersionOf(plans),
      kind: plans.kind,
      metadata: { name: 'default' },
      spec: { models: ['*'], maxKeys: 5 },
    })
    const form = { name: 'checkout bot', models: ['*'], attempt: 'the-only-attempt' }
    const { id } = (await browser.call('POST', '/api/keys', form)).json().key
    operator.used.push({
      account,
      key: `headgate-accounts/${id}`,
      model: 'llama',
      counts: { requests: 3, refusedBudget: 1, costMicros: 1_500_000 },
    })
    operator.credit(account, 'pay-1', '10.00', { reference: 'PO 4711' })
    const usage = (await browser.get('/api/usage')).json()
    expect(usage).toMatchObject({
      currency: 'EUR',
      rows: [{ key: id, keyName: 'checkout bot', model: 'llama', requests: 3, refused: 1, cost: '1.50' }],
    })
    expect((await browser.get('/api/usage?key=k-2')).json().rows).toEqual([])
    const billing = (await browser.get('/api/billing')).json()
    expect(billing).toMatchObject({ account, balance: '8.50', spentThisMonth: '1.50', isPrepaid: true })
    expect(billing.movements.map((one: { type: string; balance: string }) => [one.type, one.balance])).toEqual(
      expect.arrayContaining([
        ['Spend', expect.anything()],
        ['TopUp', expect.anything()],
      ]),
    )
    expect(billing.payments).toEqual({ provider: 'manual', amounts: [], command: `credit add ${account} --id top-up-${account}-2` })
  })

  test('gets both as files that are kept nowhere else', async () => {
    using operator = await UsageOfAccounts.start()
    await using world = await opened(operator)
    const browser = await world.person(MAYA)
    operator.credit(await accountOf(browser), 'pay-1', '10.00', { reference: '=1+1' })
    const ledger = await browser.get('/api/billing/ledger.csv')
    expect(ledger.text).toBe("time,type,id,reference,amount,balance,currency\r\n2026-11-20T10:00:00Z,TopUp,pay-1,'=1+1,10.00,10.00,EUR\r\n")
    expect([ledger.headers.get('content-type'), ledger.headers.get('content-disposition'), ledger.headers.get('cache-control')]).toEqual([
      ...['text/csv; charset=utf-8', 'attachment; filename=ledger.csv', 'no-store'],
    ])
    const usage = await browser.get('/api/usage.csv?from=2026-11-01&to=2026-11-24')
    expect(usage.headers.get('content-disposition')).toBe('attachment; filename=usage-2026-11-01-2026-11-24.csv')
  })

  test('sees nothing of another account, whatever the request names', async () => {
    using operator = await UsageOfAccounts.start()
    await using world = await opened(operator)
    const [first, second] = [await world.person(MAYA), await world.person('sam@fernwood.example')]
    const foreign = await accountOf(first)
    const own = await accountOf(second)
    operator.credit(foreign, 'pay-1', '10.00')
    for (const path of PATHS) {
      for (const name of ['account', 'accountName', 'name', 'user']) {
        const { status, text } = await second.get(`${path}?${name}=${foreign}`)
        expect([status, text]).toEqual([200, expect.not.stringContaining(foreign)])
      }
    }
    expect(new Set(operator.asked.map((path) => path.split(/[/?]/)[4]))).toEqual(new Set([own]))
  })

  test('sees an empty balance while the operator has not accepted the account', async () => {
    using operator = await UsageOfAccounts.start()
    await using world = await opened(operator)
    const browser = await world.person(MAYA)
    expect((await browser.get('/api/billing')).json()).toMatchObject({ balance: '0.00', movements: [] })
  })
})

describe('who may not see', () => {
  test.each(PATHS)('%s: without a session 401, and 404 after the administrator has deleted the account', async (path) => {
    using operator = await UsageOfAccounts.start()
    await using world = await opened(operator)
    expect((await world.browser().get(path)).status).toBe(401)
    const browser = await world.person(MAYA)
    await world.store.remove(accounts, { namespace: '', name: await accountOf(browser) })
    expect((await browser.get(path)).json().error).toMatchObject({ code: 'not-found' })
    expect(operator.asked).toEqual([])
  })
})

describe('while the operator is away', () => {
  test.each(PATHS)('%s says so, and everything else goes on', async (path) => {
    await using world = await DashboardWorld.open({ folder: temporaryFolder() })
    const browser = await world.person(MAYA)
    const visit = await browser.get(path)
    expect([visit.status, visit.headers.get('retry-after')]).toEqual([503, '10'])
    expect(visit.json().error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('Usage is not available now') })
    expect((await browser.get('/api/me')).status).toBe(200)
  })
})
