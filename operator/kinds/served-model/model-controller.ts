/** All ServedModels of an operator: projects them at a start, and maps watch events to the objects to reconcile. */
import { decodeModelRecord, type ModelRecord, modelRecordNamespace } from '#contract/records/model-record.ts'
import type { ServedModel } from '#api/served-model.ts'
import { namespaceOf, type ObjectRef, refKey, refOf, uidOf } from '#kube/port.ts'
import { SERVICE_LABEL } from '#kube/indexes.ts'
import type { EndpointSlice, Namespace, Service } from '#kube/resources.ts'
import type { Level } from '../../loop/level.ts'
import type { Reconciled } from '../../loop/reconciler.ts'
import { BackendHealth } from '../../projection/backend-health.ts'
import type { ProjectionChange } from '../../projection/store.ts'
import { AdoptedRecords } from './adopted-records.ts'
import { apply } from './apply.ts'
import { CredentialMemory } from './credential-memory.ts'
import type { ModelState, ServedModelDeps } from './deps.ts'
import { gather, mountKey, mountText, rulesOf } from './observe.ts'
import { ModelMemory } from './model-memory.ts'
import { credentialsOf, ModelRegistry } from './model-registry.ts'
import type { NameTakeover } from './name-index.ts'
import { type ModelStep, nextStep, reportStatus } from './steps.ts'
import type { Observed, ObservedModel } from './observed.ts'
import { selects } from './selector.ts'

/** Pause before a changed EndpointSlice enqueues an object, ms: a rollout changes slices many times a second. */
const COALESCE_MS = 100
/** Most objects per turn of the event loop. */
const PER_TURN = 100

/** The controller of all ServedModels, one per leader. */
export class ModelController {
  readonly #deps: ServedModelDeps
  readonly #state: ModelState
  readonly #health = new BackendHealth()
  /** Objects whose status says that a gateway has not acknowledged them yet. */
  readonly #unconfirmed = new Map<string, ObservedModel>()
  /** Uids of records in namespaces that cannot be read. */
  readonly #unreadable = new Set<string>()
  #isFollowing = false

