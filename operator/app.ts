/**
 * The operator put together: createOperator(deps) listens on nothing and knows no settings but those passed in. `main.ts` runs it on a
 * cluster, standalone on a folder.
 */
import { sleep } from '../gateway/shared/clock.ts'
import { encodeModelRecord } from '../gateway/shared/model-record.ts'
import { keyRecords } from './apikey/rescue.ts'
import { createControllers } from './controllers.ts'
import { refKey, refOf, uidOf } from './kube/port.ts'
import type { OperatorDeps } from './operator-deps.ts'
import { createParts, type OperatorParts } from './parts.ts'
import type { ProjectionChange } from './projection/store.ts'
import { coldStartRecord, decide as decideModel } from './served-model/decide.ts'
import { gather as gatherModel } from './served-model/gather.ts'
import type { ProjectedModels } from './served-model/reconcile.ts'
import { Sweeper } from './sweeper.ts'
import { subscribeAll } from './triggers.ts'

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
  const sweeper = new Sweeper(deps)
  const parts: OperatorParts = createParts(deps, { polled: () => controllers.afterPoll(), gone: () => sweeper.soon() })
  const projectedModels: ProjectedModels = new Map()
  const controllers = createControllers(deps, parts, projectedModels)
  const { projection, acknowledgements, files, keyDeps } = parts
  const stopping = new AbortController()

  async function start(): Promise<void> {
    await Promise.all(Object.values(deps.informers).map((informer) => informer.synced))
    await retried(`the keyring in namespace ${deps.settings.namespace} cannot be read`, () => parts.keyring.load(), deps, stopping.signal)
    await retried('an ApiKey of the keyring cannot be read', () => sweeper.beforeStart(keyDeps), deps, stopping.signal)
    const models = await retried(
      'the Secret of a ServedModel cannot be read',
      () => modelRecords(parts, projectedModels),
      deps,
      stopping.signal,
    )
    if (!models || stopping.signal.aborted) return // what was not read would be taken for deleted
    acknowledgements.start()
    await projection.start([...keyRecords(keyDeps), ...models], parts.keyring.rev)
    if (stopping.signal.aborted) return
    files.start()
    subscribeAll(deps.informers, controllers, keyDeps)
    for (const object of deps.informers.servedModels.list()) controllers.servedModels.enqueue(refOf(object))
    for (const object of deps.informers.apiKeys.list()) controllers.apiKeys.enqueue(refOf(object))
    controllers.servedModels.start()
    controllers.apiKeys.start()
    for (const resync of controllers.resyncs) resync.start()
    void sweeper.run(keyDeps, stopping.signal)
  }

  async function stop(): Promise<void> {
    stopping.abort()
    for (const resync of controllers.resyncs) resync.stop()
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

async function modelRecords({ modelDeps, files }: OperatorParts, projectedModels: ProjectedModels): Promise<ProjectionChange[]> {
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

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
