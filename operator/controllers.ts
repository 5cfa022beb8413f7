/** The two queues of the operator, and what besides a change puts an object into them: time, acknowledgements, health of backends. */
import type { Clock } from '../gateway/shared/clock.ts'
import type { ApiKey } from './api/apikey.ts'
import type { ServedModel } from './api/served-model.ts'
import { reconcile as reconcileApiKey } from './apikey/reconcile.ts'
import { type Informer, refKey, refOf } from './kube/port.ts'
import { Controller } from './loop/controller.ts'
import { Resync } from './loop/resync.ts'
import type { OperatorDeps } from './operator-deps.ts'
import type { OperatorParts } from './parts.ts'
import { PendingConfirmations } from './projection/pending-confirmations.ts'
import { type ProjectedModels, reconcile as reconcileServedModel } from './served-model/reconcile.ts'

/** Most of these wait for a keyring commit or an acknowledgement; calls to the API are bounded by the client. */
const WORKERS = 512

/** The queues and what feeds them. */
export interface Controllers {
  readonly apiKeys: Controller
  readonly servedModels: Controller
  readonly resyncs: readonly Resync[]
  /** Has those looked at for whom the last poll of the gateways brought news. */
  afterPoll(): void
}

/** @param projectedModels filled at start, kept by the reconcile of ServedModels */
export function createControllers(deps: OperatorDeps, parts: OperatorParts, projectedModels: ProjectedModels): Controllers {
  const { informers, clock, metrics } = deps
  const { acknowledgements, keyDeps, modelDeps, projection } = parts
  const pending = new PendingConfirmations()
  const apiKeys = controllerOf('ApiKey', deps, async (ref) => {
    const result = await reconcileApiKey(ref, keyDeps).finally(() => keyDeps.changes.done(ref))
    pending.set(refKey(ref), ref, result.pending)
    return result
  })
  const servedModels = controllerOf('ServedModel', deps, (ref) => reconcileServedModel(ref, projectedModels, modelDeps))

  function afterPoll(): void {
    for (const ref of pending.changed((rev, uid) => acknowledgements.of(rev, uid))) apiKeys.enqueue(ref)
    const uids = pending.changedHealth(acknowledgements.live)
    if (uids.size > 0)
      for (const model of informers.servedModels.list()) if (uids.has(model.metadata.uid ?? '')) servedModels.enqueue(refOf(model))
    metrics?.polled({ revision: projection.rev, waiting: pending.size, live: acknowledgements.live })
  }

  const resyncs = [resyncOf(informers.apiKeys, apiKeys, clock), resyncOf(informers.servedModels, servedModels, clock)]
  return { apiKeys, servedModels, resyncs, afterPoll }
}

function resyncOf(informer: Informer<ApiKey> | Informer<ServedModel>, target: Controller, clock: Clock): Resync {
  return new Resync({ clock, random: Math.random, informer, enqueue: (ref, priority) => target.enqueue(ref, priority) })
}

function controllerOf(name: string, deps: OperatorDeps, reconcile: ConstructorParameters<typeof Controller>[0]['reconcile']): Controller {
  const metrics = deps.metrics?.controller(name)
  return new Controller({
    name,
    reconcile,
    workers: WORKERS,
    clock: deps.clock,
    logger: deps.log,
    random: Math.random,
    ...(metrics ? { metrics } : {}),
  })
}
