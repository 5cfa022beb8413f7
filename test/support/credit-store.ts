/** The balances of accounts in memory, as the script of the ledger keeps them. A test can empty the store and take it back to an older state. */
import type { BalanceMerge, BalanceRead, BalanceStore, DeadHold } from '../../operator/books/balance-store.ts'
import { mergeSpend } from '../../operator/shards/account-book.ts'

interface Balance {
  openFrom: number | undefined
  closedSpend: bigint
  period: number
  /** By `<period>:<process>`. */
  spent: Map<string, number>
  holders: Map<string, number>
}

/** A report of a process, absolute, and what it needs. */
export interface BalanceCall {
  /** Name of the account in the ledger. */
  readonly ledger: string
  readonly process: string
  /** The present period, as the process knows it. */
  readonly period: number
  readonly held: number
  readonly spent: ReadonlyMap<number, number>
  /** Sum of the credits, as the process knows it. */
  readonly credits: bigint
  /** 0: the call only reports. */
  readonly need: number
}

export interface BalanceAnswer {
  readonly period: number
  readonly openFrom: number | undefined
  readonly isGranted: boolean
}

export class CreditStore implements BalanceStore {
  #balances = new Map<string, Balance>()
  isDown = false

  call({ ledger, process, period, held, spent, credits, need }: BalanceCall): BalanceAnswer {
    const balance = this.#open(ledger)
    const { openFrom } = balance
    balance.period = Math.max(balance.period, period, ...spent.keys(), openFrom === undefined ? 0 : openFrom + 1)
    for (const [at, amount] of spent) {
      const key = `${at}:${process}`
      const isOpen = at >= (openFrom ?? 0) && at >= balance.period - 1
      if (isOpen) balance.spent.set(key, Math.max(amount, balance.spent.get(key) ?? 0))
    }
    hold(balance, process, held)
    const free = credits - balance.closedSpend - BigInt(total(balance.spent) + total(balance.holders))
    const isGranted = need > 0 && openFrom !== undefined && free >= BigInt(need)
    if (isGranted) hold(balance, process, held + need)
    return { period: balance.period, openFrom, isGranted }
  }

  /** As FLUSHALL does. */
  wipe(): void {
    this.#balances.clear()
  }

  /** @returns a function that takes the store back to its present state */
  save(): () => void {
    const saved = structuredClone(this.#balances)
    return () => (this.#balances = structuredClone(saved))
  }

  /** Changes the counts of an account, as a foreign client does. */
  forge(ledger: string, change: (balance: Balance) => void): void {
    change(this.#open(ledger))
  }

  async readBalances(names: readonly string[]): Promise<readonly BalanceRead[]> {
    this.#assertUp()
    return names.map((name) => this.peek(name))
  }

  async mergeBalances(rows: readonly BalanceMerge[]): Promise<void> {
    this.#assertUp()
    for (const { name, books, isReady } of rows) {
      const balance = this.#open(name)
      const isNew = balance.openFrom === undefined
      const merged = mergeSpend({ ...balance, openFrom: balance.openFrom ?? 0, closedSpend: isNew ? 0n : balance.closedSpend }, books)
      if (!isNew || isReady) Object.assign(balance, { openFrom: merged.openFrom, closedSpend: merged.closedSpend })
      balance.spent = new Map(merged.spent)
      balance.period = Math.max(balance.period, merged.openFrom + 1)
    }
  }

  async raisePeriods(rows: ReadonlyArray<{ readonly name: string; readonly period: number }>): Promise<void> {
    this.#assertUp()
    for (const { name, period } of rows) {
      const balance = this.#open(name)
      balance.period = Math.max(balance.period, period)
    }
  }

  async freeHolds(rows: readonly DeadHold[]): Promise<void> {
    this.#assertUp()
    for (const { name, process, held } of rows) {
      const { holders } = this.#open(name)
      if (holders.get(process) === held) holders.delete(process)
    }
  }

  async dropBalances(names: readonly string[]): Promise<void> {
    this.#assertUp()
    for (const name of names) this.#balances.delete(name)
  }

  peek(name: string): BalanceRead {
    const balance = this.#balances.get(name)
    return balance === undefined || isEmpty(balance) ? 'absent' : structuredClone(balance)
  }

  #open(ledger: string): Balance {
    const known = this.#balances.get(ledger)
    if (known) return known
    const balance = { openFrom: undefined, closedSpend: 0n, period: 0, spent: new Map(), holders: new Map() }
    this.#balances.set(ledger, balance)
    return balance
  }

  #assertUp(): void {
    if (this.isDown) throw new Error('the store is down')
  }
}

function isEmpty({ openFrom, period, spent, holders }: Balance): boolean {
  return openFrom === undefined && period + spent.size + holders.size === 0
}

function hold({ holders }: Balance, process: string, held: number): void {
  if (held > 0) holders.set(process, held)
  else holders.delete(process)
}

function total(amounts: ReadonlyMap<string, number>): number {
  return [...amounts.values()].reduce((sum, amount) => sum + amount, 0)
}
