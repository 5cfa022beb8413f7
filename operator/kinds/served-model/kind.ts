/** The kind ServedModel, as the operator runs it: projects models at a start, and maps watch events to the objects to reconcile. */
import { servedModelKind } from '#api/served-model-kind.ts'
import type { ServedModel } from '#api/served-model.ts'
import { slicesOf } from '#kube/indexes.ts'
import { type Informer, namespaceOf, type ObjectRef, refKey, refOf, uidOf } from '#kube/port.ts'
import { type EndpointSlice, type Namespace, type Service, SERVICE_LABEL } from '#kube/resources.ts'
import { decodeModelRecord, type ModelRecord, modelRecordNamespace } from '#contract/records/model-record.ts'
import { findCondition } from '#api/condition-list.ts'
import { selects } from '#api/label-selector.ts'
import { MountedSecrets } from '../../shards/mounted-secrets.ts'
import { shardsDeps } from '../../shards/secret-shards.ts'
import { inTurns } from '../../loop/in-parallel.ts'
import { itemKey, modelsTenant } from '../../loop/item.ts'
import type { Level } from '../../loop/level.ts'
import { BackendHealth } from '../../projection/acknowledgements.ts'
import type { ProjectionChange } from '../../projection/store.ts'
import { findByUid, type Kind, type KindRow, type OperatorContext, type Wake, type Watch, watch } from '../kind.ts'
import { CredentialMemory } from './credential-memory.ts'
import { ModelMemory } from './model-memory.ts'
import { credentialsOf, ModelRegistry } from './model-registry.ts'
import { apply } from './apply.ts'
import type { NameTakeover } from './name-index.ts'
import { adoptable, observe } from './observe.ts'
import type { Observed, ObservedModel } from './observed.ts'
import type { PublishingRules } from './publishing.ts'
import { type ModelStep, nextStep, reportStatus } from './steps.ts'

const KIND = servedModelKind.resource.kind
/** Pause before a changed EndpointSlice enqueues an object, ms: a rollout changes slices many times a second. */
const COALESCE_MS = 100
/** Maximum number of objects per turn of the event loop. */
const PER_TURN = 100

export const servedModelRow: KindRow = { api: servedModelKind, create: (context) => new ServedModels(context) }

export interface ServedModelDeps extends OperatorContext {
  readonly servedModels: Informer<ServedModel>
  readonly slicesOf: (namespace: string, service: string) => Iterable<EndpointSlice>
  /** The Secrets that gateways mount, written in the background. A finished write enqueues the object. */
  readonly mounted: MountedSecrets
  readonly rules: PublishingRules
  readonly registry: ModelRegistry
  readonly credentials: CredentialMemory
  readonly memory: ModelMemory
}

export class ServedModels implements Kind<ServedModel, Observed, ModelStep> {
  readonly name = KIND
  readonly informer
  readonly watches: readonly Watch[]
  readonly nextStep = nextStep
  readonly report = reportStatus
  readonly #deps: ServedModelDeps
  readonly #health = new BackendHealth()
  /** Namespaces of models that cannot be read, by uid. */
  readonly #unreadable = new Map<string, string>()
  /** Uids of models whose last write of the mounted Secrets was refused. */
  readonly #refused = new Set<string>()
  /** Whether the records in Redis were read: some are of models that this process does not watch. */
  #isRedisRead = false

