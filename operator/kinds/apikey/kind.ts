/** Composes the kind ApiKey: keyring, recovery, watches, orphans and release. Decides nothing. */
import { breathe } from '#platform/breathe.ts'
import { sleep } from '#platform/clock.ts'
import { OutageLog } from '#platform/outage-log.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import { apiKeyKind } from '#api/apikey-kind.ts'
import type { ApiKey } from '#api/apikey.ts'
import { findCondition } from '#api/condition-list.ts'
import { apiKeys } from '#api/resources.ts'
import type { KindController, KindRow, OperatorContext, Released } from '../../kind-controller.ts'
import { isKubeError, refOf, uidOf } from '#kube/port.ts'
import { itemKey } from '../../loop/item.ts'
import { createReconcile, type Wait } from '../../loop/reconciler.ts'
import type { ProjectionChange } from '../../projection/store.ts'
import { NamespaceShareFull } from '../../shards/namespace-share.ts'
import { ShardFull } from '../../shards/shard-errors.ts'
import { createDeps } from './create-deps.ts'
import type { ApiKeyDeps } from './deps.ts'
import { FormerNamespaces } from './former-namespaces.ts'
import { gather } from './observe.ts'
import { HASH_INDEX, hashesOf } from './hash-source.ts'
import { nextEndMs } from './keyring-entry.ts'
import type { LimitWatch } from './limit-watch.ts'
import { nextStep } from './steps.ts'
import type { Step } from './step.ts'
import { createOrphans, findByUid, hasApiKey, ORPHAN_QUEUE } from './orphans.ts'
import { reconciled } from './reconciled.ts'
import { recoverEntries, unknownRecords } from './recover.ts'
import { releaseAll } from './release.ts'
import type { SubjectKind } from '../../books/subject-ledger.ts'
import type { ShownUsage } from './shown-usage.ts'
import { startRecords } from './start-records.ts'
import { urgencyOf } from './urgency.ts'

const KIND = apiKeys.kind
/** Longest wait of a start for restored entries to become durable, ms. */
const RESTORED_WITHIN_MS = 5_000
/** Most entries per turn of the event loop. */
const TURN = 500

/** The row of ApiKey in the table of kinds. */
export const apiKeyRow: KindRow = { api: apiKeyKind, create: (context) => new ApiKeys(context) }

/** All ApiKeys of one operator. */
class ApiKeys implements KindController {
  readonly queues
  readonly #context: OperatorContext
  readonly #deps: ApiKeyDeps
  readonly #former: FormerNamespaces
  readonly #keyringOutage: OutageLog
  readonly #limits: LimitWatch
  readonly #usage: ShownUsage
  #open: ReadonlySet<string> = new Set()

