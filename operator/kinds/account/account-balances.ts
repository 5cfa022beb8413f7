/** The balances that the statuses of Accounts show: at once after a Credit or a crossing, else at most once a minute for each account. */
import type { Account } from '#api/account.ts'
import { accounts as accountResource } from '#api/resources.ts'
import type { OperatorContext } from '../kind.ts'
import { ShownUsage } from '../shown-usage.ts'
import type { Weight } from '../usage-status.ts'
import { type BalanceFacts, type BalanceReading, lacksBalance, urgencyOf } from './balance.ts'

/** All changes count the same: the account that has waited longest comes first. */
const WEIGHTS: Readonly<Record<ReturnType<typeof urgencyOf>, Weight>> = {
  AtOnce: { kind: 'Exhausted', size: 1 },
  Later: { kind: 'Changed', size: 1 },
  Never: { kind: 'None', size: 0 },
}

/** Tenants may read Events, so the note has no amount. */
const RESTORED = 'Redis had counted less for the account than its books have. The operator has restored the spend from the books.'

export class AccountBalances {
  readonly #context: OperatorContext
  /** By name of the account. */
  readonly #shown: ShownUsage<BalanceReading>
  /** Accounts whose books may be incomplete. */
  readonly #broken = new Set<string>()
  /** Accounts with spend that is not believed. */
  readonly #doubted = new Set<string>()

  constructor(context: OperatorContext) {
    this.#context = context
    this.#shown = new ShownUsage<BalanceReading>({
      clock: context.clock,
      weigh: (name, reading) => this.#weigh(name, reading),
      enqueue: (name) => context.enqueue(accountResource.kind, { namespace: '', name }, 'background'),
    })
    context.accounts.balances.onChanged((name) => this.#changed(name))
    context.accounts.onRestored((name) => this.#restored(name))
  }

  /** The reading for the status; undefined keeps the balance that the status shows. */
  shown(account: Account): BalanceReading | undefined {
    const { name } = account.metadata
    return this.#shown.shown(name) ?? (lacksBalance(account) ? this.#read(name) : undefined)
  }

  factsOf(account: Account): BalanceFacts {
    const { accounts, settings } = this.#context
    const low = settings.billingLowBalance
    return { account, currency: accounts.currency, lowBalance: low === undefined ? undefined : BigInt(low) }
  }

  /** Called when the Account of a name was deleted or replaced. */
  forget(name: string): void {
    this.#shown.forget(name)
  }

  stop(): void {
    this.#shown.stop()
  }

  /** Publishes a sum of Credits that another process has written, and books that turn out to be incomplete or whole. */
  #changed(name: string): void {
    const { accounts, enqueue } = this.#context
    const isBroken = accounts.balances.isBroken(name)
    const record = accounts.recordOf(name)
    const isUnpublished = record?.balance !== undefined && record.balance.credits !== accounts.creditsOf(name)
    if (isBroken !== this.#broken.has(name) || isUnpublished) enqueue(accountResource.kind, { namespace: '', name }, 'change')
    setTo(this.#broken, name, isBroken)
    const isDoubted = accounts.balances.heldBackOf(name) > 0n
    if (isDoubted !== this.#doubted.has(name)) enqueue(accountResource.kind, { namespace: '', name }, 'background')
    setTo(this.#doubted, name, isDoubted)
    const reading = this.#read(name)
    if (this.#weigh(name, reading)?.kind === 'None')
      this.#shown.forget(name) // the status is right, and a reading of incomplete books is not
    else this.#shown.read(name, reading)
  }

  #restored(name: string): void {
    const account = this.#context.accounts.informer.get({ namespace: '', name })
    if (account) this.#context.recordEvent(account, 'SpendRestored', RESTORED)
  }

  #read(name: string): BalanceReading {
    const { accounts, subjects, clock } = this.#context
    const { balances, credits } = accounts
    return {
      balance: balances.balanceOf(name),
      spent: balances.spentOf(name),
      credits: credits.sumOf(name),
      atMs: subjects.timeMs() ?? clock.now(),
    }
  }

  #weigh(name: string, reading: BalanceReading): Weight | undefined {
    const { accounts, ownWrites } = this.#context
    const cached = accounts.informer.get({ namespace: '', name })
    if (cached === undefined) return undefined
    return WEIGHTS[urgencyOf(this.factsOf(ownWrites.newest(cached)), reading, this.#shown.shown(name))]
  }
}

function setTo(names: Set<string>, name: string, isIn: boolean): void {
  if (isIn) names.add(name)
  else names.delete(name)
}
