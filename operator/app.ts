/** Composes the operator, which opens no port: `main.ts` runs it on a cluster, standalone on a folder. */
import { type Cancel, sleep } from '#platform/clock.ts'
import { messageOf } from '#platform/message-of.ts'
import { OutageLog } from '#platform/outage-log.ts'
import type { RecordKind } from '#contract/records/record-kinds.ts'
import { lowestCommonVersion } from '#contract/records/revision-log.ts'
import { EVENTS } from '#api/event-table.ts'
import { apiKeys } from '#api/resources.ts'
import { Accounts } from './accounts/accounts.ts'
import { Subjects } from './books/subject-ledger.ts'
import { UsageCollector } from './usage/usage-collector.ts'
import type { KindRow, OperatorContext } from './kinds/kind.ts'
import { ObjectController } from './kinds/object-controller.ts'
import { type Released, releaseEvery, releaseFormer, type ReleaseProgress } from './kinds/release.ts'
import { KINDS } from './kinds/kinds.ts'
import { type Installation, readInstallation } from './shards/installation.ts'
import { shardsDeps } from './shards/secret-shards.ts'
import { addServiceIndex, addUidIndex, slicesOf } from '#kube/indexes.ts'
import { OwnWrites } from '#kube/own-writes.ts'
import { refOf, retryAfterMs, type KubeObject } from '#kube/port.ts'
import type { Reconcile } from './loop/reconciler.ts'
import { WorkQueue } from './loop/work-queue.ts'
import { BackOff, SPREAD } from '#platform/back-off.ts'
import { type Item, itemOf, statusBounds } from './loop/item.ts'
import type { Level } from './loop/level.ts'
import { resync } from './loop/resync.ts'
import type { OperatorDeps } from './operator-deps.ts'
import { ProjectedModels } from './kinds/served-model/projected-models.ts'
import { NAMED_PODS } from './projection/programmed.ts'
import { Acknowledgements } from './projection/acknowledgements.ts'
import { isForeign } from './projection/foreign-store.ts'
import { Projection } from './projection/projection.ts'
import type { ProjectionChange } from './projection/store.ts'

/** Longest wait for work under way at the end, ms. */
const STOP_WITHIN_MS = 25_000
/** The same during an uninstall, for which a person waits. */
const RELEASE_STOP_MS = 5_000
/** Delay before a status of another writer is compared, ms. Without the delay, two operators that disagree would write as fast as they can. */
const COMPARE_AFTER_MS = 1_000
/** Time between two checks of the durable state, ms. */
const CHECK_EVERY_MS = 600_000

/**
 * Work of a level waits while the watch is this far behind our own writes, ms: suspensions and deletions arrive by the same watch, and an
 * API server that is busy with our writes delivers them late.
 */
const WATCH_LAG_MS = { background: 100, create: 600 }

export class Operator {
  readonly #deps: OperatorDeps
  readonly #controllers: readonly ObjectController[]
  readonly #queue: WorkQueue
  readonly #projection: Projection
  readonly #acknowledgements: Acknowledgements
  readonly #subjects: Subjects
  readonly #accounts: Accounts
  readonly #usage: UsageCollector
  readonly #context: OperatorContext
  readonly #ownWrites: OwnWrites
  readonly #stopping = new AbortController()
  #installation: Installation = { id: '', secret: '' }
  #version = lowestCommonVersion([])
  #blocked: string | undefined = 'the caches are not filled yet'
  #cancelCheck: Cancel = () => undefined
  /** Why the operator may not write to Redis; undefined if it may. */
  #foreignStore: string | undefined

