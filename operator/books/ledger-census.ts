/** Walks over every subject with budgets, some per turn: settles the holds of dead processes and drops closed windows. */
import type { Clock } from '#platform/clock.ts'
import type { LedgerMetrics } from '../operator-deps.ts'
import type { BudgetSurvey, OperatorLedgerStore, SubjectFields } from './ledger-store.ts'
import type { ProcessWatch } from './process-watch.ts'
import { forgettable } from './spend-plan.ts'
import type { StoreTime } from './store-time.ts'
import type { Subjects } from './subject-ledger.ts'

/** Subjects per turn of a second: Redis must serve gateways at the same time. */
const PER_TURN = 1_000
/** Longest time between the starts of two walks, ms. The death of a process starts a walk too. */
const EVERY_MS = 3_600_000

export interface CensusDeps {
  readonly store: Pick<OperatorLedgerStore, 'survey' | 'reap' | 'bury' | 'forget' | 'dropBudgets'>
  readonly clock: Clock
  readonly time: Pick<StoreTime, 'read'>
  readonly subjects: Pick<Subjects, 'budgetsOf'>
  readonly metrics?: Pick<LedgerMetrics, 'reaped'> | undefined
  readonly processes: ProcessWatch
  /** All subjects with budgets. */
  readonly uids: () => Iterable<string>
}

export class LedgerCensus {
  readonly #deps: CensusDeps
  #left: string[] = []
  #nextMs = Number.NEGATIVE_INFINITY
  #isDue = false

  constructor(deps: CensusDeps) {
    this.#deps = deps
  }

  /** Requests another walk after the present one, because a process has died. */
  request(): void {
    this.#isDue = true
  }

  /** Runs one turn. @throws errors of the store; the next turn then takes the same subjects */
  async turn(): Promise<void> {
    const { store, clock } = this.#deps
    if (this.#left.length === 0) this.#begin(clock.monotonic())
    const uids = this.#left.slice(-PER_TURN)
    if (uids.length === 0) return
    const surveys = await store.survey(uids)
    await this.#settle(uids, surveys)
    this.#left.length -= uids.length
  }

  #begin(nowMs: number): void {
    if (!this.#isDue && nowMs < this.#nextMs) return
    this.#isDue = false
    this.#nextMs = nowMs + EVERY_MS
    this.#left = [...this.#deps.uids()]
  }

  async #settle(uids: readonly string[], surveys: readonly BudgetSurvey[]): Promise<void> {
    const { store, clock, time, metrics, processes } = this.#deps
    const nowMs = clock.monotonic()
    for (const { holders, spenders } of surveys) for (const process of [...holders, ...spenders]) processes.met(process, nowMs)
    const dead = listed(uids, (at) => surveys[at]?.holders.filter((process) => processes.isDead(process, nowMs)))
    const ended = listed(uids, (at) => surveys[at]?.spenders.filter((process) => processes.cannotReturn(process, nowMs)))
    await store.dropBudgets(uids.filter((_, at) => surveys[at]?.state === 'damaged')) // the next read seeds them again
    for (const [process, subjects] of dead) await store.reap(process, subjects)
    for (const [process, subjects] of ended) await store.bury(process, subjects)
    await store.forget(this.#over(uids, surveys, await time.read()))
    const reaped = [...dead.values()].reduce((sum, subjects) => sum + subjects.length, 0)
    if (reaped > 0) metrics?.reaped(reaped)
  }

  #over(uids: readonly string[], surveys: readonly BudgetSurvey[], nowMs: number): readonly SubjectFields[] {
    return uids.flatMap((subject, at): SubjectFields[] => {
      const budgets = this.#deps.subjects.budgetsOf(subject)
      const fields = budgets ? forgettable(surveys[at]?.windows ?? [], budgets, nowMs) : []
      return fields.length > 0 ? [{ subject, fields }] : []
    })
  }
}

/** @returns subjects by process */
function listed(uids: readonly string[], processesAt: (at: number) => readonly string[] | undefined): ReadonlyMap<string, string[]> {
  const pairs = uids.flatMap((uid, at) => (processesAt(at) ?? []).map((process) => ({ uid, process })))
  const groups = Map.groupBy(pairs, ({ process }) => process)
  return new Map([...groups].map(([process, some]) => [process, some.map(({ uid }) => uid)]))
}
