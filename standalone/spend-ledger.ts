/**
 * The ledger of `make run`: in memory. It stores the spend of budgets every ten seconds and at the end; rates restart at zero. The operator makes
 * the spend of balances durable, as in a cluster.
 */
import { LeaseLedger } from '../gateway/limits/lease-ledger.ts'
import { MemoryLedgerStore } from '../gateway/limits/memory-ledger.ts'
import type { LedgerCall, LedgerReply } from '#contract/ledger/ledger-call.ts'
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import type { Cancel, Clock } from '#platform/clock.ts'
import { isOver, presentWindows, readingsOf } from '../operator/books/spend-plan.ts'
import type { SubjectUsage, UsageSource } from '../operator/books/subject-ledger.ts'
import { MemoryBalanceStore } from './memory-balance-store.ts'
import type { SavedSpend } from './state-folder.ts'

export interface SpendLedgerDeps {
  readonly clock: Clock
  /** Random per start: the spend of a balance counts by process. */
  readonly process: string
  /** Spend of the last run; undefined if nothing was ever stored. */
  readonly resumed: SavedSpend | undefined
  /** @throws an error if the spend cannot be stored */
  readonly save: (spend: SavedSpend) => void
  readonly onUnsaved: (error: unknown) => void
}

/** Seed of all budgets. */
const SEED = 'standalone'
/** Time between two writes, ms. A crash loses at most the spend of this time. */
export const SAVE_EVERY_MS = 10_000
const READ_EVERY_MS = 1_000

/** Counts for one process. Budgets continue after a restart; those of a new key begin at zero. */
export class SpendLedger extends LeaseLedger {
  /** For the operator. */
  readonly balances: MemoryBalanceStore
  readonly #deps: SpendLedgerDeps
  readonly #memory: MemoryLedgerStore
  /** Subjects that have spent: their statuses change even if the spend is gone with its window. */
  readonly #reported = new Set<string>()
  #cancelSave: Cancel = () => undefined
  #cancelRead: Cancel = () => undefined

  constructor(deps: SpendLedgerDeps) {
    const { clock, process, resumed } = deps
    const memory = new MemoryLedgerStore(() => Math.floor(clock.now()))
    for (const [uid, fields] of Object.entries(resumed?.spent ?? {})) memory.seed(uid, SEED, Object.entries(fields))
    const call = (one: LedgerCall): Promise<LedgerReply> => {
      memory.seed(one.subject, SEED) // without effect on budgets that have begun
      return memory.call(one)
    }
    super({ store: { call, ping: () => memory.ping() }, clock, process, live: () => 1 })
    this.#deps = deps
    this.#memory = memory
    this.balances = new MemoryBalanceStore(memory)
    this.#keepSaving() // at once: from now on a crash loses spend
  }

  /** Passes on the spend of budgets every second, for statuses. In a cluster the operator reads it from Redis. */
  report(subjects: Parameters<UsageSource>[0], listener: Parameters<UsageSource>[1]): void {
    this.#cancelRead = this.#deps.clock.after(READ_EVERY_MS, () => {
      for (const uid of subjects.uids()) {
        const budgets = subjects.budgetsOf(uid) ?? []
        if (budgets.length === 0) continue
        const usage = usageOf(budgets, new Map(this.#memory.checkpoint(uid)), this.#deps.clock.now())
        if (!this.#reported.has(uid) && usage.budgets.every(({ spent }) => spent === 0)) continue
        this.#reported.add(uid)
        listener(uid, usage)
      }
      this.report(subjects, listener)
    })
  }

  override async close(deadlineMs: number): Promise<void> {
    this.#cancelSave()
    this.#cancelRead()
    await super.close(deadlineMs)
    this.#save(true)
  }

  #keepSaving(): void {
    this.#save(false)
    this.#cancelSave = this.#deps.clock.after(SAVE_EVERY_MS, () => this.#keepSaving())
  }

  #save(isFinal: boolean): void {
    const { clock, save, onUnsaved } = this.#deps
    const savedMs = Math.floor(clock.now())
    const spent = this.#memory.checkpoints().flatMap(([uid, fields]) => {
      const open = fields.filter(([field, amount]) => amount > 0 && !isOver(field, savedMs))
      return open.length === 0 ? [] : [[uid, Object.fromEntries(open)] as const]
    })
    try {
      save({ savedMs, isFinal, spent: Object.fromEntries(spent) })
    } catch (error) {
      onUnsaved(error)
    }
  }
}

/** The line about the spend of the last run; '' without any. @param hasBalances whether there is a prepaid account */
export function resumedLine(resumed: SavedSpend | undefined, hasBalances = false): string {
  if (resumed === undefined) return ''
  const what = [...(Object.keys(resumed.spent).length > 0 ? ['budgets'] : []), ...(hasBalances ? ['balances'] : [])].join(' and ')
  if (what === '') return ''
  const at = new Date(resumed.savedMs).toTimeString().slice(0, 8)
  const loss = resumed.isFinal ? '' : `, up to ${SAVE_EVERY_MS / 1_000} s lost`
  return `${what.charAt(0).toUpperCase()}${what.slice(1)} are resumed from ${at}${loss}.\n\n`
}

function usageOf(budgets: readonly BudgetRecord[], spent: ReadonlyMap<string, number>, nowMs: number): SubjectUsage {
  const asked = presentWindows(budgets, nowMs)
  const windows = asked.map(({ field }) => ({ spent: spent.get(field) ?? 0, unsettled: 0, held: 0 }))
  return { budgets: readingsOf(asked, windows), lastUsedMs: undefined }
}
