import type { BudgetReply, BudgetReport, BudgetRequest, LedgerCall } from '#contract/ledger/ledger-call.ts'
import { type BudgetWindow, isIn } from '#contract/values/budget-window.ts'
import { budgetField, GRANTS, MAX_SUM } from '#contract/ledger/ledger-layout.ts'

interface ProcessShare {
  held: number
  /** Undefined before the first report of the process. */
  spent: number | undefined
  /** Holds of the process that were counted as unsettled because the process seemed dead. */
  reaped: number
}

interface WindowState {
  spent: number
  held: number
  base: number
  unsettled: number
  readonly processes: Map<string, ProcessShare>
}

/** Budgets of one subject: spend and holds of every window. */
export class MemoryBudgets {
  readonly #windows = new Map<string, WindowState>()
  #seed = ''

  get seed(): string {
    return this.#seed
  }

  /** Starts the budgets from checkpoints, without a seed or with less spend than a checkpoint. @returns the seed in force */
  plant(seed: string, checkpoints: ReadonlyArray<readonly [field: string, spent: number]>): string {
    const low = checkpoints.filter(([field, spent]) => spent > (this.#windows.get(field)?.spent ?? 0))
    if (this.#seed !== '' && low.length === 0) return this.#seed
    for (const [field, spent] of low) this.#window(field).spent = spent
    this.#renew(seed)
    return seed
  }

  /** Whether a process knows of more spend of others: the store went back to an older state. The budgets then restart. */
  wentBack(call: LedgerCall): boolean {
    const { process, number, reports } = call
    if (this.#seed === '') return false
    const isOld = reports.some((row) => (this.#isReseeded(row) ? ageOf(this.#seed) <= ageOf(row.seed) : this.#isBehind(call, row)))
    if (isOld) this.#renew(`${process}:${number}-${Math.max(ageOf(this.#seed), ...reports.map(({ seed }) => ageOf(seed))) + 1}`)
    return isOld
  }

  /**
   * Counts the absolute state of a process.
   * @returns spend of all processes in that window
   */
  report(call: LedgerCall, row: BudgetReport): number {
    const window = this.#window(row.field)
    const share = this.#share(window, call.process)
    if (share.spent === undefined) share.spent = this.#firstSpent(window, call, row)
    window.unsettled = Math.max(0, window.unsettled - share.reaped)
    share.reaped = 0
    window.held = Math.max(0, sum(window.held - share.held, row.held))
    share.held = row.held
    if (row.spent > share.spent) {
      window.spent = sum(window.spent, row.spent - share.spent)
      share.spent = row.spent
    }
    return window.spent
  }

  /** The window that contains `nowMs`; undefined if neither does. */
  static pick({ windows }: BudgetRequest, nowMs: number): BudgetWindow | undefined {
    return windows.find((window) => isIn(window, nowMs))
  }

  /** The reason why `need` does not fit; see `BudgetReply`. */
  shortage(request: BudgetRequest, startMs: number): BudgetReply['short'] {
    const { amount, need } = request
    const { spent, unsettled, held } = this.#window(budgetField(request.budget, startMs))
    if (need <= 0 || amount - spent - unsettled - held >= need) return 'No'
    return amount - spent - unsettled < need ? 'Spent' : 'Held'
  }

  /** Grants `need` and more, or nothing if anything in the call is short. */
  grant(
    process: string,
    request: BudgetRequest,
    startMs: number,
    terms: { readonly isShort: boolean; readonly live: number },
  ): BudgetReply {
    const short = this.shortage(request, startMs)
    const window = this.#window(budgetField(request.budget, startMs))
    const rest = request.amount - window.spent - window.unsettled - window.held
    const grant = terms.isShort ? 0 : budgetGrant(request, rest, terms.live)
    if (grant > 0) {
      window.held += grant
      this.#share(window, process).held += grant
    }
    return { startMs, grant, spent: window.spent, unsettled: window.unsettled, held: window.held, short }
  }

  /** Moves the holds of a dead process to `unsettled`: they count as spent until it comes back. */
  reap(process: string): void {
    for (const window of this.#windows.values()) {
      const share = window.processes.get(process)
      if (!share || share.held === 0) continue
      window.held = Math.max(0, window.held - share.held)
      window.unsettled = sum(window.unsettled, share.held)
      share.reaped = sum(share.reaped, share.held)
      share.held = 0
    }
  }

  /** Drops windows that are over. */
  forget(fields: readonly string[]): void {
    for (const field of fields) this.#windows.delete(field)
  }

  /** Spend by window, for checkpoints. */
  checkpoint(): Array<readonly [field: string, spent: number]> {
    return Array.from(this.#windows, ([field, { spent }]) => [field, spent] as const)
  }

  /**
   * A seed other than the known one means that the budgets have restarted. The highest spend that any process saw counts as the base, and
   * only the unacknowledged spend of the process is added. Under the same seed the store was rolled back, and all spend under the seed is added,
   * unless the process was away and has been forgotten meanwhile.
   */
  #firstSpent(window: WindowState, { wasAway }: LedgerCall, row: BudgetReport): number {
    if (!this.#isReseeded(row)) return wasAway ? row.acknowledged : row.base
    const base = Math.max(window.base, row.seen)
    window.spent = sum(window.spent, base - window.base)
    window.base = base
    return row.acknowledged
  }

  #isReseeded({ seed }: BudgetReport): boolean {
    return seed !== '' && seed !== this.#seed
  }

  #isBehind({ process, wasAway }: LedgerCall, { field, spent, acknowledged, base, seen }: BudgetReport): boolean {
    const window = this.#windows.get(field)
    const counted = window?.processes.get(process)?.spent ?? (wasAway ? acknowledged : base)
    if (spent < counted) return false // the process has forgotten an old window
    return (window?.spent ?? 0) - counted < seen - acknowledged
  }

  /** Restarts the budgets under another seed, from what they have spent. Each process then adds only what no answer has acknowledged. */
  #renew(seed: string): void {
    this.#seed = seed
    for (const window of this.#windows.values()) {
      window.base = window.spent
      for (const share of window.processes.values()) share.spent = undefined
    }
  }

  #window(field: string): WindowState {
    const found = this.#windows.get(field)
    if (found) return found
    const window = { spent: 0, held: 0, base: 0, unsettled: 0, processes: new Map<string, ProcessShare>() }
    this.#windows.set(field, window)
    return window
  }

  #share(window: WindowState, process: string): ProcessShare {
    const found = window.processes.get(process)
    if (found) return found
    const share = { held: 0, spent: undefined, reaped: 0 }
    window.processes.set(process, share)
    return share
  }
}

/** Seeds end in a number. A seed that replaces another one has a larger number. */
function ageOf(seed: string): number {
  return Number(/-(\d+)$/.exec(seed)?.[1] ?? 0)
}

function sum(a: number, b: number): number {
  return Math.min(MAX_SUM, a + b)
}

function budgetGrant({ amount, need, ask, want }: BudgetRequest, rest: number, live: number): number {
  const granted = Math.max(0, Math.min(rest, Math.max(need, ask)))
  const free = rest - granted
  if (free < Math.floor(amount / GRANTS.lastBudgetPart)) return granted
  return granted + Math.max(0, Math.min(want, Math.floor(free / GRANTS.floatPart), Math.floor(free / (GRANTS.floatShare * live))))
}