  constructor(deps: ServedModelDeps) {
    this.#deps = deps
    this.#state = {
      registry: new ModelRegistry(deps.settings.maxServedModelsPerNamespace, rulesOf(deps)),
      credentials: new CredentialMemory(deps),
      adopted: new AdoptedRecords(),
      memory: new ModelMemory(deps.clock),
    }
  }

  /** The interface of the kind to the reconciler. */
  get reconciled(): Reconciled<Observed, ModelStep> {
    return {
      name: 'ServedModel',
      gather: (ref) => gather(ref, this.#deps, this.#state),
      nextStep,
      report: reportStatus,
      apply: (step, observed) => this.#apply(step, observed),
      nextChangeAtMs: (observed) => (observed.state === 'Present' ? observed.nextChangeAtMs : undefined),
      failed: () => undefined, // only a status write can fail, so no status can show the error
      succeeded: () => undefined,
      settled: () => false,
    }
  }

  /**
   * Reads only memory and Redis, so that no Secret can stop a start. Models with a credential keep their present record until the Secret has
   * been read.
   * @returns records that must be in the projection
   */
  async prepare(): Promise<readonly ProjectionChange[]> {
    const { servedModels, standingRecords } = this.#deps
    this.#follow()
    const standing = await standingRecords().catch(() => undefined) // without Redis nothing can be lost there
    if (standing !== undefined) await this.#adopt(standing)
    const records: ProjectionChange[] = []
    await inTurns([...servedModels.list()], (model) => {
      const observed = gather(refOf(model), this.#deps, this.#state)
      if (observed?.state !== 'Present') return
      const text = this.#startRecord(observed, standing !== undefined)
      if (text !== undefined) records.push({ kind: 'model', op: 'put', id: uidOf(model), text })
    })
    return records
  }

  /** Enqueues every ServedModel. */
  start(): void {
    for (const model of this.#deps.servedModels.list()) this.#deps.queue.enqueue(refOf(model), 'change')
  }

  /** Called when a write of a model to Redis or to the mounted Secrets has succeeded or was refused. */
  arrived(uid: string): void {
    const ref = this.#state.registry.refOf(uid)
    if (ref) this.#deps.queue.enqueue(ref, 'background')
    else this.#deps.projection.forget('model', uid)
  }

  /** Whether a record must stay in Redis although no object wants it. */
  keeps(uid: string): boolean {
    return this.#unreadable.has(uid) || this.#state.memory.isKept(uid)
  }

  /** Called after each poll of the gateways' acknowledgements. */
  polled(): void {
    for (const uid of this.#health.changed(this.#deps.acknowledgements.live)) this.arrived(uid)
    for (const { ref, model, projection } of this.#unconfirmed.values()) {
      if (projection.revision === undefined || projection.confirmation?.state !== 'NoGateways') continue
      const now = this.#deps.acknowledgements.confirmation(projection.revision, uidOf(model))
      if (now.state !== 'NoGateways') this.#deps.queue.enqueue(ref, 'background')
    }
  }

  /** Called when Redis answers again, or answers no more. */
  availabilityChanged(): void {
    this.#enqueueAll([...this.#unconfirmed.values()].map(({ ref }) => ref))
  }

  /** Called when the format version of written records has changed. */
  versionChanged(): void {
    this.#enqueueAll([...this.#deps.servedModels.list()].map(refOf))
  }

  /** Subscribes to all watches. The queue holds the events of a start until the workers start. */
  #follow(): void {
    if (this.#isFollowing) return
    const { servedModels, services, endpointSlices, namespaces } = this.#deps
    for (const model of servedModels.list()) this.#state.registry.update(undefined, model)
    this.#isFollowing = true
    servedModels.subscribe((before, after) => this.#onModel(before, after))
    services.subscribe((before, after) => this.#onService(after ?? before))
    endpointSlices.subscribe((before, after) => this.#onSlice(after ?? before))
    namespaces?.subscribe((before, after) => this.#onNamespace(before, after))
  }

  async #apply(step: ModelStep, observed: Observed): Promise<void> {
    await apply(step, observed, this.#deps, this.#state)
    if (observed.state === 'Deleted') this.#unconfirmed.delete(refKey(observed.ref))
    else if (step.do === 'write-status') this.#noteProgress(observed)
  }

  #noteProgress(observed: ObservedModel): void {
    const isDone = observed.text === undefined || observed.projection.confirmation?.state === 'Acknowledged'
    if (isDone) this.#unconfirmed.delete(refKey(observed.ref))
    else this.#unconfirmed.set(refKey(observed.ref), observed)
  }

  async #adopt(standing: Iterable<readonly [uid: string, text: string]>): Promise<void> {
    const models = new Map([...this.#deps.servedModels.list()].map((model) => [uidOf(model), model]))
    await inTurns([...standing], ([uid, text]) => {
      const model = models.get(uid)
      if (model === undefined) return this.#keepUnlessDeleted(uid, text)
      const record = decoded(text)
      if (record === undefined) return this.#state.memory.setKept(refOf(model), uid)
      this.#state.adopted.adopt(model, record)
      this.#state.memory.setWanted(refOf(model), uid, { text, allowedNamespaces: record.allowedNamespaces })
    })
  }

  /** Keeps the record of a model in an unreadable namespace: the model may still exist. */
  #keepUnlessDeleted(uid: string, text: string): void {
    const namespace = modelRecordNamespace(text)
    if (namespace === undefined || this.#deps.servedModels.isSynced(namespace)) return
    this.#unreadable.add(uid)
    this.#deps.mounted.keep(uid)
  }

  /** @returns the record to project; undefined if there is none, or if the present record must stay */
  #startRecord(observed: ObservedModel, isStandingKnown: boolean): string | undefined {
    const { ref, model, text, desired } = observed
    const { memory } = this.#state
    const { mounted, version } = this.#deps
    const uid = uidOf(model)
    if (desired.record) this.#deps.models.set(desired.record)
    if (desired.keepsMounted) mounted.keep(uid)
    else {
      mounted.setModel(uid, { namespace: ref.namespace, text: mountText(desired, version()), credentials: [] })
      memory.setMounted(ref, uid, mountKey(observed, version()), true)
    }
    if (desired.keepsMounted && (!isStandingKnown || memory.isKept(uid))) {
      memory.setKept(ref, uid)
      return undefined
    }
    if (text !== undefined || memory.uidOf(ref) !== undefined)
      memory.setWanted(ref, uid, { text, allowedNamespaces: desired.record?.allowedNamespaces ?? [] })
    return text
  }

  #onModel(before: ServedModel | undefined, after: ServedModel | undefined): void {
    const { registry, credentials } = this.#state
    const object = after ?? before
    if (!object || (before && after && !matters(before, after))) return
    const { affected, losers, takeovers, unusedCredentials } = registry.update(before, after)
    for (const credential of unusedCredentials) credentials.forget(credential)
    for (const credential of credentialsOf(after)) credentials.expire(credential)
    this.#deps.queue.enqueue(refOf(object), levelOf(before, after))
    for (const ref of affected) this.#deps.queue.enqueue(ref, 'change')
    this.#enqueueAll(losers)
    for (const takeover of takeovers) this.#report(takeover, after)
  }

  #onService(service: Service | undefined): void {
    if (!service) return
    for (const ref of this.#state.registry.usersOfService(namespaceOf(service), service.metadata.name))
      this.#deps.queue.enqueue(ref, 'change')
  }

  #onSlice(slice: EndpointSlice | undefined): void {
    const service = slice?.metadata.labels?.[SERVICE_LABEL]
    if (!slice || service === undefined) return
    const users = this.#state.registry.usersOfService(namespaceOf(slice), service)
    for (const ref of users) this.#deps.queue.enqueueAfter(ref, COALESCE_MS, 'change')
  }

  /** Enqueues only models whose selector matches one version of the namespace and not the other. */
  #onNamespace(before: Namespace | undefined, after: Namespace | undefined): void {
    for (const model of this.#state.registry.selecting()) {
      const { selector } = model.spec.allowedNamespaces
      const isSelected = (object: Namespace | undefined): boolean =>
        object !== undefined && selector !== undefined && selects(selector, object.metadata.labels)
      if (isSelected(before) !== isSelected(after)) this.#deps.queue.enqueue(refOf(model), isSelected(before) ? 'urgent' : 'change')
    }
  }

  /** @param changed the object whose change moved the name: the cache may still have the older version */
  #report({ name, from, to }: NameTakeover, changed: ServedModel | undefined): void {
    const note = `The published name "${name}" is now served by ServedModel ${refKey(to.ref)}; before it was ${refKey(from.ref)}, in another namespace.`
    for (const { ref, uid } of [from, to]) {
      const model = uidOf(changed ?? NO_OBJECT) === uid ? changed : this.#deps.servedModels.get(ref)
      if (model && uidOf(model) === uid) this.#deps.recordEvent(model, 'NameTakenOver', note)
    }
  }

  /** Enqueues at background level, some objects per turn of the event loop. */
  #enqueueAll(refs: readonly ObjectRef[]): void {
    const [now, later] = [refs.slice(0, PER_TURN), refs.slice(PER_TURN)]
    for (const ref of now) this.#deps.queue.enqueue(ref, 'background')
    if (later.length > 0) this.#deps.clock.after(0, () => this.#enqueueAll(later))
  }
}

const NO_OBJECT = { apiVersion: '', kind: '', metadata: { name: '' } }

/** Deletions, and edits that take a model away from a namespace, are urgent. */
function levelOf(before: ServedModel | undefined, after: ServedModel | undefined): Level {
  if (after === undefined || after.metadata.deletionTimestamp !== undefined) return 'urgent'
  if (before === undefined) return 'create'
  return isRestricted(before.spec.allowedNamespaces, after.spec.allowedNamespaces) ? 'urgent' : 'change'
}

type AllowedNamespaces = ServedModel['spec']['allowedNamespaces']

/** Whether an edit may take the model away from a namespace. Another selector may select fewer namespaces. */
function isRestricted(before: AllowedNamespaces, after: AllowedNamespaces): boolean {
  if (before.from === 'Same' || after.from === 'All') return false
  return before.from !== after.from || JSON.stringify(before.selector) !== JSON.stringify(after.selector)
}

/** Whether a change needs a reconcile. The operator's own status writes come back as events and need none. */
function matters(before: ServedModel, after: ServedModel): boolean {
  const [a, b] = [before.metadata, after.metadata]
  return (
    a.uid !== b.uid ||
    a.generation !== b.generation ||
    a.deletionTimestamp !== b.deletionTimestamp ||
    JSON.stringify(a.annotations ?? {}) !== JSON.stringify(b.annotations ?? {})
  )
}

function decoded(text: string): ModelRecord | undefined {
  try {
    return decodeModelRecord(text)
  } catch {
    return undefined // a newer version or damaged: the record stays until this process can derive one from the present manifest
  }
}

/** Calls `handle` for each item, and yields to the event loop after every `PER_TURN` items. */
async function inTurns<T>(items: readonly T[], handle: (item: T) => void): Promise<void> {
  for (let at = 0; at < items.length; at += PER_TURN) {
    for (const item of items.slice(at, at + PER_TURN)) handle(item)
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
}
