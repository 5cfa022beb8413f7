/** The spend of budgets for the statuses. In a cluster the operator reads it from Redis, here from the ledger of the gateway. */
import type { Cancel, Clock } from '#platform/clock.ts'
import type { ApiKey } from '#api/apikey.ts'
import { type Informer, uidOf } from '#kube/port.ts'
import { presentWindows } from '../operator/books/spend-plan.ts'
import { keyPolicy } from '#api/key-policy.ts'
import { effective } from '#policy/effective.ts'
import type { SubjectUsage, UsageSource } from '../operator/books/subject-ledger.ts'
import type { SavedSpend } from './state-folder.ts'

/** What the source needs. */
export interface SpentUsageDeps {
  readonly clock: Clock
  readonly keys: Pick<Informer<ApiKey>, 'list'>
  /** Spend by uid of the ApiKey. */
  readonly spent: () => SavedSpend['spent']
}

const EVERY_MS = 1_000

/** Reads the ledger every second and reports changes. */
export class SpentUsage implements UsageSource {
  readonly #deps: SpentUsageDeps
  readonly #known = new Map<string, string>()
  #listener: (uid: string, usage: SubjectUsage) => void = () => undefined
  #cancel: Cancel | undefined

  constructor(deps: SpentUsageDeps) {
    this.#deps = deps
  }

  onRead(listener: (uid: string, usage: SubjectUsage) => void): void {
    this.#listener = listener
  }

  start(): void {
    this.#cancel = this.#deps.clock.after(EVERY_MS, () => {
      this.#read()
      this.start()
    })
  }

  stop(): void {
    this.#cancel?.()
  }

  #read(): void {
    const spent = this.#deps.spent()
    for (const key of this.#deps.keys.list()) {
      const uid = uidOf(key)
      if ((key.spec.budgets ?? []).length === 0 || (spent[uid] === undefined && !this.#known.has(uid))) continue
      const usage = usageOf(key, spent[uid] ?? {}, this.#deps.clock.now())
      const text = JSON.stringify([key.metadata.generation, usage]) // another amount is another percentage
      if (text === this.#known.get(uid) || (!this.#known.has(uid) && isUnused(usage))) continue
      this.#known.set(uid, text)
      this.#listener(uid, usage)
    }
  }
}

/** Whether there is no usage to report: after a report, a status shows the next reading only a minute later. */
function isUnused({ budgets }: SubjectUsage): boolean {
  return budgets.every(({ spent }) => spent === 0)
}

function usageOf({ spec }: ApiKey, spent: SavedSpend['spent'][string], nowMs: number): SubjectUsage {
  const { budgets } = effective(keyPolicy(spec))
  const readings = presentWindows(budgets, nowMs).map(({ budget: { name, unit, window }, field, startMs }) => {
    return { budget: name, unit, window, spent: spent[field] ?? 0, windowStartMs: startMs }
  })
  return { budgets: readings, lastUsedMs: undefined }
}
