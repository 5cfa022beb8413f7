/** The kind ApiKey, as the operator runs it. Decides nothing. */
import { apiKeyKind } from '#api/apikey-kind.ts'
import type { Account } from '#api/account.ts'
import type { ApiKey } from '#api/apikey.ts'
import { type Informer, isKubeError, type KubeError, namespaceOf, type ObjectRef, refOf, uidOf } from '#kube/port.ts'
import { effective } from '#policy/effective.ts'
import { findCondition } from '#api/condition-list.ts'
import { apiKeys } from '#api/resources.ts'
import type { Namespace } from '#kube/resources.ts'
import { messageOf } from '#platform/message-of.ts'
import { OutageLog } from '#platform/outage-log.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import { ACCOUNT_INDEX, isBalanceExhausted } from '../../accounts/accounts.ts'
import type { Level } from '../../loop/level.ts'
import { Keyring, NamespaceShareFull } from '../../shards/keyring.ts'
import { shardsDeps } from '../../shards/secret-shards.ts'
import { inTurns } from '../../loop/in-parallel.ts'
import { itemKey } from '../../loop/item.ts'
import type { ProjectionChange } from '../../projection/store.ts'
import { ShardFull } from '../../shards/shard-writer.ts'
import { isSettled } from '../../projection/programmed.ts'
import { findByUid, type Kind, type KindRow, type OperatorContext, type Wake, watch } from '../kind.ts'
import { HASH_INDEX, hashesOf } from './hash-source.ts'
import { KeptRecords } from './kept-records.ts'
import { LimitWatch } from './limit-watch.ts'
import { CredentialVault, KeyMemory } from './memory.ts'
import { createOrphans, ORPHAN_QUEUE, reportKept } from './orphans.ts'
import { ShownUsage } from '../shown-usage.ts'
import { usageStatus, weigh } from '../usage-status.ts'
import { apply } from './apply.ts'
import { nextEndMs, urgencyOf } from './keyring-entry.ts'
import { ageOf, observe } from './observe.ts'
import type { FailureTopic, Observed } from './observed.ts'
import { keySubjects } from './key-subjects.ts'
import { prepareKeys, searchAgain, searchRedis } from './start-records.ts'
import type { Step } from './step.ts'
import { hasStandIn, isStandIn, settleStandIn, standInFor } from './unread-keys.ts'
import { UsedValues } from './used-values.ts'
import { WaitingKeys } from './waiting-keys.ts'
import { nextStep, reportStep } from './steps.ts'

const KIND = apiKeys.kind
/** Time after which the entry of an orphan is written again, ms. */
const ORPHAN_RETRY_MS = 10_000
/** Maximum number of entries per turn of the event loop. */
const TURN = 500
/** Maximum number of owners of one hash that are told about another ApiKey that names it. */
const MAX_TOLD = 16

export const apiKeyRow: KindRow = { api: apiKeyKind, create: (context) => new ApiKeys(context) }

export interface ApiKeyDeps extends OperatorContext {
  readonly apiKeys: Informer<ApiKey>
  readonly keyring: Keyring
  readonly usedValues: UsedValues
  readonly vault: CredentialVault
  readonly memory: KeyMemory
  readonly kept: KeptRecords
  readonly limits: LimitWatch
  readonly waiting: WaitingKeys
  readonly shownUsage: ShownUsage
  /** @returns whether there is such an ApiKey */
  readonly enqueueKey: (uid: string, level: Level) => boolean
}

class ApiKeys implements Kind<ApiKey, Observed, Step> {
  readonly name = KIND
  readonly informer
  readonly watches
  readonly others
  readonly nextStep = nextStep
  readonly report = reportStep
  readonly #deps: ApiKeyDeps
  readonly #keyringOutage: OutageLog

