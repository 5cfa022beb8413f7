/** The kind Account, as the operator runs it. */
import type { Account } from '#api/account.ts'
import { accountKind } from '#api/account-kind.ts'
import { accountPolicy } from '#api/account-policy.ts'
import type { ApiKey } from '#api/apikey.ts'
import { findCondition } from '#api/condition-list.ts'
import { isEventReason } from '#api/event-table.ts'
import { budgetsWithoutZone } from '#api/key-policy.ts'
import type { Plan } from '#api/plan.ts'
import { accounts as accountResource, plans } from '#api/resources.ts'
import { type AccountRecord, encodeAccountRecord } from '#contract/records/account-record.ts'
import { identityOf, type ObjectRef, type PatchOperation, refOf, uidOf } from '#kube/port.ts'
import { ACCOUNT_INDEX, PLAN_INDEX } from '../../accounts/accounts.ts'
import { type Claim, isMarked, MARK_ANNOTATION, markFor } from '../../accounts/claim.ts'
import { LiveReads } from '../../accounts/live-reads.ts'
import { asConflict } from '../finalizer.ts'
import { RecordedKind } from '../recorded-kind.ts'
import { isRepeated, type RecordState, recordState } from '../../accounts/record-state.ts'
import { inParallel } from '../../loop/in-parallel.ts'
import { itemKey } from '../../loop/item.ts'
import type { Level } from '../../loop/level.ts'
import type { ProjectionChange } from '../../projection/store.ts'
import { findByUid, type Kind, type KindRow, type OperatorContext, type Wake, watch } from '../kind.ts'
import { AccountBalances } from './account-balances.ts'
import { AccountUsage } from './account-usage.ts'
import { BALANCE_NOTES, crossingOf } from './balance.ts'
import type { DeletedAccounts, Observed, ObservedAccount } from './observed.ts'
import { statusOf } from './status.ts'
import { type AccountStep, BOOK_RETRY_MS, differInBalanceAlone, FIND_AGAIN_MS, nextStep, reportStep, restricts } from './steps.ts'

const KIND = accountResource.kind
/** Delay of a status that counts keys, ms: many may change at once. */
const COUNT_AFTER_MS = 5_000
/** Time after which the refused record of a deleted Account is written again, ms. */
const RECORD_RETRY_MS = 10_000
/** Maximum number of concurrent reads of a start. */
const READS = 32
/** Reasons of conditions that are no Events of an Account: the manifest asks for it, or a crossing writes its own. */
const SILENT: ReadonlySet<string> = new Set(['Suspended', 'BalanceExhausted'])

export const accountRow: KindRow = { api: accountKind, create: (context) => new AccountKind(context) }

class AccountKind extends RecordedKind<Account> implements Kind<Account, Observed, AccountStep> {
  readonly name = KIND
  readonly informer
  readonly watches
  readonly nextStep = nextStep
  readonly report = reportStep
  readonly #live: LiveReads
  readonly #usage: AccountUsage
  readonly #balances: AccountBalances
  /** Refused changes of books, by name. */
  readonly #refused = new Map<string, { readonly message: string; readonly untilMs: number }>()
  /** uids of Accounts that a live read has found although the cache lacks them, each with the monotonic ms until which that counts. */
  readonly #foundLive = new Map<string, number>()
  /** Accounts whose books are damaged; their keys say so. */
  readonly #damaged = new Set<string>()

