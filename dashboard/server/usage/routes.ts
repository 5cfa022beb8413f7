/** Routes below /api/usage and /api/billing. The account is that of the session; nothing in a request names another one. */
import type { Account } from '#api/account.ts'
import type { Accounts, AccountOwner } from '../accounts/accounts.ts'
import { type Answer, json, redirect } from '../http/exchange.ts'
import { notFound, Refused } from '../http/refused.ts'
import type { TopUpStart, TopUpState } from '../page-data/billing.ts'
import type { Usage } from '../page-data/usage.ts'
import { jsonText } from '../routes/fields.ts'
import type { MemberHandler, Route, RouteDeps } from '../routes/route.ts'
import { billingOf, ledgerCsvOf } from './billing-view.ts'
import type { OperatorUsage } from './operator-usage.ts'
import { type PaymentSettings, topUpAmount } from './payments.ts'
import type { PaymentsClient } from './payments-client.ts'
import { type KeyNaming, usageCsvOf, usageOf, usageQuestion } from './usage-view.ts'

/** What the routes about usage and money need. */
export interface Money extends KeyNaming {
  readonly operator: OperatorUsage
  /** Of the installation, `EUR`. */
  readonly currency: string
  readonly payments: PaymentSettings
  /** The payments program; absent where people do not pay in the dashboard. */
  readonly paymentsClient: PaymentsClient | undefined
}

const CSV = 'text/csv; charset=utf-8'
const MAX_AMOUNT = 20
const MAX_ATTEMPT = 64
const ATTEMPT = /^[0-9A-Za-z_-]{8,64}$/
const PAYMENT = /^pi_[0-9A-Za-z_]{1,250}$/
const SESSION = /^cs_[0-9A-Za-z_]{1,250}$/

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

/** The account and what it is called at the payment provider. */
async function payer({ accounts, money }: RouteDeps, person: AccountOwner): Promise<Payer> {
  const account = await ownAccount(accounts, person)
  const { paymentsClient: client, payments } = money
  if (client === undefined || payments.provider !== 'stripe') throw notFound()
  const { name, uid = '' } = account.metadata
  return { client, payments, account, id: { name, uid } }
}

interface Payer {
  readonly client: PaymentsClient
  readonly payments: Extract<PaymentSettings, { provider: 'stripe' }>
  readonly account: Account
  readonly id: { readonly name: string; readonly uid: string }
}

/** The session has a verified address at each call, so nobody pays without one. */
const postTopUp: MemberHandler = async (deps, exchange, { person }) => {
  const { client, payments, account, id } = await payer(deps, person)
  if (account.spec.billing !== 'Prepaid') throw new Refused('conflict', 'This account has no balance to top up.')
  const amount = topUpAmount(jsonText(exchange, 'amount', MAX_AMOUNT), payments, deps.money.currency)
  const attempt = jsonText(exchange, 'attempt', MAX_ATTEMPT)
  if (!ATTEMPT.test(attempt))
    throw new Refused('invalid', 'The request cannot be read.', { fields: { attempt: 'This is not a payment attempt.' } })
  const url = await client.checkout({ account: id, amount, email: person.email, attempt })
  deps.log.info({ audit: 'billing.top-up', person: person.id, request: exchange.id, account: id.name, amount }, 'a person goes to pay')
  const body: TopUpStart = { url }
  return json(body)
}

const postTopUpCheck: MemberHandler = async (deps, exchange, { person }) => {
  const session = jsonText(exchange, 'session')
  const { client, id } = await payer(deps, person)
  if (!SESSION.test(session)) throw notFound()
  const body: TopUpState = await client.topUp({ account: id, session })
  return json(body)
}

/** A page, so that the receipt opens in a tab of its own. The payments program refuses payments of other accounts. */
const showReceipt: MemberHandler = async (deps, { params: { payment = '' } }, { person }) => {
  const { client, id } = await payer(deps, person)
  if (!PAYMENT.test(payment)) throw notFound()
  return redirect(await client.receipt({ account: id, payment }))
}

export const MONEY_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/api/usage', access: 'usage.read', handler: getUsage },
  { method: 'GET', path: '/api/usage.csv', access: 'usage.read', handler: getUsageCsv },
  { method: 'GET', path: '/api/billing', access: 'billing.read', handler: getBilling },
  { method: 'GET', path: '/api/billing/ledger.csv', access: 'billing.read', handler: getLedgerCsv },
  { method: 'GET', path: '/receipts/:payment', access: 'billing.read', handler: showReceipt },
  { method: 'POST', path: '/api/billing/top-up', access: 'billing.pay', handler: postTopUp },
  { method: 'POST', path: '/api/billing/top-up/check', access: 'billing.pay', handler: postTopUpCheck },
]
