/** The ledger of `make run`: in memory. It stores the spend of budgets every ten seconds and at the end; rates restart at zero. */
import { LeaseLedger } from '../gateway/limits/lease-ledger.ts'
import { MemoryLedgerStore } from '../gateway/limits/memory-ledger.ts'
import type { LedgerCall, LedgerReply } from '#contract/ledger/ledger-call.ts'
import type { Cancel, Clock } from '#platform/clock.ts'
import type { SavedSpend } from './state-folder.ts'

/** What the ledger needs. */
export interface DurableLedgerDeps {
  readonly clock: Clock
  /** Name of the process in the ledger. */
  readonly process: string
  /** Spend of the last run; undefined if nothing was ever spent. */
  readonly resumed: SavedSpend | undefined
  /** @throws an error if the spend cannot be stored */
  readonly save: (spend: SavedSpend) => void
  readonly onUnsaved: (error: unknown) => void
}

/** Time between two writes, ms. A crash loses at most the spend of this time. */
export const SAVE_EVERY_MS = 10_000
/** A window that began longer ago has ended, whatever its length. */
const LONGEST_WINDOW_MS = 40 * 86_400_000

/** Counts for one process. Budgets continue after a restart. */
export class DurableLedger extends LeaseLedger {
  readonly #deps: DurableLedgerDeps
  readonly #store: SeededStore
  #saved = ''
  #cancel: Cancel | undefined

  constructor(deps: DurableLedgerDeps) {
    const { clock, process, resumed } = deps
    const store = new SeededStore(() => Math.floor(clock.now()), process, resumed?.spent ?? {})
    super({ store, clock, process, live: () => 1 })
    this.#deps = deps
    this.#store = store
    if (resumed) this.#save(false) // from now on a crash loses spend
    this.#saveLater()
  }

  /** Spend of budgets by uid of the ApiKey. */
  spent(): SavedSpend['spent'] {
    return this.#store.spent()
  }

  override async close(deadlineMs: number): Promise<void> {
    this.#cancel?.()
    await super.close(deadlineMs)
    this.#save(true)
  }

  #saveLater(): void {
    this.#cancel = this.#deps.clock.after(SAVE_EVERY_MS, () => {
      this.#save(false)
      this.#saveLater()
    })
  }

  #save(isFinal: boolean): void {
    const { clock, save, resumed, onUnsaved } = this.#deps
    const savedMs = Math.floor(clock.now())
    const spent = this.#store.spent(savedMs - LONGEST_WINDOW_MS)
    const text = JSON.stringify(spent)
    const isUnused = text === '{}' && resumed === undefined && this.#saved === ''
    if (isUnused || (text === this.#saved && !isFinal)) return
    try {
      save({ savedMs, isFinal, spent })
      this.#saved = text
    } catch (error) {
      onUnsaved(error)
    }
  }
}

/** The line about the spend of the last run. */
export function resumedLine({ savedMs, isFinal }: SavedSpend): string {
  const at = new Date(savedMs).toTimeString().slice(0, 8)
  return `Budgets are resumed from ${at}${isFinal ? '' : `, up to ${SAVE_EVERY_MS / 1_000} s lost`}.\n\n`
}

/** Budgets begin with the spend of the last run; those of a new key begin at zero. */
class SeededStore extends MemoryLedgerStore {
  readonly #seed: string
  readonly #resumed: SavedSpend['spent']
  readonly #subjects = new Set<string>()

  constructor(now: () => number, seed: string, resumed: SavedSpend['spent']) {
    super(now)
    this.#seed = seed
    this.#resumed = resumed
  }

  override call(call: LedgerCall): Promise<LedgerReply> {
    if (!this.#subjects.has(call.subject)) {
      this.#subjects.add(call.subject)
      this.seed(call.subject, this.#seed, Object.entries(this.#resumed[call.subject] ?? {}))
    }
    return super.call(call)
  }

  /**
   * Spend by subject, including subjects of the last run without requests since.
   * @param sinceMs windows that began before are left out
   */
  spent(sinceMs = 0): SavedSpend['spent'] {
    const used = [...this.#subjects].map((uid) => [uid, Object.fromEntries(this.checkpoint(uid))] as const)
    const all = Object.entries({ ...this.#resumed, ...Object.fromEntries(used) })
    const open = all.map(([uid, fields]) => [uid, Object.entries(fields).filter(([field]) => beganSince(field, sinceMs))] as const)
    return Object.fromEntries(open.flatMap(([uid, fields]) => (fields.length === 0 ? [] : [[uid, Object.fromEntries(fields)]])))
  }
}

/** Fields end in the start of their window; that of a window without an end is 0. */
function beganSince(field: string, sinceMs: number): boolean {
  const startMs = Number(field.slice(field.lastIndexOf(':') + 1))
  return startMs === 0 || startMs > sinceMs
}