  /** @param deps default: composed from the context */
  constructor(context: OperatorContext, deps = createDeps(context)) {
    this.#deps = deps
    this.informer = deps.servedModels
    const { services, endpointSlices, namespaces } = context.informers
    this.watches = [
      watch(this.informer, (before, after) => this.#onModel(before, after)),
      watch(services, (before, after) => this.#onService(after ?? before)),
      watch(endpointSlices, (before, after) => this.#onSlice(after ?? before)),
      ...(namespaces ? [watch(namespaces, (before, after) => this.#onNamespace(before, after))] : []),
    ]
    deps.mounted.onSettled((uid, error) => this.#onMounted(uid, error))
  }

  observe(ref: ObjectRef): Observed | undefined {
    return observe(ref, this.#deps)
  }

  async apply(step: ModelStep, observed: Observed): Promise<void> {
    await apply(step, observed, this.#deps)
  }

  waits(ref: ObjectRef, observed: Observed): void {
    if (observed.state === 'Deleted') return
    const { revision, confirmation } = observed.projection
    const isOpen = confirmation?.state === 'Waiting' || confirmation?.state === 'Unknown'
    if (revision === undefined || !isOpen) return
    this.#deps.acknowledgements.expect(itemKey({ kind: KIND, ref }), revision, uidOf(observed.model), confirmation)
  }

  nextChangeAtMs(observed: Observed): number | undefined {
    return observed.state === 'Present' ? observed.nextChangeAtMs : undefined
  }

  /** Reads only memory and Redis, so that no Secret can stop a start. Models with a credential keep their present record until it is read. */
  async prepare(): Promise<readonly ProjectionChange[]> {
    for (const model of this.informer.list()) this.#deps.registry.update(undefined, model)
    await Promise.all([this.#deps.mounted.load(), this.#deps.informers.namespaces?.synced]) // without the labels of namespaces, selectors would select none
    const standing = await this.#standingRecords().catch(() => undefined) // if Redis does not answer, `reached` reads them
    if (standing !== undefined) await this.#adopt(standing)
    this.#isRedisRead = standing !== undefined
    const records: ProjectionChange[] = []
    await inTurns([...this.informer.list()], PER_TURN, (model) => {
      const observed = this.observe(refOf(model))
      if (observed?.state !== 'Present') return
      const text = this.#startRecord(observed, standing !== undefined)
      if (text !== undefined) records.push({ kind: 'model', op: 'put', id: uidOf(model), text })
    })
    return records
  }

  async reached(isTakenOver: boolean): Promise<void> {
    if (!this.#isRedisRead) {
      const known = new Set([...this.informer.list()].map(uidOf))
      for (const [uid, text] of await this.#standingRecords()) if (!known.has(uid)) this.#keepUnlessDeleted(uid, text)
      this.#isRedisRead = true
    }
    if (isTakenOver) this.#forgetUnwatched()
  }

  start(): void {
    this.#deps.mounted.start()
  }

  async stop(): Promise<void> {
    const { mounted, log } = this.#deps
    await mounted
      .flush()
      .catch((error: Error) => log.warn(`the Secrets of the gateways could not be written at the end (${error.message})`))
    mounted.stop()
  }

  orphaned(uid: string): void {
    this.#refused.delete(uid)
    this.#deps.projection.forget('model', uid)
  }

  keeps(uid: string): boolean {
    return this.#unreadable.has(uid) || this.#deps.memory.get(uid).isKept === true
  }

  isUnproven({ status }: ServedModel): boolean {
    const ready = findCondition(status?.conditions, 'Ready')
    return ready === undefined || ready.reason === 'NotProgrammed'
  }

  polled(): Iterable<string> {
    return this.#health.changed(this.#deps.acknowledgements.live)
  }

  check(): void {
    this.#deps.mounted.check()
  }

  /** The records in Redis, by uid. @throws if Redis does not answer */
  async #standingRecords(): Promise<ReadonlyMap<string, string>> {
    const { store } = this.#deps
    const epoch = (await store.meta())?.epoch
    return epoch === undefined ? new Map() : await store.records(epoch, 'model', await store.ids(epoch, 'model'))
  }

  async #adopt(standing: ReadonlyMap<string, string>): Promise<void> {
    const { memory } = this.#deps
    const models = new Map([...this.informer.list()].map((model) => [uidOf(model), model]))
    await inTurns(standing, PER_TURN, ([uid, text]) => {
      const model = models.get(uid)
      if (model === undefined) return this.#keepUnlessDeleted(uid, text)
      const record = decoded(text)
      if (record === undefined) return memory.setKept(refOf(model), uid)
      memory.adopt(model, text, adoptable(record, uid, this.#deps))
    })
  }

  /** Keeps the record of a model in a namespace that is unreadable, or no longer watched: the model may still exist. */
  #keepUnlessDeleted(uid: string, text: string): void {
    const namespace = modelRecordNamespace(text)
    if (namespace === undefined || this.informer.isSynced(namespace)) return
    const { watchNamespaces, formerNamespaces } = this.#deps.settings
    if (formerNamespaces.includes(namespace) && !watchNamespaces.includes(namespace)) return // the administrator gave it up
    this.#unreadable.set(uid, namespace)
    this.#deps.mounted.keep(uid)
  }

  /** Redis is that of another installation: of namespaces which this one does not watch, only models stay that its own Secrets know. */
  #forgetUnwatched(): void {
    const { mounted, settings } = this.#deps
    for (const [uid, namespace] of this.#unreadable)
      if (!settings.watchNamespaces.includes(namespace) && !mounted.has(uid)) this.#unreadable.delete(uid)
  }

  /** @returns the record to project; undefined if there is none, or if the present record must stay */
  #startRecord(observed: ObservedModel, isStandingKnown: boolean): string | undefined {
    const { ref, model, text, desired } = observed
    const { memory, mounted, models } = this.#deps
    const uid = uidOf(model)
    if (desired.record) models.set(desired.record)
    if (desired.keepsMounted) mounted.keep(uid)
    else {
      mounted.setModel(uid, { namespace: ref.namespace, text: observed.coldStart, credentials: [] })
      memory.setMounted(ref, uid, observed.mounted.key, true)
    }
    if (desired.keepsMounted && (!isStandingKnown || memory.get(uid).isKept === true)) {
      memory.setKept(ref, uid)
      return undefined
    }
    if (text !== undefined || memory.uidOf(ref) !== undefined) memory.setWanted(ref, uid, text, desired.record)
    return text
  }

  /** A status names refusals alone. Each of thousands of models that are mounted well would be looked at once more. */
  #onMounted(uid: string, error: Error | undefined): void {
    const wasRefused = this.#refused.delete(uid)
    if (error) this.#refused.add(uid)
    if (error === undefined && !wasRefused) return
    const model = findByUid(uid, this.informer)
    if (model) this.#deps.enqueue(KIND, refOf(model), 'background')
  }

  *#onModel(before: ServedModel | undefined, after: ServedModel | undefined): Iterable<Wake> {
    const { registry, credentials } = this.#deps
    const object = after ?? before
    if (!object || (before && after && !matters(before, after))) return
    const { affected, losers, takeovers, unusedCredentials } = registry.update(before, after)
    for (const credential of unusedCredentials) credentials.forget(credential)
    for (const credential of credentialsOf(after)) credentials.expire(credential)
    yield { ref: refOf(object), level: levelOf(before, after) }
    for (const ref of affected) yield { ref, level: 'change' }
    void inTurns(losers, PER_TURN, (ref) => this.#deps.enqueue(KIND, ref, 'background')) // thousands of models may want one name
    for (const takeover of takeovers) this.#report(takeover, after)
  }

  *#onService(service: Service | undefined): Iterable<Wake> {
    if (!service) return
    for (const ref of this.#deps.registry.usersOfService(namespaceOf(service), service.metadata.name)) yield { ref, level: 'change' }
  }

  *#onSlice(slice: EndpointSlice | undefined): Iterable<Wake> {
    const service = slice?.metadata.labels?.[SERVICE_LABEL]
    if (!slice || service === undefined) return
    const users = this.#deps.registry.usersOfService(namespaceOf(slice), service)
    for (const ref of users) yield { ref, level: 'change', delayMs: COALESCE_MS }
  }

  /** Only models whose selector matches one version of the namespace and not the other. */
  *#onNamespace(before: Namespace | undefined, after: Namespace | undefined): Iterable<Wake> {
    for (const model of this.#deps.registry.selecting()) {
      const { selector } = model.spec.allowedNamespaces
      const isSelected = (object: Namespace | undefined): boolean =>
        object !== undefined && selector !== undefined && selects(selector, object.metadata.labels)
      if (isSelected(before) !== isSelected(after)) yield { ref: refOf(model), level: isSelected(before) ? 'urgent' : 'change' }
    }
  }

  /** @param changed the object whose change moved the name: the cache may still have the older version */
  #report({ name, from, to }: NameTakeover, changed: ServedModel | undefined): void {
    const note = `The published name "${name}" is now served by ServedModel ${refKey(to.ref)}; before it was ${refKey(from.ref)}, in another namespace.`
    for (const { ref, uid } of [from, to]) {
      const model = changed?.metadata.uid === uid ? changed : this.informer.get(ref)
      if (model?.metadata.uid === uid) this.#deps.recordEvent(model, 'NameTakenOver', note)
    }
  }
}

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

export function createDeps(context: OperatorContext): ServedModelDeps {
  const { clock, random, settings, version, informers } = context
  const rules: PublishingRules = {
    publishingNamespaces: settings.publishingNamespaces,
    /** The right to read namespaces may change while the operator runs. */
    get hasNamespaceLabels() {
      return informers.namespaces?.isSynced('') === true
    },
  }
  return {
    ...context,
    servedModels: informers.of(servedModelKind.resource),
    slicesOf: (namespace, service) => slicesOf(informers.endpointSlices, namespace, service),
    mounted: new MountedSecrets({
      ...shardsDeps(context),
      backlog: (group) => context.backlogOf(modelsTenant(group)),
      ...(settings.mountedShards === undefined ? {} : { shards: settings.mountedShards }),
      version,
    }),
    rules,
    registry: new ModelRegistry(settings.maxServedModelsPerNamespace, rules),
    credentials: new CredentialMemory({ clock, random }),
    memory: new ModelMemory(clock),
  }
}