  constructor(context: OperatorContext) {
    super(context, 'account')
    const { accounts } = context
    this.#live = new LiveReads(context)
    this.informer = accounts.informer
    this.watches = [
      watch(this.informer, (before, after) => this.#changed(before, after)),
      watch(accounts.plans, (before, after) => this.#onPlan(before, after)),
      watch(accounts.apiKeys, counted),
    ]
    this.#usage = new AccountUsage(context)
    this.#balances = new AccountBalances(context)
    accounts.books.onSettled((name, error) => this.#booked(name, error))
    accounts.records.onSettled((uid, error) => {
      const account = findByUid(uid, this.informer)
      if (account) return context.enqueue(KIND, refOf(account), 'background')
      const { name } = (error && accounts.records.get('account', uid)) ?? {}
      if (name !== undefined) context.enqueueAfter(KIND, { namespace: '', name }, RECORD_RETRY_MS, 'change')
    })
  }

  observe(ref: ObjectRef): Observed | undefined {
    const { accounts, ownWrites, clock } = this.context
    const cached = this.informer.get(ref)
    const records = accounts.records
      .named('account', ref.name)
      .filter(({ uid, state }) => state !== 'Deleted' && uid !== cached?.metadata.uid)
    if (records.length > 0) {
      const isFoundLive = records.every(({ uid }) => (this.#foundLive.get(uid) ?? -Infinity) > clock.monotonic())
      return { state: 'Deleted', ref, records, isFoundLive }
    }
    return cached && this.#observe(ownWrites.newest(cached))
  }

  async apply(step: AccountStep, observed: Observed): Promise<void> {
    if (observed.state === 'Deleted') return await this.#endDeleted(observed)
    switch (step.do) {
      case 'read-live':
        return await this.#live.read(accountResource, observed.account)
      case 'open-books':
        return this.context.accounts.openBooks(observed.account)
      case 'mark':
        return await this.#mark(observed)
      case 'publish':
        return this.#publish(step, observed)
      case 'project':
        return this.#project(step, observed)
      case 'write-status':
        return await this.#writeStatus(observed)
      case 'end':
        return undefined // only for deleted objects
    }
  }

  waits(ref: ObjectRef, observed: Observed): void {
    if (observed.state === 'Deleted') return
    const { account, claim, record, isMarked: wasAccepted } = observed
    if (claim === 'Damaged') this.#damaged.add(ref.name)
    // the books of an account that was accepted are its own, and the store may have their spend
    if (claim === 'Damaged' && wasAccepted) this.context.accounts.balances.recover(ref.name, uidOf(account))
    this.expectGateways(KIND, ref, account, record)
  }

  /** Records without an Account count as deleted only after live reads: the cache of a new leader may be older than the record, and a list may be wrong. */
  async prepare(): Promise<readonly ProjectionChange[]> {
    const { accounts, kube } = this.context
    const present = new Map([...this.informer.list()].map((account) => [uidOf(account), account]))
    const others = [...accounts.records.all('account')].filter(({ uid, state }) => state !== 'Deleted' && !present.has(uid))
    const live = others.length === 0 ? [] : await kube.list(accountResource, '')
    const existing = new Set(live.map(uidOf))
    const unlisted = others.filter(({ uid }) => !existing.has(uid))
    const found = await inParallel(unlisted, READS, ({ name }) => kube.get(accountResource, { namespace: '', name }))
    this.#end(
      unlisted.filter(({ uid }, at) => found[at]?.metadata.uid !== uid),
      { isStart: true },
    )
    return this.startRecords(present.values(), (account) => this.#textOf(account))
  }

  async stop(): Promise<void> {
    this.#usage.stop()
    this.#balances.stop()
    await this.context.accounts.stop()
  }

  /** Drops the records of deleted Accounts whose last key is gone. */
  check(): void {
    const { accounts, projection } = this.context
    accounts.check()
    for (const { uid, state } of [...accounts.records.all('account')]) {
      if (state !== 'Deleted' || accounts.keys.hasKeys(uid)) continue
      accounts.records.set(uid, undefined, 'background')
      projection.want('account', uid, undefined, 'background')
    }
  }

  #observe(account: Account): ObservedAccount {
    const { accounts, clock, subjects } = this.context
    const { name } = account.metadata
    const former = accounts.records.get('account', uidOf(account))
    const keys = [...accounts.apiKeys.byIndex(ACCOUNT_INDEX, name)]
    const now = subjects.timeMs() ?? clock.now()
    const ledgerName = accounts.books.ledgerName(name)
    const claim = accounts.claimOf(account)
    return {
      state: 'Present',
      ...this.#balances.factsOf(account),
      balance: this.#balances.shown(account),
      claim,
      book: accounts.books.newest(name),
      isBooking: accounts.books.state(name) === 'Pending',
      bookRefusal: this.#refusalOf(name),
      isMarked: isMarked(accounts.installation, account),
      isStale: this.#live.isStale(account, former),
      former,
      record: this.#recordState(account, claim),
      plan: accounts.planOf(former),
      planSpec: accounts.plans.get({ namespace: '', name: account.spec.planRef.name })?.spec,
      keyCount: keys.length,
      activeKeyCount: keys.filter((apiKey) => isActive(apiKey, now)).length,
      usage: this.#usage.shown(ledgerName),
      spendLoss: subjects.ledger?.loss(ledgerName),
      heldBack: subjects.ledger?.heldBack(ledgerName) ?? [],
      isBalanceDoubted: claim === 'Owned' && accounts.balances.heldBackOf(name) > 0n,
      now,
    }
  }

  /** The durable record of damaged books stays, since it has the sum that was published last: it is only taken from the gateways. */
  #recordState(account: Account, claim: Claim): RecordState {
    const state = recordState('account', uidOf(account), this.#textOf(account), this.context)
    return claim === 'Damaged' ? { ...state, isStored: state.projected !== undefined || state.isProjecting } : state
  }

  /** The wanted text. Until the Account owns its books and is marked, the present text stays. */
  #textOf(account: Account): string | undefined {
    const { accounts, version } = this.context
    const claim = accounts.claimOf(account)
    const isOpening = claim === 'Open' || claim === 'Inherit' || (claim === 'Owned' && !isMarked(accounts.installation, account))
    const isStale = this.#live.isStale(account, accounts.records.get('account', uidOf(account)))
    if (isOpening || isStale || claim === 'Unreadable') return accounts.records.textOf(uidOf(account))
    if (claim !== 'Owned') return undefined
    const record = this.#recordOf(account)
    return record && encodeAccountRecord(record, version())
  }

  /** @returns undefined for a new account whose budgets have no time zone: it would allow what the manifest does not */
  #recordOf(account: Account): AccountRecord | undefined {
    const { accounts } = this.context
    const { metadata, spec } = account
    const former = accounts.records.get('account', uidOf(account))
    if (former === undefined && budgetsWithoutZone({ budgets: spec.budgets }).length > 0) return undefined
    const { name, generation = 0 } = metadata
    return {
      kind: 'account',
      version: 1,
      revision: 0,
      uid: uidOf(account),
      name,
      generation,
      state: spec.state,
      plan: this.#planUid(spec.planRef.name) ?? former?.plan ?? null,
      ledger: accounts.books.ledgerName(name),
      balance: { credits: accounts.creditsOf(name), billing: account.spec.billing },
      ...accountPolicy(spec, former),
    }
  }

  /** uid of the Plan, once its record is on its way to the gateways. */
  #planUid(name: string): string | undefined {
    const { accounts } = this.context
    const plan = accounts.plans.get({ namespace: '', name })
    return plan && accounts.records.get('plan', uidOf(plan))?.uid
  }

  async #mark({ account }: ObservedAccount): Promise<void> {
    const { kube, accounts, ownWrites } = this.context
    const { annotations, resourceVersion } = account.metadata
    const mark = markFor(accounts.installation, account)
    const add: PatchOperation =
      annotations === undefined
        ? { op: 'add', path: '/metadata/annotations', value: { [MARK_ANNOTATION]: mark } }
        : { op: 'add', path: `/metadata/annotations/${MARK_ANNOTATION.replace('/', '~1')}`, value: mark }
    const test: PatchOperation = { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion }
    ownWrites.remember(await kube.patch(accountResource, refOf(account), [test, add]).catch(asConflict))
  }

