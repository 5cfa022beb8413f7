/** Routes below /api/usage and /api/billing. The account is that of the session; nothing in a request names another one. */
import type { Account } from '#api/account.ts'
import type { Accounts, AccountOwner } from '../accounts/accounts.ts'
import { type Answer, json } from '../http/exchange.ts'
import { notFound, Refused } from '../http/refused.ts'
import type { Usage } from '../page-data/usage.ts'
import type { MemberHandler, Route, RouteDeps } from '../routes/route.ts'
import { billingOf, ledgerCsvOf } from './billing-view.ts'
import type { OperatorUsage } from './operator-usage.ts'
import type { PaymentSettings } from './payments.ts'
import { type KeyNaming, usageCsvOf, usageOf, usageQuestion } from './usage-view.ts'

/** What the routes about usage and money need. */
export interface Money extends KeyNaming {
  readonly operator: OperatorUsage
  /** Of the installation, `EUR`. */
  readonly currency: string
  readonly payments: PaymentSettings
}

const CSV = 'text/csv; charset=utf-8'

/** @throws Refused where the person has no Account now */
async function ownAccount(accounts: Accounts, person: AccountOwner): Promise<Account> {
  const found = await accounts.of(person)
  if (found.state === 'Found') return found.account
  if (found.state === 'Closed') throw notFound()
  throw new Refused('unavailable', 'The cluster does not answer. Your keys go on working. Try again in a moment.', { retryAfter: 10 })
}

async function usageFor({ accounts, money, clock }: RouteDeps, query: URLSearchParams, person: AccountOwner): Promise<Usage> {
  const question = usageQuestion(query, clock.now())
  const { metadata } = await ownAccount(accounts, person)
  return usageOf(await money.operator.usage(metadata.name, question), question, money)
}

const getUsage: MemberHandler = async (deps, { query }, { person }) => json(await usageFor(deps, query, person))

const getUsageCsv: MemberHandler = async (deps, { query }, { person }): Promise<Answer> => {
  const usage = await usageFor(deps, query, person)
  return { kind: 'file', name: `usage-${usage.from}-${usage.to}.csv`, type: CSV, content: usageCsvOf(usage) }
}

const getBilling: MemberHandler = async ({ accounts, money, clock }, _exchange, { person }) => {
  const account = await ownAccount(accounts, person)
  const ledger = await money.operator.ledger(account.metadata.name)
  return json(billingOf({ account, ledger, currency: money.currency, payments: money.payments, nowMs: clock.now() }))
}

const getLedgerCsv: MemberHandler = async ({ accounts, money }, _exchange, { person }): Promise<Answer> => {
  const { metadata } = await ownAccount(accounts, person)
  const ledger = await money.operator.ledger(metadata.name)
  return { kind: 'file', name: 'ledger.csv', type: CSV, content: ledgerCsvOf(ledger, money.currency) }
}

export const MONEY_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/api/usage', access: 'usage.read', handler: getUsage },
  { method: 'GET', path: '/api/usage.csv', access: 'usage.read', handler: getUsageCsv },
  { method: 'GET', path: '/api/billing', access: 'billing.read', handler: getBilling },
  { method: 'GET', path: '/api/billing/ledger.csv', access: 'billing.read', handler: getLedgerCsv },
]