  constructor(context: OperatorContext) {
    this.#deps = createDeps(context, (uids) => {
      for (const uid of uids) if (!this.#deps.enqueueKey(uid, 'change')) this.orphaned(uid)
    })
    this.informer = this.#deps.apiKeys
    const { accounts, informers } = context
    this.watches = [
      watch(this.informer, (before, after) => this.#changed(before, after)),
      watch(accounts.informer, (before, after) => this.#onAccount(before, after)),
      ...(informers.namespaces ? [watch(informers.namespaces, (before, after) => this.#onNamespace(before, after))] : []),
    ]
    accounts.attachKeys(this.#deps.keyring)
    this.others = [createOrphans(this.#deps)]
    this.#keyringOutage = new OutageLog('the keyring', context.log, context.clock)
    context.subjects.add(keySubjects(this.#deps))
    this.#deps.keyring.onSettled((uid, error) => this.#settled(uid, error))
  }

  get revision(): number {
    return this.#deps.keyring.revision
  }

  observe(ref: ObjectRef): Observed | undefined {
    return observe(ref, this.#deps)
  }

  async apply(step: Step, observed: Observed): Promise<void> {
    await apply(step, observed, this.#deps)
  }

  waits(ref: ObjectRef, observed: Observed): void {
    if (observed.projected === undefined || isSettled(observed)) return
    const { programmed } = observed.apiKey.status ?? {}
    this.#deps.acknowledgements.expect(itemKey({ kind: KIND, ref }), observed.projected.revision, uidOf(observed.apiKey), programmed)
  }

  /** By the clock of this process, which may differ from the time by which values end. */
  nextChangeAtMs({ entry, now }: Observed): number | undefined {
    const endMs = nextEndMs(entry, now)
    return endMs === undefined ? undefined : endMs - now + this.#deps.clock.now()
  }

  failed(ref: ObjectRef, step: Step, error: KubeError): void {
    const { memory } = this.#deps
    const uid = this.#uidAt(ref)
    if (step.do === 'record-values') memory.commitFailed(uid, error.code, error.message)
    else memory.failed(uid, topicOf(step.do), error)
  }

  succeeded(ref: ObjectRef, step: Step): void {
    this.#deps.memory.succeeded(this.#uidAt(ref), topicOf(step.do))
  }

  settled(ref: ObjectRef): boolean {
    return this.#deps.memory.settled(this.#uidAt(ref))
  }

  async prepare(): Promise<readonly ProjectionChange[]> {
    await this.#deps.keyring.load()
    await this.#deps.usedValues.load()
    this.#reportUnreadable()
    return await prepareKeys(this.#deps)
  }

  async reached(isTakenOver: boolean): Promise<void> {
    const { kept } = this.#deps
    if (!kept.isRedisRead) await searchRedis(this.#deps)
    if (isTakenOver) kept.forgetUnwatched()
  }

  start(): void {
    settleStandIn(this.#deps)
    this.#enqueueOrphans()
    reportKept(this.#deps)
  }

  async stop(): Promise<void> {
    const { limits, shownUsage, keyring, usedValues, log } = this.#deps
    limits.stop()
    shownUsage.stop()
    usedValues.stop()
    await keyring.flush().catch((error: Error) => log.warn(`the keyring could not be written at the end (${error.message})`))
    keyring.stop()
  }

  orphaned(uid: string, delayMs = 0): void {
    const entry = this.#deps.keyring.get(uid)
    if (entry?.deletedMs === null) this.#enqueueOrphan(entry, delayMs)
  }

  keeps(uid: string): boolean {
    return this.#deps.kept.has(uid) || this.#deps.keyring.isUnreadable(uid) || isStandIn(uid)
  }

  standIn(has: (uid: string) => boolean): ProjectionChange | undefined {
    return standInFor(this.#deps, has)
  }

  /** The read of an issued Secret. */
  isRoutine(step: Step, { apiKey }: Observed): boolean {
    const isRead = step.do === 'read-secret' && step.level === 'background'
    return isRead && findCondition(apiKey.status?.conditions, 'SecretIssued')?.status === 'True'
  }

  isUnproven({ status }: ApiKey): boolean {
    return findCondition(status?.conditions, 'Programmed')?.status !== 'True'
  }

  polled(): Iterable<string> {
    this.#deps.limits.polled()
    return []
  }

  /** Drops tombstones, reads the keyring Secrets again and searches for orphans and lost keys. */
  check(): void {
    const { keyring, usedValues, subjects, log } = this.#deps
    keyring.check()
    usedValues.check()
    const nowMs = subjects.timeMs()
    if (nowMs !== undefined) keyring.expireTombstones(nowMs)
    searchAgain(this.#deps).catch((error: unknown) =>
      log.warn(`lost keys cannot be searched (${messageOf(error)}); tried again in ten minutes`),
    )
    if (hasStandIn(this.#deps)) settleStandIn(this.#deps)
    this.#enqueueOrphans()
    reportKept(this.#deps)
    this.#reportUnreadable()
  }

  *#changed(before: ApiKey | undefined, after: ApiKey | undefined): Iterable<Wake> {
    if (after) yield* this.#edited(before, after)
    if (before === undefined) return
    if (before.metadata.uid !== after?.metadata.uid) {
      this.#removed(before)
      yield { ref: refOf(before), level: 'background' } // the queue forgets its back-off
    }
    yield* this.#claimants(before, after)
    if (freesPlace(before, after)) yield* this.#next(before)
  }

  *#edited(before: ApiKey | undefined, after: ApiKey): Iterable<Wake> {
    const level = urgencyOf(before, after)
    if (level === 'urgent') this.#deps.memory.triesAtOnce(uidOf(after))
    if (level !== undefined) yield { ref: refOf(after), level }
    yield* this.#owners(before, after)
  }

  /** The oldest ApiKey that waits for a place in the account of a key that has ended. */
  *#next({ spec: { accountRef } }: ApiKey): Iterable<Wake> {
    const oldest = accountRef && this.#deps.waiting.first(accountRef.name)
    if (oldest) yield { ref: oldest, level: 'background' }
  }

  /** A changed namespace selector of an Account changes the keys themselves; any other edit, or a new balance, changes at most their statuses. */
  *#onAccount(before: Account | undefined, after: Account | undefined): Iterable<Wake> {
    const facts = (account: Account | undefined): string => JSON.stringify([account?.spec, account && isBalanceExhausted(account)])
    const selector = (account: Account | undefined): string => JSON.stringify(account?.spec.namespaces)
    if (facts(before) === facts(after)) return
    const level = before && after && selector(before) !== selector(after) ? 'urgent' : 'background'
    for (const apiKey of this.informer.byIndex(ACCOUNT_INDEX, (after ?? before)?.metadata.name ?? '')) yield { ref: refOf(apiKey), level }
  }

  /** Keys of a namespace whose labels changed, and whose account selects namespaces by label. */
  *#onNamespace(before: Namespace | undefined, after: Namespace | undefined): Iterable<Wake> {
    const labels = (namespace: Namespace | undefined): string => JSON.stringify(namespace?.metadata.labels)
    const name = (after ?? before)?.metadata.name
    if (labels(before) === labels(after) || name === undefined) return
    for (const apiKey of this.informer.byIndex(NAMESPACE_INDEX, name)) yield { ref: refOf(apiKey), level: 'urgent' }
  }

  /** Younger ApiKeys that wait for a hash which this ApiKey no longer names. */
  *#claimants(before: ApiKey, after: ApiKey | undefined): Iterable<Wake> {
    const left = after === undefined ? [] : hashesOf(after)
    for (const hash of hashesOf(before).filter((one) => !left.includes(one)))
      for (const claimant of this.informer.byIndex(HASH_INDEX, hash)) yield { ref: refOf(claimant), level: 'change' }
  }

  /** Keys with a hash that this ApiKey names now: their owners are told. Thousands of ApiKeys with one hash tell only the first few. */
  *#owners(before: ApiKey | undefined, after: ApiKey): Iterable<Wake> {
    const known = before === undefined ? [] : hashesOf(before)
    for (const hash of hashesOf(after).filter((one) => !known.includes(one)))
      for (const { namespace, name } of [...this.#deps.keyring.holdersOf(hash)].slice(0, MAX_TOLD))
        if (namespace !== after.metadata.namespace) yield { ref: { namespace, name }, level: 'background' }
  }

  #removed(apiKey: ApiKey): void {
    const { memory, kept, shownUsage, subjects, acknowledgements, waiting, enqueue } = this.#deps
    const uid = uidOf(apiKey)
    if (apiKey.spec.accountRef) waiting.delete(apiKey.spec.accountRef.name, ageOf(apiKey))
    memory.forget(uid)
    kept.forget(uid)
    shownUsage.forget(uid)
    if (!subjects.mayExist(uid)) subjects.ledger?.deleted(uid) // otherwise its orphaned entry is confirmed by a live read before
    acknowledgements.forget(itemKey({ kind: KIND, ref: refOf(apiKey) }))
    enqueue(ORPHAN_QUEUE, { namespace: namespaceOf(apiKey), name: uid }, 'urgent')
  }

  #settled(uid: string, error: Error | undefined): void {
    const { memory, subjects, enqueueKey } = this.#deps
    subjects.ledger?.changed(uid)
    if (error === undefined) {
      this.#keyringOutage.works()
      memory.succeeded(uid, 'Keyring')
    }
    const isFailed = error !== undefined && !isKubeError(error, 'Conflict') // after a conflict the change is decided again at once
    if (isFailed) this.#commitFailed(uid, error)
    if (!enqueueKey(uid, isFailed ? 'background' : 'change')) this.orphaned(uid, isFailed ? ORPHAN_RETRY_MS : 0)
  }

  #commitFailed(uid: string, error: Error): void {
    const code = error instanceof ShardFull ? 'KeyringFull' : isKubeError(error) ? error.code : 'Other'
    const retryInMs = this.#deps.memory.commitFailed(uid, code, error.message)
    // a condition reports a tenant beyond its share; the log would get thousands of lines about a working keyring
    if (!(error instanceof NamespaceShareFull)) this.#keyringOutage.failed(`the keyring cannot be written: ${error.message}`)
    this.#deps.log.debug({ uid, retryInMs }, 'a keyring entry was not written')
  }

  #enqueueOrphans(): void {
    void inTurns(this.#deps.keyring.entries(), TURN, (entry) => {
      if (entry.deletedMs === null && !findByUid(entry.uid, this.informer)) this.#enqueueOrphan(entry)
    })
  }

  #enqueueOrphan({ namespace, uid }: KeyringEntry, delayMs = 0): void {
    this.#deps.enqueueAfter(ORPHAN_QUEUE, { namespace, name: uid }, delayMs, 'change')
  }

  #reportUnreadable(): void {
    const { keyring, metrics, log } = this.#deps
    const unreadable = [...keyring.unreadable()]
    metrics?.unreadableEntries('keyring', unreadable.length)
    const [first] = unreadable
    if (first)
      log.error(
        { secret: first.secret, entries: unreadable.length },
        `keyring entries of a newer version (${first.why}) are left as they are; update the operator`,
      )
  }

  #uidAt(ref: ObjectRef): string {
    return this.informer.get(ref)?.metadata.uid ?? ''
  }
}

/** Whether a change gives the place of an issued key to another key of its account. */
function freesPlace({ spec, status }: ApiKey, after: ApiKey | undefined): boolean {
  if (status?.keyID === undefined || spec.state === 'Revoked') return false
  return after === undefined || after.spec.state === 'Revoked'
}

/** Keys with an account, by their namespace. */
const NAMESPACE_INDEX = 'namespaceOfAccountKey'
const namespaceOfAccountKey = (apiKey: ApiKey): readonly string[] => (apiKey.spec.accountRef === undefined ? [] : [namespaceOf(apiKey)])

function topicOf(step: Step['do']): FailureTopic {
  if (step === 'read-secret') return 'SecretRead'
  if (step === 'record-values') return 'Keyring' // the status shows a refused record as it shows a refused commit of the keyring
  return step === 'write-secret' || step === 'try-secret' ? 'SecretWrite' : 'Other'
}

/** @param onAdopted called with keys whose entries another process has written */
function createDeps(context: OperatorContext, onAdopted: (uids: Iterable<string>) => void): ApiKeyDeps {
  const { clock, settings, metrics, version } = context
  const apiKeys = context.informers.of(apiKeyKind.resource)
  apiKeys.addIndex(HASH_INDEX, hashesOf)
  apiKeys.addIndex(NAMESPACE_INDEX, namespaceOfAccountKey)
  const keyring = new Keyring({
    ...shardsDeps(context),
    shards: settings.keyringShards,
    maxModelBytesPerNamespace: settings.maxModelBytesPerNamespace,
    backlog: context.backlogOf,
    version,
    onWrite: (shard, bytes, seconds) => metrics?.committed(shard, bytes, seconds),
    onAdopted,
    onReleased: (hash) => {
      for (const claimant of apiKeys.byIndex(HASH_INDEX, hash)) context.enqueue(KIND, refOf(claimant), 'change')
    },
  })
  const enqueueKey = (uid: string, level: Level): boolean => {
    const apiKey = findByUid(uid, apiKeys)
    if (apiKey) context.enqueue(KIND, refOf(apiKey), level)
    return apiKey !== undefined
  }
  const shownUsage = new ShownUsage({
    clock,
    weigh: (uid, usage) => {
      const cached = findByUid(uid, apiKeys)
      if (cached === undefined) return undefined
      const apiKey = context.ownWrites.newest(cached) // the cache may lag behind the last written status
      const entry = keyring.get(uid)
      const { budgets } = effective(entry ?? {}, context.accounts.planOfAccount(entry?.account))
      return weigh(apiKey.status ?? {}, usageStatus(apiKey.status, budgets, usage), budgets)
    },
    enqueue: (uid) => void enqueueKey(uid, 'background'),
  })
  const limits = new LimitWatch({ ...context, apiKeys })
  return {
    ...context,
    apiKeys,
    keyring,
    usedValues: new UsedValues(shardsDeps(context)),
    vault: new CredentialVault(clock),
    memory: new KeyMemory(clock),
    kept: new KeptRecords(keyring),
    limits,
    waiting: new WaitingKeys(),
    shownUsage,
    enqueueKey,
  }
}
