/** Creates the ledger of a leader, and joins the subjects of all kinds. */
import { OutageLog } from '#platform/outage-log.ts'
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import { slicesOf } from '#kube/indexes.ts'
import type { OperatorDeps } from '../operator-deps.ts'
import type { Acknowledgements } from '../projection/acknowledgements.ts'
import { servingNames } from '../projection/serving-pods.ts'
import { SecretShards } from '../shards/secret-shards.ts'
import { SPEND_SET } from '../shards/sets.ts'
import { BudgetLedger } from './budget-ledger.ts'
import type { Interval } from '../shards/spend-entry.ts'
import type { SubjectKind, SubjectLedger, SubjectUsage } from './subject-ledger.ts'

/** The subjects of all kinds. */
export class Subjects implements SubjectLedger {
  /** undefined if gateways count in the memory of this process: then only readings of another source arrive. */
  readonly ledger: BudgetLedger | undefined
  readonly #kinds: SubjectKind[] = []

  constructor(deps: OperatorDeps, acknowledgements: Acknowledgements) {
    this.ledger = createLedger(deps, acknowledgements, this)
    deps.usage?.onRead((uid, usage) => this.read(uid, usage))
  }

  add(kind: SubjectKind): void {
    this.#kinds.push(kind)
  }

  changed(uid: string): void {
    this.ledger?.changed(uid)
  }

  deleted(uid: string): void {
    this.ledger?.deleted(uid)
  }

  loss(uid: string): Interval | undefined {
    return this.ledger?.loss(uid)
  }

  /** All subjects of all kinds. */
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

  lost(uid: string): void {
    for (const { onLoss } of this.#kinds) onLoss(uid)
  }
}

function createLedger(deps: OperatorDeps, acknowledgements: Acknowledgements, subjects: Subjects): BudgetLedger | undefined {
  const { ledger: store, kube, clock, settings, leader, log, metrics, informers } = deps
  if (store === undefined) return undefined
  const { assertLeading } = leader
  return new BudgetLedger({
    store,
    checkpoint: new SecretShards({
      ...SPEND_SET,
      kube,
      namespace: settings.namespace,
      clock,
      assertLeading,
      warn: (message) => log.warn(message),
    }),
    clock,
    subjects,
    live: () => acknowledgements.live,
    serving: () => new Set(servingNames(slicesOf(informers.endpointSlices, settings.namespace, settings.gatewayService))),
    assertLeading,
    outage: new OutageLog('the ledger of limits', log, clock),
    durability: new OutageLog('the durable spend of budgets', log, clock),
    metrics: metrics?.ledger,
  })
}
