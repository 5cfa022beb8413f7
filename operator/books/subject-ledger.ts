/** The ledger, for the kinds whose objects have budgets. It knows such an object, a subject, by its uid alone. */
import type { Clock } from '#platform/clock.ts'
import { OutageLog } from '#platform/outage-log.ts'
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import { slicesOf } from '#kube/indexes.ts'
import type { OperatorDeps } from '../operator-deps.ts'
import type { Acknowledgements } from '../projection/acknowledgements.ts'
import { servingNames } from '../projection/serving-pods.ts'
import { SecretShards, shardsDeps } from '../shards/secret-shards.ts'
import { SPEND_SET } from '../shards/sets.ts'
import { BudgetLedger } from './budget-ledger.ts'

/** A reading of one budget of one subject. The amount is in the record of the subject: a changed amount keeps the spend. */
export interface BudgetReading {
  readonly budget: string
  readonly unit: BudgetRecord['unit']
  readonly window: BudgetRecord['window']
  /** Spend in the window, including open holds: micro-units or tokens, an integer of at least 0. */
  readonly spent: number
  /** ms since 1970; 0 for Lifetime. */
  readonly windowStartMs: number
}

export interface SubjectUsage {
  readonly budgets: readonly BudgetReading[]
  /** ms since 1970; undefined if unknown. */
  readonly lastUsedMs: number | undefined
}

/** Starts a source of readings. @param listener called with readings and the uid of their subject; it must only remember and enqueue */
export type UsageSource = (subjects: Pick<Subjects, 'uids' | 'budgetsOf'>, listener: (uid: string, usage: SubjectUsage) => void) => void

/** One kind of subjects: the ledger asks it, and reports to it. */
export interface SubjectKind {
  readonly uids: () => Iterable<string>
  /** Budgets in force, durable or about to be; undefined if there are none, or no such subject. */
  readonly budgetsOf: (uid: string) => readonly BudgetRecord[] | undefined
  /** Whether a subject with this uid exists or may exist. The ledger drops the counts of all others. */
  readonly mayExist: (uid: string) => boolean
  /** Called with each new reading; it must only remember and enqueue. */
  readonly onRead: (uid: string, usage: SubjectUsage) => void
  /** Called when lost spend was restored from the known spend, or other budgets have spend that is held back. */
  readonly onDoubt: (uid: string) => void
}

export class Subjects {
  /** undefined if gateways count in the memory of this process: then only readings of another source arrive. */
  readonly ledger: BudgetLedger | undefined
  readonly #kinds: SubjectKind[] = []
  readonly #clock: Clock

  constructor(deps: OperatorDeps, acknowledgements: Acknowledgements) {
    this.ledger = createLedger(deps, acknowledgements, this)
    this.#clock = deps.clock
    deps.usage?.(this, (uid, usage) => this.read(uid, usage))
  }

  /**
   * The time by which values, keys and windows end, ms since 1970: that of the store, since the clock of a leader may be wrong by days. undefined
   * before its first answer: nothing has ended for certain.
   */
  timeMs(): number | undefined {
    return this.ledger === undefined ? this.#clock.now() : this.ledger.storeTime()
  }

  /** Adds a kind of subjects, before the ledger starts. */
  add(kind: SubjectKind): void {
    this.#kinds.push(kind)
  }

  uids(): readonly string[] {
    return this.#kinds.flatMap(({ uids }) => [...uids()])
  }

  budgetsOf(uid: string): readonly BudgetRecord[] | undefined {
    for (const kind of this.#kinds) {
      const budgets = kind.budgetsOf(uid)
      if (budgets !== undefined) return budgets
    }
    return undefined
  }

  mayExist(uid: string): boolean {
    return this.#kinds.some((kind) => kind.mayExist(uid))
  }

  read(uid: string, usage: SubjectUsage): void {
    for (const { onRead } of this.#kinds) onRead(uid, usage)
  }

  doubtful(uid: string): void {
    for (const { onDoubt } of this.#kinds) onDoubt(uid)
  }
}

function createLedger(deps: OperatorDeps, acknowledgements: Acknowledgements, subjects: Subjects): BudgetLedger | undefined {
  const { ledger: store, clock, settings, leader, log, metrics, informers } = deps
  if (store === undefined) return undefined
  return new BudgetLedger({
    store,
    checkpoint: new SecretShards({ ...SPEND_SET, ...shardsDeps(deps) }),
    clock,
    subjects,
    live: () => acknowledgements.live,
    serving: () => new Set(servingNames(slicesOf(informers.endpointSlices, settings.namespace, settings.gatewayService))),
    assertLeading: leader.assertLeading,
    outage: new OutageLog('the ledger of limits', log, clock),
    durability: new OutageLog('the durable spend of budgets', log, clock),
    metrics: metrics?.ledger,
  })
}
