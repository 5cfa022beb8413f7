/** The ledger of `make run`: in memory. It writes the spend of budgets to a file every ten seconds and at the end. */
import { LeaseLedger } from '../gateway/limits/lease-ledger.ts'
import { MemoryLedgerStore } from '../gateway/limits/memory-ledger.ts'
import { endlessWindowAt as windowAt } from '../gateway/limits/window-at.ts'
import type { Cancel, Clock } from '#platform/clock.ts'
import type { LedgerCall, LedgerReply } from '#contract/ledger/ledger-call.ts'
import { readSpend, type SavedSpend, type SpendByField, spendText } from './spend-file.ts'

/** What the ledger needs. */
export interface DurableLedgerDeps {
  readonly clock: Clock
  /** Name of the process in the ledger. */
  readonly process: string
  readonly file: {
    /** Path for messages. */
    readonly path: string
    /** Undefined if there is no file yet. */
    read(): string | undefined
    /** @throws the error of the file system */
    write(text: string): void
  }
  /** Called when the file cannot be written. */
  readonly onUnwritten: (error: Error) => void
}

/** Time between two writes, ms. A crash loses at most the spend of this time. */
export const SAVE_EVERY_MS = 10_000
/** A window that began longer ago has ended, whatever its length. */
const LONGEST_WINDOW_MS = 40 * 86_400_000

/** Counts for one process. Budgets continue after a restart. */
export class DurableLedger extends LeaseLedger {
  /** Content of the file at the start. */
  readonly resumed: SavedSpend | undefined
  readonly #deps: DurableLedgerDeps
  readonly #store: SeededStore
  #written = ''
  #cancel: Cancel | undefined

  /** @throws Misconfigured for a damaged file */
  static open(deps: DurableLedgerDeps): DurableLedger {
    const resumed = readSpend(deps.file.read(), deps.file.path)
    return new DurableLedger(deps, resumed)
  }

  private constructor(deps: DurableLedgerDeps, resumed: SavedSpend | undefined) {
    const { clock, process } = deps
    const store = new SeededStore(() => Math.floor(clock.now()), process, resumed?.spent ?? {})
    super({ store, clock, process, live: () => 1, windowAt })
    this.#deps = deps
    this.#store = store
    this.resumed = resumed
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
    const { clock, file, onUnwritten } = this.#deps
    const savedMs = Math.floor(clock.now())
    const spent = withoutOldWindows(this.#store.spent(), savedMs)
    const text = JSON.stringify(spent)
    if (text === this.#written && !isFinal) return
    if (text === '{}' && this.resumed === undefined && this.#written === '') return // nothing was ever spent
    try {
      file.write(spendText({ savedMs, isFinal, spent }))
      this.#written = text
    } catch (error) {
      onUnwritten(error instanceof Error ? error : new Error(String(error)))
    }
  }
}

/** Budgets begin with the spend in the file; those of a new key begin at zero. */
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

  /** Spend by subject, including subjects of the file without requests since. */
  spent(): SavedSpend['spent'] {
    const used = [...this.#subjects].map((uid) => [uid, Object.fromEntries(this.checkpoint(uid))] as const)
    const all = { ...this.#resumed, ...Object.fromEntries(used) }
    return Object.fromEntries(Object.entries(all).filter(([, fields]) => Object.keys(fields).length > 0))
  }
}

/** Fields end in the start of their window; that of a window without an end is 0. */
function withoutOldWindows(spent: SavedSpend['spent'], nowMs: number): SavedSpend['spent'] {
  const isOpen = (field: string): boolean => {
    const startMs = Number(field.slice(field.lastIndexOf(':') + 1))
    return startMs === 0 || startMs > nowMs - LONGEST_WINDOW_MS
  }
  const kept = (fields: SpendByField): SpendByField => Object.fromEntries(Object.entries(fields).filter(([field]) => isOpen(field)))
  return Object.fromEntries(Object.entries(spent).map(([uid, fields]) => [uid, kept(fields)]))
}
