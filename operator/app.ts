/**
 * The operator put together: createOperator(deps) listens on nothing and knows no settings but those passed in. `main.ts` runs it on a
 * cluster, standalone on a folder.
 */
import { encodeModelRecord } from '../gateway/shared/model-record.ts'
import { OutageLog } from '../gateway/shared/outage-log.ts'
import { ChangeSignals } from './apikey/change-signals.ts'
import type { ApiKeyDeps, RecordEvent } from './apikey/deps.ts'
import { reconcile as reconcileApiKey } from './apikey/reconcile.ts'
import { keyRecords, rescue } from './apikey/rescue.ts'
import { sweep } from './apikey/sweep.ts'
import { CredentialVault } from './apikey/vault.ts'
import type { ApiKey } from './api/apikey.ts'
import { EVENTS } from './api/conditions.ts'
import type { ServedModel } from './api/served-model.ts'
import { type Clock, sleep } from '../gateway/shared/clock.ts'
import { Keyring } from './keyring/keyring.ts'
import { type Informer, refKey, refOf, uidOf } from './kube/port.ts'
import { Controller } from './loop/controller.ts'
import { Resync } from './loop/resync.ts'
import type { OperatorDeps } from './operator-deps.ts'
import { PendingConfirmations } from './projection/pending-confirmations.ts'
import { Acknowledgements } from './projection/acknowledgements.ts'
import { Projection } from './projection/projection.ts'
import type { ProjectionChange } from './projection/store.ts'
import { coldStartRecord, decide as decideModel } from './served-model/decide.ts'
import type { ServedModelDeps } from './served-model/deps.ts'
import { gather as gatherModel } from './served-model/gather.ts'
import { GatewayFiles } from './served-model/gateway-files.ts'
import { type ProjectedModels, reconcile as reconcileServedModel } from './served-model/reconcile.ts'
import { SliceIndex } from './slice-index.ts'
import { subscribeAll } from './triggers.ts'

/** Most of these wait for a keyring commit or an acknowledgement; calls to the API are bounded by the client. */
const WORKERS = 512
/** Sweeps come this often, ms. */
const SWEEP_EVERY_MS = 600_000
/** A start that the API server or the keyring does not let through is tried again, ms. */
const START_RETRY_MS = 2_000
/** Longest end of work under way, ms. */
const STOP_WITHIN_MS = 25_000

/** An operator that leads. */
export interface Operator {
  /** Resolves when everything that exists has been queued; from then on changes are followed. */
  start(): Promise<void>
  /** Takes nothing new, ends what is under way. */
  stop(): Promise<void>
}

/** @param deps leadership must be held before `start` */
export function createOperator(deps: OperatorDeps): Operator {
  const parts = createParts(deps)
  const { projection, acknowledgements, files, controllers, resyncs, keyDeps } = parts
  const stopping = new AbortController()

  async function start(): Promise<void> {
    await Promise.all(Object.values(deps.informers).map((informer) => informer.synced))
    await retried(`the keyring in namespace ${deps.settings.namespace} cannot be read`, () => parts.keyring.load(), deps, stopping.signal)
    const models = await retried('the Secret of a ServedModel cannot be read', () => modelRecords(parts), deps, stopping.signal)
    if (!models || stopping.signal.aborted) return // what was not read would be taken for deleted
    acknowledgements.start()
    await projection.start([...keyRecords(keyDeps), ...models], parts.keyring.rev)
    if (stopping.signal.aborted) return
    files.start()
    subscribeAll(deps.informers, controllers, keyDeps.changes)
    for (const object of deps.informers.servedModels.list()) controllers.servedModels.enqueue(refOf(object))
    for (const object of deps.informers.apiKeys.list()) controllers.apiKeys.enqueue(refOf(object))
    controllers.servedModels.start()
    controllers.apiKeys.start()
    for (const resync of resyncs) resync.start()
    void sweepNowAndThen(keyDeps, deps, stopping.signal)
  }

  async function stop(): Promise<void> {
    stopping.abort()
    for (const resync of resyncs) resync.stop()
    acknowledgements.stop() // wakes whoever waits for gateways
    await Promise.all([controllers.apiKeys.stop(STOP_WITHIN_MS), controllers.servedModels.stop(STOP_WITHIN_MS)])
    await parts.keyring
      .flush()
      .catch((error: unknown) => deps.log.warn(`the keyring could not be written at the end (${messageOf(error)})`))
    projection.stop()
    files.stop()
  }

  return { start, stop }
}

type Parts = ReturnType<typeof createParts>