  /** @param deps leadership must be held before `start` */
  constructor(deps: OperatorDeps, rows: readonly KindRow[] = KINDS) {
    this.#deps = deps
    const { informers, clock, metrics } = deps
    this.#ownWrites = new OwnWrites(clock)
    for (const { api } of rows) {
      addUidIndex(informers.of(api.resource))
      informers.of(api.resource).subscribe((before, after) => this.#delivered(api.resource.kind, before, after))
    }
    addServiceIndex(informers.endpointSlices)
    this.#projection = this.#createProjection()
    this.#acknowledgements = this.#createAcknowledgements()
    this.#subjects = new Subjects(deps, this.#acknowledgements)
    const reconciles: Record<string, Reconcile> = {}
    const held = (): readonly Level[] => heldAt(this.#ownWrites.watchLagMs)
    this.#queue = new WorkQueue({
      kinds: reconciles,
      clock,
      held,
      metrics: metrics?.queue,
      tenantOf: (item) => this.#accounts.tenantOf(item),
      boundsOf: statusBounds,
    })
    this.#accounts = new Accounts(deps, {
      installation: () => this.#installation.id,
      enqueueKey: (ref, level) => this.#queue.add({ kind: apiKeys.kind, ref }, level),
      ownWrites: this.#ownWrites,
      live: () => this.#acknowledgements.live,
    })
    this.#usage = this.#createUsage()
    this.#context = this.#createContext()
    this.#controllers = rows.map((row) => new ObjectController(row, this.#context))
    for (const { name, reconcile } of this.#controllers.flatMap(({ queues }) => queues)) reconciles[name] = reconcile
  }

  /** Why this leader cannot work yet; undefined once it works. */
  get blocked(): string | undefined {
    return this.#blocked ?? this.#foreignStore
  }

  /** Whether it works, nothing is to be reconciled now, and no acknowledgement of a gateway is awaited. */
  get isIdle(): boolean {
    return this.blocked === undefined && this.#queue.isIdle && this.#acknowledgements.waiting === 0
  }

  /** Resolves when all existing objects are in the queue. From then on the watches enqueue changes. */
  async start(): Promise<void> {
    const { informers, settings, kube } = this.#deps
    const kinds = this.#controllers.map(({ kind }) => kind.informer)
    await Promise.all([...kinds, informers.services, informers.endpointSlices].map(({ synced }) => synced))
    this.#block('the keyring is being read')
    const problem = `the Secrets of namespace ${settings.namespace} cannot be read`
    const installation = await this.#retried(problem, () => readInstallation({ kube, namespace: settings.namespace }))
    if (installation === undefined) return
    this.#installation = installation
    this.#deps.onInstallation?.(installation.id)
    await this.#retried(problem, async () => await this.#subjects.ledger?.load())
    await this.#retried(problem, () => this.#accounts.load())
    if (settings.hasAccounts) await this.#retried(problem, () => this.#usage.load())
    const records = await Promise.all(
      this.#controllers.map((controller) =>
        this.#retried(`${controller.kind.name}: the durable state cannot be read`, () => controller.prepare()),
      ),
    )
    if (this.#isStopping) return
    await this.#begin(records.flatMap((some) => some ?? []))
  }

  /** Takes no new work and finishes work under way. */
  async stop(): Promise<void> {
    await this.#end(STOP_WITHIN_MS)
  }

  /** Stops, and removes Headgate's finalizers from every object: for an uninstall. */
  async release(onProgress: (progress: ReleaseProgress) => void = () => undefined): Promise<Released> {
    await this.#end(RELEASE_STOP_MS)
    this.#blocked = 'Headgate is being uninstalled; this operator does nothing any more'
    const kinds = this.#controllers.map(({ api, kind }) => ({ kind: api, informer: kind.informer }))
    await Promise.all(kinds.map(({ informer }) => informer.synced)) // a leader that has just started knows no object yet
    // the watch may not have delivered the finalizers that the last runs have set
    const newest = (object: KubeObject): KubeObject => this.#ownWrites.newest(object)
    const listed = kinds.map(({ kind, informer }) => ({ kind, objects: Array.from(informer.list(), newest) }))
    return await releaseEvery(listed, this.#deps, onProgress)
  }

  async #begin(records: readonly ProjectionChange[]): Promise<void> {
    this.#acknowledgements.start()
    const floor = Math.max(0, ...this.#controllers.map(({ kind }) => kind.revision ?? 0))
    await this.#projection.start(records, floor)
    if (this.#isStopping) return
    for (const controller of this.#controllers) controller.start()
    const kinds = this.#controllers.map(({ api }) => api)
    void releaseFormer(kinds, this.#context, this.#stopping.signal)
    this.#subjects.ledger?.start()
    this.#accounts.start()
    if (this.#deps.settings.hasAccounts) this.#usage.start()
    this.#reportUnreadable()
    this.#scheduleCheck()
    this.#queue.start()
    this.#resync()
    this.#block(undefined)
  }

  #resync(): void {
    const { clock, random } = this.#deps
    const enqueue = (item: Item, level: Level): void => this.#queue.add(item, level)
    for (const { name: kind, informer } of this.#controllers.map((controller) => controller.kind))
      void resync({ clock, random, kind, informer, enqueue }, this.#stopping.signal)
  }

  async #end(withinMs: number): Promise<void> {
    this.#stopping.abort()
    this.#cancelCheck()
    this.#acknowledgements.stop()
    await this.#queue.stop(withinMs)
    await Promise.all([this.#subjects.ledger?.stop(), this.#usage.stop()])
    await Promise.all(this.#controllers.map(async ({ kind }) => kind.stop?.()))
    this.#projection.stop()
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  #block(reason: string | undefined): void {
    this.#blocked = reason
    this.#deps.metrics?.startBlocked(reason)
  }

  /** @returns what `read` returned at last; undefined when the operator was stopped before */
  async #retried<T>(problem: string, read: () => Promise<T>): Promise<T | undefined> {
    const { log, clock, random } = this.#deps
    const backOff = new BackOff({ firstMs: 500, maxMs: 10_000, ...SPREAD, random })
    while (!this.#isStopping) {
      try {
        return await read()
      } catch (error) {
        const reason = `${problem} (${messageOf(error)})`
        this.#block(reason)
        log.warn(`${reason}; tried again`)
        await sleep(clock, backOff.next({ atLeastMs: retryAfterMs(error) }), this.#stopping.signal)
      }
    }
    return undefined
  }

  #createProjection(): Projection {
    const { store, clock, leader, settings, log, metrics } = this.#deps
    return new Projection({
      store,
      onPrepared: async () => await this.#subjects.ledger?.prepareBefore(),
      beforeWrite: (changes) => this.#seed(changes),
      clock,
      ...leader,
      installation: () => this.#installation.id,
      takesOver: settings.redisTakeOver,
      log,
      outage: new OutageLog('Redis', log, clock),
      keeps: (kind, id) => this.#byRecord(kind).some((controller) => controller.kind.keeps?.(id) === true),
      standIn: (kind, has) => this.#byRecord(kind).flatMap((controller) => controller.kind.standIn?.(has) ?? [])[0],
      onReached: async () => {
        const meta = await store.meta()
        const isTakenOver = meta !== undefined && isForeign(meta, this.#installation.id)
        for (const { kind } of this.#controllers) await kind.reached?.(isTakenOver)
      },
      onWritten: (kind, id) => {
        for (const controller of this.#byRecord(kind)) controller.onChanged(id)
        if (kind === 'account') this.#accounts.written(id)
      },
      onAvailability: () => this.#servingChanged(),
      onForeign: (why) => {
        metrics?.installationForeign(why !== undefined)
        this.#foreignStore = why
        if (why !== undefined) this.#deps.onForeignStore?.(why)
      },
    })
  }

  /** Seeds budgets and balances before their records are projected: gateways refuse a key with a budget without a seed. */
  async #seed(changes: readonly ProjectionChange[]): Promise<void> {
    await Promise.all([
      this.#subjects.ledger?.seedBefore(changes.flatMap((change) => this.#accounts.subjectIn(change) ?? [])),
      this.#accounts.seedBalances(changes),
    ])
  }

  #scheduleCheck(): void {
    this.#cancelCheck = this.#deps.clock.after(CHECK_EVERY_MS, () => {
      this.#subjects.ledger?.check()
      if (this.#deps.settings.hasAccounts) this.#usage.check()
      for (const { kind } of this.#controllers) kind.check?.()
      this.#reportUnreadable()
      this.#scheduleCheck()
    })
  }

  #reportUnreadable(): void {
    this.#deps.metrics?.unreadableEntries('spend', this.#subjects.ledger?.unreadable ?? 0)
  }

  #createUsage(): UsageCollector {
    const { usageStore: store, clock, log } = this.#deps
    return new UsageCollector({
      ...shardsDeps(this.#deps),
      store,
      accounts: this.#accounts.books,
      keyName: (uid) => this.#accounts.keys.nameOf(uid),
      onUsed: (name) => this.#accounts.balances.used(name),
      outage: new OutageLog('usage of accounts', log, clock),
    })
  }

  #createAcknowledgements(): Acknowledgements {
    const { store, clock, settings, informers } = this.#deps
    return new Acknowledgements({
      store,
      clock,
      epoch: () => this.#projection.epoch,
      gatewaySlices: () => slicesOf(informers.endpointSlices, settings.namespace, settings.gatewayService),
      onConfirmed: (key) => this.#queue.add(itemOf(key), 'change'),
      onProgress: (key) => this.#queue.add(itemOf(key), 'background'),
      onServingChanged: () => this.#servingChanged(),
      onLagging: (pods) => this.#lagging(pods),
      onPoll: () => this.#polled(),
    })
  }

  /** Names the pods that hold up the statuses of all keys: each status alone would look like a problem of its own key. */
  #lagging(pods: readonly string[]): void {
    const { metrics, log } = this.#deps
    metrics?.lagging(pods)
    const waiting = this.#acknowledgements.waiting
    if (pods.length === 0) log.info('every gateway pod acknowledges changes again')
    else
      log.warn(
        { pods: pods.slice(0, NAMED_PODS), count: pods.length, waiting },
        'gateway pods have not acknowledged a change for 5 s; keys wait for them',
      )
  }

  #servingChanged(): void {
    for (const controller of this.#controllers) controller.onServingChanged()
  }

  #createContext(): OperatorContext {
    const deps = this.#deps
    return {
      ...deps,
      projection: this.#projection,
      acknowledgements: this.#acknowledgements,
      models: new ProjectedModels(),
      accounts: this.#accounts,
      ownWrites: this.#ownWrites,
      subjects: this.#subjects,
      enqueue: (kind, ref, level) => this.#queue.add({ kind, ref }, level),
      enqueueAfter: (kind, ref, delayMs, level) => this.#queue.addAfter({ kind, ref }, delayMs, level),
      backlogOf: (tenant) => this.#queue.backlogOf(tenant),
      recordEvent: (object, reason, note) => deps.events.record(object, { ...EVENTS[reason], reason, note }),
      version: () => this.#version,
      secret: () => this.#installation.secret,
    }
  }

  /** A status that this process has not written may be the late write of a deposed leader: it is compared with the right one soon. */
  #delivered(kind: string, before: Described | undefined, after: Described | undefined): void {
    const isOwn = after !== undefined && this.#ownWrites.delivered(after)
    if (!isOwn && before && after && isDescribedOtherwise(before, after))
      this.#queue.addAfter({ kind, ref: refOf(after) }, COMPARE_AFTER_MS, 'background')
    if (before && before.metadata.uid !== after?.metadata.uid) this.#ownWrites.forget(before.metadata.uid)
  }

  #polled(): void {
    const { live, watermark, waiting } = this.#acknowledgements
    this.#deps.metrics?.polled({ revision: this.#projection.revision, watermark, waiting })
    for (const controller of this.#controllers) controller.onPoll()
    if (live.length === 0) return // no gateway announces versions: the last common version stays
    const version = lowestCommonVersion(live.map(({ acknowledgement }) => acknowledgement))
    if (version === this.#version) return
    this.#deps.log.info(`records are written in version ${version} from now on: every live gateway reads it`)
    this.#version = version
    for (const controller of this.#controllers) controller.onVersion()
  }

  #byRecord(kind: RecordKind): readonly ObjectController[] {
    return this.#controllers.filter(({ api }) => api.recordKind === kind)
  }
}

interface Described extends KubeObject {
  readonly status?: unknown
}

function isDescribedOtherwise(before: Described, after: Described): boolean {
  return before.metadata.uid === after.metadata.uid && JSON.stringify(before.status) !== JSON.stringify(after.status)
}

/** @returns the priority levels that wait while the watch is so far behind */
function heldAt(lagMs: number): readonly Level[] {
  if (lagMs > WATCH_LAG_MS.create) return ['create', 'background']
  return lagMs > WATCH_LAG_MS.background ? ['background'] : []
}