  #project({ level }: AccountStep, { account, record: { wanted } }: ObservedAccount): void {
    const { accounts, projection } = this.context
    const { name } = account.metadata
    projection.want('account', uidOf(account), wanted, level)
    if (accounts.recordOf(name)?.balance?.credits === accounts.creditsOf(name)) accounts.published.made(uidOf(account))
    if (this.#damaged.delete(name)) accounts.enqueueKeys(name, 'background')
  }

  #publish(step: AccountStep, observed: ObservedAccount): void {
    const { accounts, subjects, enqueue } = this.context
    const { account, claim, former, record } = observed
    const uid = uidOf(account)
    if (claim !== 'Damaged') accounts.records.set(uid, record.wanted, step.level)
    this.#project(step, observed)
    if (isRepeated(record)) return
    const now = accounts.records.get('account', uid)
    if (claim === 'Owned' && differInBalanceAlone(former, now)) return // neither budgets nor what the keys report has changed
    subjects.ledger?.changed(accounts.books.ledgerName(account.metadata.name))
    accounts.enqueueKeys(account.metadata.name, 'background')
    const left = former !== undefined && former.plan !== now?.plan ? accounts.planOf(former) : undefined
    if (left) enqueue(plans.kind, { namespace: '', name: left.name }, 'background')
  }

  /** Ends the records of Accounts that a live read does not find: the cache of a new leader may be older than a record. */
  async #endDeleted({ ref, records }: DeletedAccounts): Promise<void> {
    const { kube, clock } = this.context
    const live = await kube.get(accountResource, ref)
    const found = records.find(({ uid }) => uid === live?.metadata.uid)
    if (found) this.#foundLive.set(found.uid, clock.monotonic() + FIND_AGAIN_MS)
    this.#end(records.filter((record) => record !== found))
  }

  /** Refuses all keys of deleted Accounts. Their books stay. @param options.isStart the projection has not started */
  #end(records: readonly AccountRecord[], { isStart = false } = {}): void {
    const { accounts, projection, acknowledgements, version } = this.context
    for (const record of records) {
      const text = encodeAccountRecord({ ...record, state: 'Deleted', revision: 0 }, version())
      accounts.records.set(record.uid, text, 'urgent')
      this.#foundLive.delete(record.uid)
      if (isStart) continue
      projection.want('account', record.uid, text, 'urgent')
      accounts.published.forget(record.uid)
      acknowledgements.forget(itemKey({ kind: KIND, ref: { namespace: '', name: record.name } }))
      accounts.enqueueKeys(record.name, 'background')
    }
  }

  async #writeStatus(observed: ObservedAccount): Promise<void> {
    const { kube, ownWrites, recordEvent, metrics } = this.context
    const { account } = observed
    const status = statusOf(observed)
    ownWrites.remember(await kube.applyStatus(accountResource, { ...account, metadata: identityOf(account), status }))
    for (const { type, reason, message } of status.conditions ?? [])
      if (findCondition(account.status?.conditions, type)?.reason !== reason && !SILENT.has(reason) && isEventReason(reason))
        recordEvent(account, reason, message)
    const crossing = crossingOf(observed, status)
    if (crossing === undefined) return
    recordEvent(account, crossing, BALANCE_NOTES[crossing])
    metrics?.balanceCrossed(crossing)
  }

  #booked(name: string, error: Error | undefined): void {
    const { clock, enqueue, enqueueAfter } = this.context
    const ref = { namespace: '', name }
    if (error === undefined) this.#refused.delete(name)
    else this.#refused.set(name, { message: error.message, untilMs: clock.monotonic() + BOOK_RETRY_MS })
    if (error === undefined) enqueue(KIND, ref, 'change')
    else enqueueAfter(KIND, ref, BOOK_RETRY_MS, 'background')
  }

  #refusalOf(name: string): string | undefined {
    const refused = this.#refused.get(name)
    return refused !== undefined && refused.untilMs > this.context.clock.monotonic() ? refused.message : undefined
  }

  *#changed(before: Account | undefined, after: Account | undefined): Iterable<Wake> {
    const object = after ?? before
    if (after) this.#foundLive.delete(uidOf(after))
    const level = levelOf(before, after)
    if (before && before.metadata.uid !== after?.metadata.uid) this.#balances.forget(before.metadata.name)
    if (object && level !== undefined) yield { ref: refOf(object), level }
  }

  *#onPlan(before: Plan | undefined, after: Plan | undefined): Iterable<Wake> {
    const edition = (plan: Plan | undefined): string => `${plan?.metadata.uid} ${plan?.metadata.generation}`
    if (edition(before) === edition(after)) return
    const name = (after ?? before)?.metadata.name ?? ''
    for (const account of this.context.accounts.informer.byIndex(PLAN_INDEX, name)) yield { ref: refOf(account), level: 'background' }
  }
}

