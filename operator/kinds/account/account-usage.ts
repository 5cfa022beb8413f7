/** The use of the budgets that the keys of an account share: what the ledger asks about accounts, and the readings that statuses show. */
import type { Account } from '#api/account.ts'
import { accounts as accountResource } from '#api/resources.ts'
import type { AccountRecord } from '#contract/records/account-record.ts'
import { refOf, uidOf } from '#kube/port.ts'
import { sharedPolicy } from '#policy/effective.ts'
import type { SubjectKind, SubjectUsage } from '../../books/subject-ledger.ts'
import type { OperatorContext } from '../kind.ts'
import { ShownUsage } from '../shown-usage.ts'
import { usageStatus, weigh, type Weight } from '../usage-status.ts'
import { policyOf } from './status.ts'

export class AccountUsage {
  readonly #context: OperatorContext
  /** By name in the ledger. */
  readonly #shown: ShownUsage

  constructor(context: OperatorContext) {
    this.#context = context
    this.#shown = new ShownUsage({
      clock: context.clock,
      weigh: (ledgerName, usage) => this.#weigh(ledgerName, usage),
      enqueue: (ledgerName) => this.#enqueue(ledgerName),
    })
    context.subjects.add(this.#subjects())
  }

  /** The reading for the status; undefined keeps the use that the status shows. */
  shown(ledgerName: string): SubjectUsage | undefined {
    return this.#shown.shown(ledgerName)
  }

  stop(): void {
    this.#shown.stop()
  }

  #subjects(): SubjectKind {
    const { accounts } = this.#context
    return {
      uids: () => accounts.books.ledgerNames(),
      budgetsOf: (ledgerName) => {
        const record = this.#recordOf(ledgerName)
        return record && sharedPolicy(record, accounts.planOf(record)).budgets
      },
      mayExist: (ledgerName) => accounts.books.mayHave(ledgerName),
      onRead: (ledgerName, usage) => {
        if (accounts.books.nameIn(ledgerName) !== undefined) this.#shown.read(ledgerName, usage)
      },
      onDoubt: (ledgerName) => this.#enqueue(ledgerName),
    }
  }

  #recordOf(ledgerName: string): AccountRecord | undefined {
    const account = this.#accountOf(ledgerName)
    return account && this.#context.accounts.records.get('account', uidOf(account))
  }

  #accountOf(ledgerName: string): Account | undefined {
    const { accounts, ownWrites } = this.#context
    const name = accounts.books.nameIn(ledgerName)
    const cached = name === undefined ? undefined : accounts.informer.get({ namespace: '', name })
    return cached && ownWrites.newest(cached)
  }

  #enqueue(ledgerName: string): void {
    const account = this.#accountOf(ledgerName)
    if (account) this.#context.enqueue(accountResource.kind, refOf(account), 'background')
  }

  #weigh(ledgerName: string, usage: SubjectUsage): Weight | undefined {
    const account = this.#accountOf(ledgerName)
    if (account === undefined) return undefined
    const former = this.#recordOf(ledgerName)
    const budgets = policyOf({ former, plan: this.#context.accounts.planOf(former) })?.budgets ?? []
    return weigh(account.status ?? {}, usageStatus(account.status, budgets, usage), budgets)
  }
}
