/** The ledger's store in memory, with the operator's calls. The test sets the counts of the gateways. */
import type {
  BudgetRead,
  BudgetSurvey,
  LedgerKey,
  OperatorLedgerStore,
  SeedOutcome,
  SubjectCheckpoints,
  SubjectFields,
  WindowSpend,
} from '../../operator/books/ledger-store.ts'

interface Budgets {
  readonly windows: Map<string, WindowSpend>
  readonly holders: Map<string, number>
  readonly spenders: Set<string>
  isDamaged: boolean
}

/** A Redis without errors, with one library. */
export class FakeLedgerStore implements OperatorLedgerStore {
  readonly budgets = new Map<string, Budgets>()
  /** Names of gateway processes. */
  readonly named = new Set<string>()
  /** Other keys, by the subject that they belong to. */
  readonly others = new Map<string, string | undefined>()
  /** The calls so far, `<verb> <subject>`. */
  readonly calls: string[] = []
  /** The clock of the store, ms since 1970. */
  readonly #now: () => number
  isLoaded = false
  isDown = false
  isFull = false

  constructor(now: () => number) {
    this.#now = now
  }

  spend(subject: string, field: string, spent: number): void {
    const former = this.window(subject, field)
    this.budgets.get(subject)?.windows.set(field, { ...former, spent })
    this.named.add(subject)
  }

  hold(subject: string, field: string, process: string, held: number): void {
    const former = this.window(subject, field)
    this.budgets.get(subject)?.windows.set(field, { ...former, held: former.held + held })
    this.budgets.get(subject)?.holders.set(process, held)
    this.budgets.get(subject)?.spenders.add(process)
  }

  window(subject: string, field: string): WindowSpend {
    return this.budgets.get(subject)?.windows.get(field) ?? { spent: 0, unsettled: 0, held: 0 }
  }

  /** As FLUSHALL does; functions stay. */
  wipe(): void {
    this.budgets.clear()
    this.named.clear()
    this.others.clear()
  }

  async prepare(): Promise<0 | 1> {
    this.#ask('prepare')
    const loaded = this.isLoaded ? 0 : 1
    this.isLoaded = true
    return loaded
  }

  async timeMs(): Promise<number> {
    this.#ask('time')
    return this.#now()
  }

  async settled(limit: number): Promise<readonly string[]> {
    this.#ask()
    const names = [...this.named].slice(0, limit)
    for (const name of names) this.named.delete(name)
    return names
  }

  async read(asked: readonly SubjectFields[]): Promise<readonly BudgetRead[]> {
    this.#ask()
    return asked.map(({ subject, fields }): BudgetRead => {
      this.calls.push(`read ${subject}`)
      const state = this.#stateOf(subject)
      return state === 'seeded' ? { state, windows: fields.map((field) => this.window(subject, field)) } : { state }
    })
  }

  async survey(subjects: readonly string[]): Promise<readonly BudgetSurvey[]> {
    this.#ask()
    return subjects.map((subject) => {
      const { windows, holders, spenders } = this.budgets.get(subject) ?? emptyBudgets()
      return { state: this.#stateOf(subject), windows: [...windows.keys()], holders: [...holders.keys()], spenders: [...spenders] }
    })
  }

  async seed(subjects: readonly SubjectCheckpoints[]): Promise<readonly SeedOutcome[]> {
    this.#ask()
    return subjects.map(({ subject, checkpoints }) => {
      this.calls.push(`seed ${subject}`)
      if (this.#stateOf(subject) === 'damaged') return 'damaged'
      const budgets = this.budgets.get(subject) ?? emptyBudgets()
      const low = checkpoints.filter(([field, spent]) => spent > this.window(subject, field).spent)
      if (this.budgets.has(subject) && low.length === 0) return 'present'
      this.budgets.set(subject, budgets)
      for (const [field, spent] of low) budgets.windows.set(field, { ...this.window(subject, field), spent })
      return 'planted'
    })
  }

  async dropBudgets(subjects: readonly string[]): Promise<void> {
    for (const subject of subjects) this.budgets.delete(subject)
  }

  async forget(windows: readonly SubjectFields[]): Promise<void> {
    for (const { subject, fields } of windows) for (const field of fields) this.budgets.get(subject)?.windows.delete(field)
  }

  async reap(process: string, subjects: readonly string[]): Promise<void> {
    for (const subject of subjects) {
      this.calls.push(`reap ${subject} ${process}`)
      this.budgets.get(subject)?.holders.delete(process)
    }
  }

  async bury(process: string, subjects: readonly string[]): Promise<void> {
    for (const subject of subjects) this.budgets.get(subject)?.spenders.delete(process)
  }

  async remove(subjects: readonly string[]): Promise<readonly number[]> {
    this.#ask()
    return subjects.map((subject) => {
      this.calls.push(`remove ${subject}`)
      const names = [...this.others].flatMap(([name, owner]) => (owner === subject ? [name] : []))
      for (const name of names) this.others.delete(name)
      return Number(this.budgets.delete(subject)) + names.length
    })
  }

  async isNearlyFull(): Promise<boolean> {
    this.#ask()
    return this.isFull
  }

  async *walk(): AsyncIterable<readonly LedgerKey[]> {
    this.#ask()
    yield [...this.budgets].map(([subject, { isDamaged }]) => ({ name: `budget ${subject}`, subject, isDamaged }))
    yield [...this.others].map(([name, subject]) => ({ name, subject, isDamaged: subject === undefined }))
  }

  async unlink(names: readonly string[]): Promise<void> {
    for (const name of names) {
      this.others.delete(name)
      this.budgets.delete(name.replace('budget ', ''))
    }
  }

  #stateOf(subject: string): BudgetRead['state'] {
    const found = this.budgets.get(subject)
    if (found === undefined) return 'unseeded'
    return found.isDamaged ? 'damaged' : 'seeded'
  }

  #ask(call?: string): void {
    if (call !== undefined) this.calls.push(call)
    if (this.isDown) throw new Error('the store is down')
    if (!this.isLoaded && call === undefined) throw new Error('ERR Function not found')
  }
}

function emptyBudgets(): Budgets {
  return { windows: new Map(), holders: new Map(), spenders: new Set(), isDamaged: false }
}