/** @returns undefined for a change that the operator wrote */
function levelOf(before: Account | undefined, after: Account | undefined): Level | undefined {
  if (after === undefined) return 'urgent'
  if (before === undefined) return 'create'
  if (before.metadata.uid !== after.metadata.uid) return 'urgent'
  if (before.metadata.generation !== after.metadata.generation) return restricts(bare(before), bare(after)) ? 'urgent' : 'change'
  return JSON.stringify(before.metadata.annotations) === JSON.stringify(after.metadata.annotations) ? undefined : 'change'
}

/** The manifest as a record, to compare two manifests; the name of the plan stands for its uid. */
function bare({ metadata, spec }: Account): AccountRecord {
  const { name, uid = '' } = metadata
  const { state, planRef } = spec
  return {
    kind: 'account',
    version: 1,
    revision: 0,
    uid,
    name,
    generation: 0,
    state,
    plan: planRef.name,
    ledger: name,
    balance: { credits: '0', billing: spec.billing },
    ...accountPolicy(spec),
  }
}

/** Accounts whose numbers of keys change with an ApiKey. */
function* counted(before: ApiKey | undefined, after: ApiKey | undefined): Iterable<Wake> {
  const facts = (apiKey: ApiKey | undefined): string =>
    apiKey === undefined ? '' : [apiKey.metadata.uid, apiKey.spec.state, apiKey.status?.keyID, apiKey.status?.expirationTime].join()
  const name = (after ?? before)?.spec.accountRef?.name
  if (name !== undefined && facts(before) !== facts(after))
    yield { ref: { namespace: '', name }, level: 'background', delayMs: COUNT_AFTER_MS }
}

function isActive({ spec, status }: ApiKey, now: number): boolean {
  if (status?.keyID === undefined || spec.state === 'Revoked') return false
  return status.expirationTime === undefined || Date.parse(status.expirationTime) > now
}