  constructor(context: OperatorContext) {
    this.#context = context
    const { deps, limits, usage } = createDeps(context, (uids) => {
      for (const uid of uids) this.#entryChanged(uid)
    })
    this.#deps = deps
    this.#limits = limits
    this.#usage = usage
    this.#keyringOutage = new OutageLog('the keyring', context.deps.log, context.deps.clock)
    this.#former = new FormerNamespaces(context)
    const reconcilerDeps = { clock: this.#deps.clock, log: context.deps.log, random: context.deps.random }
    const orphans = createOrphans({
      ...this.#deps,
      isWatched: (namespace) => this.#isWatched(namespace),
      onEnded: ({ namespace, name, uid }) => {
        context.ledger.deleted(uid)
        context.deps.metrics?.orphaned(1)
        context.deps.log.warn(
          { object: `${namespace}/${name}` },
          'a key without an ApiKey was revoked: its finalizer was removed by force, or its namespace is no longer watched',
        )
      },
    })
    this.queues = [
      { name: KIND, reconcile: createReconcile(reconciled(this.#deps), reconcilerDeps), informer: this.#deps.apiKeys },
      { name: ORPHAN_QUEUE, reconcile: createReconcile(orphans, reconcilerDeps) },
    ]
    context.ledger.add(this.#subjects())
    this.#deps.keyring.onSettled((uid, error) => this.#settled(uid, error))
  }

  get revision(): number {
    return this.#deps.keyring.revision
  }

  async prepare(): Promise<readonly ProjectionChange[]> {
    const { keyring, clock } = this.#deps
    const { store } = this.#context.deps
    await keyring.load()
    this.#reportUnreadable()
    const open = await this.#recover(this.#deps.apiKeys.list())
    const unknown = (await unknownRecords(this.#deps, store)).filter(({ namespace }) => this.#isWatched(namespace))
    const existing = await this.#readExisting([...this.#orphans(), ...unknown])
    const missed = unknown.flatMap(({ uid }) => existing.get(uid) ?? []) // by a cache whose watch was cut off
    const missedOpen = await this.#recover(missed)
    const pending = missed.map(uidOf).filter((uid) => keyring.pending(uid) !== undefined) // `startRecords` finds only durable entries of these
    this.#open = new Set([...open, ...missedOpen, ...pending])
    void keyring.expireTombstones(clock.now())
    return await startRecords(this.#deps, ({ uid, namespace }) => this.#isUnsynced(namespace) || existing.has(uid))
  }

  /** Restores lost keyring entries. @returns uids of keys that are not restored yet */
  async #recover(keys: Iterable<ApiKey>): Promise<ReadonlySet<string>> {
    const { restored, open } = await recoverEntries(keys, this.#deps, this.#context.deps.store)
    if (restored > 0) {
      this.#context.deps.log.warn(`${restored} lost keyring entries were restored`)
      await this.#flushKeyring()
    }
    return open
  }

  /** Writes restored entries before thousands of reconciles compete for the API server. The ApiKey of a refused entry reports the refusal. */
  async #flushKeyring(): Promise<void> {
    const { keyring, clock } = this.#deps
    const ended = new AbortController()
    const flushed = keyring.flush().then(
      () => ended.abort(),
      () => ended.abort(),
    )
    await Promise.race([flushed, sleep(clock, RESTORED_WITHIN_MS, ended.signal)])
  }

  start(): void {
    this.#deps.apiKeys.subscribe((before, after) => this.#changed(before, after))
    void this.#enqueueAll()
    void this.#former.release()
  }

  async stop(): Promise<void> {
    this.#limits.stop()
    this.#usage.stop()
    this.#former.stop()
    const { keyring } = this.#deps
    await keyring
      .flush()
      .catch((error: unknown) => this.#context.deps.log.warn(`the keyring could not be written at the end (${messageOf(error)})`))
    keyring.stop()
  }

  #subjects(): SubjectKind {
    const { keyring, apiKeys: cache } = this.#deps
    const newest = (uid: string): KeyringEntry | undefined => keyring.pending(uid) ?? keyring.get(uid)
    return {
      uids: () => Array.from(keyring.entries(), ({ uid }) => uid),
      budgetsOf: (uid) => (newest(uid)?.deletedMs === null ? newest(uid)?.budgets : undefined),
      mayExist: (uid) =>
        newest(uid)?.deletedMs === null || keyring.isUnreadable(uid) || keyring.isDamaged(uid) || hasApiKey({ uid }, cache),
      onRead: (uid, usage) => this.#usage.read(uid, usage),
      onLoss: (uid) => {
        const apiKey = findByUid(uid, cache)
        if (apiKey) this.#context.enqueue(KIND, refOf(apiKey), 'background')
      },
    }
  }

  onWritten(uid: string): void {
    const apiKey = findByUid(uid, this.#deps.apiKeys)
    if (apiKey === undefined) this.#entryChanged(uid)
    else if (this.#dueStep(apiKey)) this.#context.enqueue(KIND, refOf(apiKey), 'change')
  }

  #entryChanged(uid: string): void {
    const apiKey = findByUid(uid, this.#deps.apiKeys)
    const entry = this.#deps.keyring.get(uid)
    if (apiKey) this.#context.enqueue(KIND, refOf(apiKey), 'change')
    else if (entry?.deletedMs === null) this.#context.enqueue(ORPHAN_QUEUE, { namespace: entry.namespace, name: uid }, 'change')
  }

  keeps(uid: string): boolean {
    return this.#open.has(uid) || this.#deps.keyring.isUnreadable(uid)
  }

  onPoll(): void {
    this.#limits.polled()
  }

  onAvailability(): void {
    this.#enqueueUnproven()
  }

  onServingChanged(): void {
    this.#enqueueUnproven()
  }

  onVersion(): void {
    for (const apiKey of this.#deps.apiKeys.list()) this.#context.enqueue(KIND, refOf(apiKey), 'change')
  }

  release(): Promise<Released> {
    return releaseAll(this.#deps.apiKeys.list(), this.#deps)
  }

  #changed(before: ApiKey | undefined, after: ApiKey | undefined): void {
    const level = after && urgencyOf(before, after)
    if (after && level !== undefined) this.#context.enqueue(KIND, refOf(after), level)
    if (before !== undefined && before.metadata.uid !== after?.metadata.uid) this.#removed(before)
    if (before !== undefined) this.#enqueueClaimants(before, after)
  }

  /** Enqueues younger ApiKeys that wait for a hash which this ApiKey no longer names. */
  #enqueueClaimants(before: ApiKey, after: ApiKey | undefined): void {
    const left = after === undefined ? [] : hashesOf(after)
    for (const hash of hashesOf(before).filter((one) => !left.includes(one)))
      for (const claimant of this.#deps.apiKeys.byIndex(HASH_INDEX, hash)) this.#context.enqueue(KIND, refOf(claimant), 'change')
  }

  /** Called when an ApiKey was deleted. An ApiKey with the same name may exist already. */
  #removed(apiKey: ApiKey): void {
    const uid = uidOf(apiKey)
    this.#deps.memory.forget(uid)
    this.#usage.forget(uid)
    this.#context.ledger.deleted(uid)
    this.#deps.acknowledgements.forget(itemKey({ kind: KIND, ref: refOf(apiKey) }))
    this.#context.enqueue(KIND, refOf(apiKey), 'background') // the queue forgets its back-off
    this.#context.enqueue(ORPHAN_QUEUE, { namespace: apiKey.metadata.namespace ?? '', name: uid }, 'urgent')
  }

  /** Called when a commit of this key is durable or was refused. */
  #settled(uid: string, error: Error | undefined): void {
    const { memory, apiKeys: cache, keyring } = this.#deps
    if (error === undefined) this.#keyringOutage.works()
    this.#context.ledger.changed(uid)
    if (error === undefined) memory.succeeded(uid, 'Keyring')
    else this.#commitFailed(uid, error)
    const apiKey = findByUid(uid, cache)
    const entry = keyring.get(uid)
    if (apiKey) this.#context.enqueue(KIND, refOf(apiKey), error === undefined ? 'change' : 'background')
    else if (entry?.deletedMs === null)
      this.#context.enqueueAfter(ORPHAN_QUEUE, { namespace: entry.namespace, name: uid }, error ? 10_000 : 0, 'change')
  }

  #commitFailed(uid: string, error: Error): void {
    const code = error instanceof ShardFull ? 'KeyringFull' : isKubeError(error) ? error.code : 'Other'
    const retryInMs = this.#deps.memory.commitFailed(uid, code, error.message)
    // a condition reports a tenant beyond its share; the log would get thousands of lines about a working keyring
    if (!(error instanceof NamespaceShareFull)) this.#keyringOutage.failed(`the keyring cannot be written: ${error.message}`)
    this.#context.deps.log.debug({ uid, retryInMs }, 'a keyring entry was not written')
  }

  /** Keys whose status does not say that every gateway has them. */
  #enqueueUnproven(): void {
    for (const apiKey of this.#deps.apiKeys.list()) {
      if (findCondition(apiKey.status?.conditions, 'Programmed')?.status !== 'True')
        this.#context.enqueue(KIND, refOf(apiKey), 'background')
    }
  }

  async #enqueueAll(): Promise<void> {
    let count = 0
    for (const apiKey of [...this.#deps.apiKeys.list()]) {
      count += 1
      if (count % TURN === 0) await breathe()
      const step = this.#dueStep(apiKey)
      if (step) this.#context.enqueue(KIND, refOf(apiKey), step.do === 'wait' ? 'background' : step.level)
      else this.#scheduleEnd(apiKey)
    }
    await this.#enqueueOrphans()
  }

  /**
   * The next step of an ApiKey; undefined also if that step is the routine read of an issued Secret, which waits for the resync. Otherwise
   * each start of an operator would read all Secrets at once.
   */
  #dueStep(apiKey: ApiKey): Step | Wait | undefined {
    const observed = gather(refOf(apiKey), this.#deps)
    const step = observed && nextStep(observed)
    return step && isRoutineRead(step) && isSecretIssued(apiKey) ? undefined : step
  }

  /** Enqueues an ApiKey at its next end, so that its status reports the expiry of the key or of a former value. */
  #scheduleEnd(apiKey: ApiKey): void {
    const { keyring, clock } = this.#deps
    const endsInMs = (nextEndMs(keyring.get(uidOf(apiKey)), clock.now()) ?? 0) - clock.now()
    if (endsInMs > 0) this.#context.enqueueAfter(KIND, refOf(apiKey), endsInMs, 'background')
  }

  async #enqueueOrphans(): Promise<void> {
    let count = 0
    for (const entry of this.#deps.keyring.entries()) {
      count += 1
      if (count % TURN === 0) await breathe()
      if (entry.deletedMs === null && !hasApiKey(entry, this.#deps.apiKeys))
        this.#context.enqueue(ORPHAN_QUEUE, { namespace: entry.namespace, name: entry.uid }, 'change')
    }
  }

  /** Drops tombstones, reads the keyring Secrets again and searches for orphans. */
  check(): void {
    const { keyring, clock } = this.#deps
    keyring.check()
    void keyring.expireTombstones(clock.now())
    void this.#enqueueOrphans()
    this.#reportUnreadable()
  }

  /** Entries in watched and synced namespaces whose ApiKey is not in the cache. */
  #orphans(): readonly KeyringEntry[] {
    const { keyring, apiKeys: cache } = this.#deps
    return [...keyring.entries()].filter(
      (entry) =>
        entry.deletedMs === null && this.#isWatched(entry.namespace) && !this.#isUnsynced(entry.namespace) && !hasApiKey(entry, cache),
    )
  }

  /**
   * Lists ApiKeys live, for keys whose ApiKey is not in the cache.
   * @returns by uid, the ApiKeys that exist and are not being deleted. The keys of a namespace that does not answer are refused until it does
   */
  async #readExisting(keys: readonly Pick<KeyringEntry, 'uid' | 'namespace'>[]): Promise<ReadonlyMap<string, ApiKey>> {
    const { kube } = this.#deps
    const isClusterWide = this.#context.deps.settings.watchNamespaces.length === 0
    const namespaces = new Set(keys.map(({ namespace }) => (isClusterWide ? '' : namespace)))
    const found = new Map<string, ApiKey>()
    const list = async (namespace: string): Promise<void> => {
      try {
        for (const apiKey of await kube.list(apiKeys, namespace))
          if (apiKey.metadata.deletionTimestamp === undefined) found.set(uidOf(apiKey), apiKey)
      } catch (error) {
        const where = namespace === '' ? '' : ` of namespace ${namespace}`
        this.#context.deps.log.warn(`keys${where} without an ApiKey in the cache are refused until it can be read (${messageOf(error)})`)
      }
    }
    await Promise.all([...namespaces].map(list))
    return found
  }

  #reportUnreadable(): void {
    const unreadable = [...this.#deps.keyring.unreadable()]
    this.#context.deps.metrics?.unreadableEntries('keyring', unreadable.length)
    const [first] = unreadable
    if (first)
      this.#context.deps.log.error(
        { secret: first.secret, entries: unreadable.length },
        `keyring entries of a newer version (${first.why}) are left as they are; update the operator`,
      )
  }

  /** Whether the namespace cannot be read, because a Role is missing. Its ApiKeys are unknown, so its keys stay as the keyring has them. */
  #isUnsynced(namespace: string): boolean {
    return this.#isWatched(namespace) && !this.#deps.apiKeys.isSynced(namespace)
  }

  #isWatched(namespace: string): boolean {
    const { watchNamespaces } = this.#context.deps.settings
    return watchNamespaces.length === 0 || watchNamespaces.includes(namespace)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function isRoutineRead(step: Step | Wait): boolean {
  return step.do === 'read-secret' && step.level === 'background'
}

/** Whether the status says that the Secret held the key at the last read. */
function isSecretIssued({ status }: ApiKey): boolean {
  return findCondition(status?.conditions, 'SecretIssued')?.status === 'True'
}
