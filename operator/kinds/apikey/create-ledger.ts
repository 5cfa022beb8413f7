/** Creates the operator's side of the ledger. The keyring entries say which ApiKeys have budgets. */
import { OutageLog } from '#platform/outage-log.ts'
import type { ApiKey } from '#api/apikey.ts'
import { slicesOf } from '#kube/indexes.ts'
import type { Keyring } from '../../shards/keyring.ts'
import type { Informer } from '#kube/port.ts'
import type { OperatorContext } from '../../kind-controller.ts'
import { BudgetLedger, type BudgetLedgerDeps } from '../../books/budget-ledger.ts'
import { SpendCheckpoint } from '../../books/spend-checkpoint.ts'
import { UsageArchive } from '../../books/usage-archive.ts'
import { servingNames } from '../../projection/serving-pods.ts'
import { hasApiKey } from './orphans.ts'

/** Listeners of the ledger. */
export type LedgerListeners = Pick<BudgetLedgerDeps, 'onRead' | 'onLoss'>

/** @returns undefined if gateways count in the memory of this process */
export function createLedger(
  { deps, acknowledgements }: OperatorContext,
  keyring: Keyring,
  apiKeys: Informer<ApiKey>,
  listeners: LedgerListeners,
): BudgetLedger | undefined {
  const { ledger: store, kube, clock, settings, leader, log, metrics, informers } = deps
  if (store === undefined) return undefined
  const { assertLeading } = leader
  const own = { kube, namespace: settings.namespace, clock, assertLeading, warn: (message: string) => log.warn(message) }
  return new BudgetLedger({
    ...listeners,
    store,
    checkpoint: new SpendCheckpoint(own),
    usage: new UsageArchive({ ...own, onDropped: (days) => metrics?.ledger.usageDropped(days) }),
    clock,
    budgetsOf: (uid) => {
      const entry = keyring.pending(uid) ?? keyring.get(uid)
      return entry?.deletedMs === null ? entry.budgets : undefined
    },
    isKnown: (uid) => {
      const entry = keyring.pending(uid) ?? keyring.get(uid)
      return entry?.deletedMs === null || keyring.isUnreadable(uid) || keyring.isDamaged(uid) || hasApiKey({ uid }, apiKeys)
    },
    live: () => acknowledgements.live,
    serving: () => new Set(servingNames(slicesOf(informers.endpointSlices, settings.namespace, settings.gatewayService))),
    assertLeading,
    outage: new OutageLog('the ledger of limits', log, clock),
    durability: new OutageLog('the durable spend of budgets', log, clock),
    metrics: metrics?.ledger,
  })
}