function createParts(deps: OperatorDeps) {
  const { kube, store, clock, log, leader, settings, informers, metrics } = deps
  const { namespace, gatewayService } = settings
  const { assertLeading } = leader
  const warn = (message: string): void => log.warn(message)
  const slices = new SliceIndex(informers.endpointSlices)
  const recordEvent: RecordEvent = (object, reason, note) => deps.events.record(object, { ...EVENTS[reason], reason, note })
  const keyring = new Keyring({
    kube,
    namespace,
    shards: settings.keyringShards,
    assertLeading,
    warn,
    onCommit: (...commit) => metrics?.committed(...commit),
  })
  const projection = new Projection({
    store,
    clock,
    fence: leader.fence,
    raiseFence: leader.raiseFence,
    assertLeading,
    onFenced: leader.onFenced,
    rescue: (id, text) => rescue(id, text, keyDeps),
    log,
    outage: new OutageLog('Redis', log, clock),
  })
  const pending = new PendingConfirmations()
  const acknowledgements = new Acknowledgements({
    store,
    clock,
    epoch: () => projection.epoch,
    gatewaySlices: () => slices.of(namespace, gatewayService),
    onPoll: () => afterPoll(),
  })
  const files = new GatewayFiles({ kube, namespace, assertLeading, warn })
  const shared = { kube, projection, acknowledgements, recordEvent, clock, assertLeading }
  const keyDeps: ApiKeyDeps = {
    ...shared,
    apiKeys: informers.apiKeys,
    keyring,
    vault: new CredentialVault(),
    changes: new ChangeSignals(),
    publicURL: settings.publicURL,
    revocationWaitMs: settings.revocationWaitMs,
    onRevoked: (seconds) => metrics?.revoked(seconds),
  }
  const modelDeps: ServedModelDeps = {
    ...shared,
    servedModels: informers.servedModels,
    services: informers.services,
    namespaces: informers.namespaces,
    slicesOf: (ns, service) => slices.of(ns, service),
    files,
    allowLoopback: settings.allowLoopback,
  }
  const projectedModels: ProjectedModels = new Map()
  const controllers = {
    apiKeys: controller('ApiKey', deps, async (ref) => {
      const result = await reconcileApiKey(ref, keyDeps).finally(() => keyDeps.changes.done(ref))
      pending.set(refKey(ref), ref, result.pending)
      return result
    }),
    servedModels: controller('ServedModel', deps, (ref) => reconcileServedModel(ref, projectedModels, modelDeps)),
  }

  function afterPoll(): void {
    for (const ref of pending.changed((rev, uid) => acknowledgements.of(rev, uid))) controllers.apiKeys.enqueue(ref)
    for (const uid of pending.changedHealth(acknowledgements.live)) {
      for (const model of informers.servedModels.list()) if (model.metadata.uid === uid) controllers.servedModels.enqueue(refOf(model))
    }
    metrics?.polled({ revision: projection.rev, waiting: pending.size, live: acknowledgements.live })
  }

  const resyncs = [
    resyncOf(informers.apiKeys, controllers.apiKeys, clock),
    resyncOf(informers.servedModels, controllers.servedModels, clock),
  ]
  return { keyring, projection, acknowledgements, files, controllers, resyncs, keyDeps, modelDeps, projectedModels }
}

function resyncOf(informer: Informer<ApiKey> | Informer<ServedModel>, target: Controller, clock: Clock): Resync {
  return new Resync({ clock, random: Math.random, informer, enqueue: (ref, priority) => target.enqueue(ref, priority) })
}

function controller(name: string, deps: OperatorDeps, reconcile: ConstructorParameters<typeof Controller>[0]['reconcile']): Controller {
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

/** @returns what `read` returned at last; undefined when the operator was stopped before */
async function retried<T>(problem: string, read: () => Promise<T>, deps: OperatorDeps, signal: AbortSignal): Promise<T | undefined> {
  while (!signal.aborted) {
    try {
      return await read()
    } catch (error) {
      deps.log.warn(`${problem} (${messageOf(error)}); tried again`)
      await sleep(deps.clock, START_RETRY_MS, signal)
    }
  }
  return undefined
}

async function modelRecords({ modelDeps, files, projectedModels }: Parts): Promise<ProjectionChange[]> {
  const records: ProjectionChange[] = []
  for (const model of modelDeps.servedModels.list()) {
    const uid = uidOf(model)
    const { observed, tokens } = await gatherModel(model, modelDeps)
    const { record } = decideModel(observed)
    files.setTokens(uid, tokens)
    files.setRecord(uid, record && encodeModelRecord(coldStartRecord(record)))
    projectedModels.set(refKey(refOf(model)), uid)
    if (record) records.push({ kind: 'model', op: 'put', id: uid, text: encodeModelRecord(record) })
  }
  return records
}

async function sweepNowAndThen(keyDeps: ApiKeyDeps, deps: OperatorDeps, signal: AbortSignal): Promise<void> {
  const { watchNamespaces } = deps.settings
  const watches = (namespace: string): boolean => watchNamespaces.length === 0 || watchNamespaces.includes(namespace)
  while (!signal.aborted) {
    try {
      const revoked = await sweep(keyDeps, watches, (count) => {
        deps.metrics?.sweepRefused()
        deps.log.error(`${count} issued keys have no ApiKey in the cache; that many at once is more likely a fault, so none is revoked`)
      })
      if (revoked > 0) deps.log.warn(`${revoked} keys without an ApiKey were revoked: their finalizer had been removed by force`)
    } catch (error) {
      deps.log.warn(`the sweep of orphaned keys failed (${messageOf(error)}); tried again later`)
    }
    await sleep(deps.clock, SWEEP_EVERY_MS, signal)
    if (!signal.aborted) keyDeps.keyring.check()
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
