/**
 * The directory of accounts: what an ApiKey, an Account or a Plan must know of the others. Reads memory only. The kinds Account and Plan write
 * the records; the kind ApiKey reads what its account says.
 */
import type { Account } from '#api/account.ts'
import type { ApiKey } from '#api/apikey.ts'
import { findCondition } from '#api/condition-list.ts'
import type { Credit } from '#api/credit.ts'
import { type LabelSelector, selects } from '#api/label-selector.ts'
import type { Plan } from '#api/plan.ts'
import { accounts, apiKeys, credits, plans, servedModels } from '#api/resources.ts'
import type { AccountRecord } from '#contract/records/account-record.ts'
import type { PlanRecord } from '#contract/records/plan-record.ts'
import { createdMs, type Informer, namespaceOf, type ObjectRef, refOf, uidOf } from '#kube/port.ts'
import { slicesOf } from '#kube/indexes.ts'
import type { OwnWrites } from '#kube/own-writes.ts'
import type { Namespace } from '#kube/resources.ts'
import { mayHaveBudgets } from '#contract/records/limits-record.ts'
import { formatSum, parseSum } from '#contract/values/signed-micros.ts'
import { balanceOf, needsPrices, sharedPolicy } from '#policy/effective.ts'
import { messageOf } from '#platform/message-of.ts'
import { OutageLog } from '#platform/outage-log.ts'
import { inTurns } from '../loop/in-parallel.ts'
import { accountTenant, creditsTenant, type Item, modelsTenant } from '../loop/item.ts'
import type { Level } from '../loop/level.ts'
import { servingNames } from '../projection/serving-pods.ts'
import type { LiveProcess, ProjectionChange } from '../projection/store.ts'
import type { OperatorDeps } from '../operator-deps.ts'
import { closePeriods, NO_SPEND } from '../shards/account-book.ts'
import { holdCurrency, INSTALLATION_SECRET } from '../shards/installation.ts'
import { shardsDeps } from '../shards/secret-shards.ts'
import { AccountBooks } from './account-books.ts'
import { AccountRecords } from './account-records.ts'
import { BalanceKeeper } from './balance-keeper.ts'
import { beginsBooks, type Claim, claimOf, isAccepted } from './claim.ts'
import { CreditBooks } from './credit-books.ts'
import { refresh } from './live-reads.ts'
import { PublishedCredits } from './published-credits.ts'

/** ApiKeys by the name of their account. */
export const ACCOUNT_INDEX = 'account'
/** Credits by the name of their account. */
export const CREDIT_INDEX = 'accountOfCredit'
/** Accounts by the name of their plan. */
export const PLAN_INDEX = 'plan'

/** A second call of `addIndex` must pass the same function, hence the names. */
const accountNames = ({ spec }: ApiKey): readonly string[] => (spec.accountRef === undefined ? [] : [spec.accountRef.name])
const creditNames = ({ spec }: Credit): readonly string[] => [spec.accountRef.name]
const planNames = ({ spec }: Account): readonly string[] => [spec.planRef.name]

/** What the account of an ApiKey says about the key. */
export interface KeyAccount {
  readonly name: string
  /** undefined for an account that was never accepted, or whose books are damaged: the key keeps the uid that it has. */
  readonly uid: string | undefined
  readonly claim: Claim
  /** Whether the operator is opening its books. */
  readonly isOpening: boolean
  /** When the Account was created, ms since 1970. */
  readonly createdMs: number
  readonly state: Account['spec']['state']
  /** Whether the status of the account says that its balance is used up. */
  readonly isBalanceExhausted: boolean
  /** Whether a budget of money or a balance refuses models without a price. */
  readonly needsPrices: boolean
  /** Whether the account admits the namespace of the key; undefined while nobody knows: the key stays as it is. */
  readonly admitsNamespace: boolean | undefined
  /** Whether the address of the owner waits for its verification. */
  readonly isPending: boolean
  readonly planName: string
  /** The manifest of the plan; undefined if there is none. */
  readonly planSpec: Plan['spec'] | undefined
  /** The plan in effect; the last one if the Plan was deleted. */
  readonly plan: PlanRecord | undefined
}

/** The keys of accounts, from the keyring. */
export interface AccountKeys {
  /** Number of the keys of an account that are neither revoked nor expired at a time; expired ones are left out only if there are `most` or more. */
  activeOf(uid: string, most: number, nowMs: number): number
  /** Number of all its keys that are not deleted. */
  countOf(uid: string): number
  /** Whether any key, revoked or not, names the account. */
  hasKeys(uid: string): boolean
  /** `namespace/name` of a key, also of one that was deleted within 24 hours; undefined if the key is unknown. */
  nameOf(uid: string): string | undefined
}

export interface AccountsContext {
  /** Identity of this installation; known from the start of the kinds on. */
  readonly installation: () => string
  readonly enqueueKey: (apiKey: ObjectRef, level: Level) => void
  readonly ownWrites: OwnWrites
  /** Gateway processes with a heartbeat. */
  readonly live: () => readonly LiveProcess[]
}

/** Maximum number of keys per turn of the event loop. */
const TURN = 500
/** Periods of a balance that may get more spend. */
const OPEN_PERIODS = 2
/** A new store closes the periods of books with the spend of so many processes: each start of `make run` is another process. */
const MANY_PROCESSES = 100

export class Accounts {
  readonly books: AccountBooks
  readonly credits: CreditBooks
  readonly published: PublishedCredits
  readonly balances: BalanceKeeper
  readonly records: AccountRecords
  readonly informer: Informer<Account>
  readonly plans: Informer<Plan>
  readonly apiKeys: Informer<ApiKey>
  /** Without most of those that are in the books. */
  readonly creditObjects: Informer<Credit>
  readonly #deps: OperatorDeps
  readonly #namespaces: Informer<Namespace> | undefined
  readonly #context: AccountsContext
  readonly #writtenListeners: Array<(name: string) => void> = []
  readonly #restoredListeners: Array<(name: string) => void> = []
  #currency: string
  #keys: AccountKeys = { activeOf: () => 0, countOf: () => 0, hasKeys: () => false, nameOf: () => undefined }

  constructor(deps: OperatorDeps, context: AccountsContext) {
    const { informers, leader, settings } = deps
    this.#deps = deps
    this.#context = context
    this.informer = informers.of(accounts)
    this.plans = informers.of(plans)
    this.apiKeys = informers.of(apiKeys)
    this.creditObjects = informers.of(credits)
    this.#namespaces = informers.namespaces
    this.#currency = settings.billingCurrency
    this.books = new AccountBooks({ ...shardsDeps(deps), leader, installation: context.installation })
    const lacksEntries = (): boolean => this.records.hasMoreCredits((name) => this.credits.sumOf(name))
    this.credits = new CreditBooks({ ...shardsDeps(deps), leader, lacksEntries })
    this.published = new PublishedCredits(this.credits)
    this.balances = this.#createBalances()
    this.records = new AccountRecords({ ...shardsDeps(deps), shards: settings.mountedShards })
    this.apiKeys.addIndex(ACCOUNT_INDEX, accountNames)
    this.informer.addIndex(PLAN_INDEX, planNames)
    this.creditObjects.addIndex(CREDIT_INDEX, creditNames)
  }

  get installation(): string {
    return this.#context.installation()
  }

  /** Currency of all amounts of this installation: three letters. */
  get currency(): string {
    return this.#currency
  }

  /**
   * Reads books and records, and the Accounts that are older in the cache than in their records, before any kind starts: a key must not work
   * again because the cache of a standby still admits its namespace. @throws KubeError
   */
  async load(): Promise<void> {
    if (!this.#deps.settings.hasAccounts) return await this.books.read() // their names, whose spend must stay
    await Promise.all([this.#namespaces?.synced, this.#claim(), this.#holdCurrency()])
    const formerOf = (account: Account): AccountRecord | undefined => this.records.get('account', uidOf(account))
    await refresh(accounts, this.informer.list(), formerOf, { kube: this.#deps.kube, ownWrites: this.#context.ownWrites })
  }

  /** Begins to follow the spend of all accounts, once the store of the gateways was taken over. */
  start(): void {
    if (this.#deps.settings.hasAccounts) this.balances.start()
  }

  /** Called by the kind ApiKey, which owns the keyring. */
  attachKeys(keys: AccountKeys): void {
    this.#keys = keys
  }

  get keys(): AccountKeys {
    return this.#keys
  }

  claimOf(account: Account): Claim {
    const { name } = account.metadata
    const { books, balances, installation } = this
    return claimOf(account, {
      installation,
      book: books.newest(name),
      isUnreadable: books.isUnreadable(name),
      isDamaged: books.isDamaged(name),
      isBroken: balances.isBroken(name),
    })
  }

  /** Gives the books of its name to an Account: new ones, or those of the Account that it succeeds. Their spend goes on. */
  openBooks(account: Account): void {
    const { name } = account.metadata
    const owner = uidOf(account)
    const former = this.books.newest(name)
    this.books.commit({ ...NO_SPEND, ...former, name, owner, changes: former === undefined ? 0 : former.changes + 1 }, 'create')
    // gateways may still hold something of books that were lost
    if (former === undefined && !beginsBooks(account)) this.balances.opened(name)
  }

  /** The record of the present Account of a name; undefined if there is none, or if it was never accepted. */
  recordOf(name: string): AccountRecord | undefined {
    const account = this.informer.get({ namespace: '', name })
    return account && this.#acceptedRecord(account)
  }

  /** The sum of the Credits of a name that are in the books, as its record has it. */
  creditsOf(name: string): string {
    return formatSum(this.credits.sumOf(name))
  }

  /** Calls a listener with the name of each account whose record has reached the store of the gateways. */
  onWritten(listener: (name: string) => void): void {
    this.#writtenListeners.push(listener)
  }

  /** Calls a listener with the name of each account of which the store of the gateways had less spend than the books. */
  onRestored(listener: (name: string) => void): void {
    this.#restoredListeners.push(listener)
  }

  /** Called when the store of the gateways has the newest record of an account. */
  written(uid: string): void {
    this.published.stored(uid)
    const record = this.records.get('account', uid)
    if (record) for (const listener of this.#writtenListeners) listener(record.name)
  }

  /** The account of an ApiKey; undefined if there is no Account of that name. */
  ofKey(apiKey: ApiKey): KeyAccount | undefined {
    const name = apiKey.spec.accountRef?.name
    const cached = name === undefined ? undefined : this.informer.get({ namespace: '', name })
    if (cached === undefined) return undefined
    const account = this.#context.ownWrites.newest(cached)
    const record = this.#acceptedRecord(account)
    const claim = this.claimOf(account)
    return {
      name: account.metadata.name,
      uid: claim === 'Damaged' ? undefined : record?.uid,
      claim,
      isOpening: record === undefined && isAccepted(claim),
      createdMs: createdMs(account),
      state: account.spec.state,
      isBalanceExhausted: isBalanceExhausted(account),
      needsPrices: record !== undefined && this.#needsPrices(record),
      admitsNamespace: this.admits(account, namespaceOf(apiKey)),
      isPending: account.spec.owner?.emailVerification === 'Pending',
      planName: account.spec.planRef.name,
      planSpec: this.plans.get({ namespace: '', name: account.spec.planRef.name })?.spec,
      plan: this.planOf(record),
    }
  }

  #needsPrices(record: AccountRecord): boolean {
    return balanceOf(record)?.credits !== undefined || needsPrices(sharedPolicy(record, this.planOf(record)).budgets)
  }

  /** The plan in effect for the keys of an account. */
  planOf(record: Pick<AccountRecord, 'plan'> | undefined): PlanRecord | undefined {
    return record === undefined || record.plan === null ? undefined : this.records.get('plan', record.plan)
  }

  /** The plan in effect for a key that names the account by uid. @param uid undefined: a key without an account */
  planOfAccount(uid: string | undefined): PlanRecord | undefined {
    return uid === undefined ? undefined : this.planOf(this.records.get('account', uid))
  }

  /** Whether an account admits keys of a namespace; undefined if it asks for labels while the namespaces cannot be listed. */
  admits({ spec: { namespaces: selector } }: Account, namespace: string): boolean | undefined {
    if (selector === undefined) return false
    const name = { [NAME_LABEL]: namespace }
    if (keysOf(selector).every((key) => key === NAME_LABEL)) return selects(selector, name)
    if (this.#namespaces === undefined) return false // the operator may read no labels
    if (!this.#namespaces.isSynced('')) return undefined
    const object = this.#namespaces.get({ namespace: '', name: namespace })
    return object !== undefined && selects(selector, { ...object.metadata.labels, ...name })
  }

  /**
   * The tenant whose turn an item takes. A key with an account takes the turn of the account, a Credit that of the account's Credits, a ServedModel
   * that of the models of its namespace, and any other item that of its namespace.
   */
  tenantOf({ kind, ref }: Item): string {
    if (kind === servedModels.kind) return modelsTenant(ref.namespace)
    const isCredit = kind === credits.kind
    const name = isCredit ? this.creditObjects.get(ref)?.spec.accountRef.name : this.#accountOfKey(kind, ref)
    const account = name === undefined ? undefined : this.informer.get({ namespace: '', name })
    if (isCredit) return creditsTenant(account?.metadata.uid ?? '')
    return account === undefined ? ref.namespace : accountTenant(uidOf(account))
  }

  /** The subject whose budgets must have begun before a record reaches the gateways; undefined for a record without one. */
  subjectIn({ kind, id, text }: ProjectionChange): string | undefined {
    if (text === undefined || kind === 'model' || kind === 'plan') return undefined
    if (kind === 'key') return mayHaveBudgets(text) ? id : undefined
    return this.records.get('account', id)?.ledger
  }

  /** Begins the balances of records on their way to the projection: gateways refuse the keys of an account whose balance has not begun. */
  async seedBalances(changes: readonly ProjectionChange[]): Promise<void> {
    const names = changes.flatMap(({ kind, id, text }) => {
      const record = kind === 'account' && text !== undefined ? this.records.get('account', id) : undefined
      return record === undefined || record.state === 'Deleted' ? [] : [record.name]
    })
    if (names.length > 0) await this.balances.seedBefore(names)
  }

  /** Enqueues all ApiKeys of an account, some per turn of the event loop. */
  enqueueKeys(name: string, level: Level): void {
    void inTurns([...this.apiKeys.byIndex(ACCOUNT_INDEX, name)], TURN, (apiKey) => this.#context.enqueueKey(refOf(apiKey), level))
  }

  #acceptedRecord(account: Account): AccountRecord | undefined {
    const record = this.records.get('account', uidOf(account))
    return record?.state === 'Deleted' ? undefined : record
  }

  #accountOfKey(kind: string, ref: ObjectRef): string | undefined {
    return kind === apiKeys.kind ? this.apiKeys.get(ref)?.spec.accountRef?.name : undefined
  }

  #createBalances(): BalanceKeeper {
    const { balanceStore, informers, settings, leader, clock, log } = this.#deps
    return new BalanceKeeper({
      store: balanceStore,
      books: this.books,
      credits: this.credits,
      clock,
      live: () => this.#context.live(),
      serving: () => new Set(servingNames(slicesOf(informers.endpointSlices, settings.namespace, settings.gatewayService))),
      assertLeading: leader.assertLeading,
      outage: new OutageLog('balances of accounts', log, clock),
      isPrepaid: (name) => this.recordOf(name)?.balance?.billing === 'Prepaid',
      publishedCredits: (name) => this.#publishedCredits(name),
      onRestored: (name) => {
        for (const listener of this.#restoredListeners) listener(name)
      },
    })
  }

  #publishedCredits(name: string): bigint | undefined {
    const { balance } = this.recordOf(name) ?? {}
    return balance && parseSum(balance.credits)
  }

  /** One set after the other, since each may have to raise the fencing token of this leader. The records tell of lost Credits. */
  async #claim(): Promise<void> {
    await Promise.all([this.books.load(), this.records.load()])
    await this.credits.load()
    if (this.#deps.isBalanceStoreNew === true) this.#beginStore()
  }

  /** Every process that has counted in a former store has ended: nothing is held, and no period gets more spend. */
  #beginStore(): void {
    for (const book of [...this.books.entries()]) {
      this.balances.opened(book.name)
      if (book.spent.size > MANY_PROCESSES) this.books.addSpend(book.name, closePeriods(book, book.openFrom + OPEN_PERIODS))
    }
  }

  async #holdCurrency(): Promise<void> {
    const { kube, settings, log } = this.#deps
    const { namespace, billingCurrency } = settings
    this.#currency = await holdCurrency({ kube, namespace, currency: billingCurrency })
    if (this.#currency !== billingCurrency)
      log.error(
        `BILLING_CURRENCY is ${billingCurrency}, and the books of this installation are in ${this.#currency}, which stays, because no amount is converted; while there is neither price nor Credit, remove the entry currency of Secret ${INSTALLATION_SECRET} to change it`,
      )
  }

  check(): void {
    if (!this.#deps.settings.hasAccounts) return // nothing is claimed: a token in a Secret may be higher after the Lease was deleted
    for (const part of [this.books, this.credits, this.records]) part.check()
  }

  /** Reads the spend once more, and writes what is not durable, before a clean end. Never rejects. */
  async stop(): Promise<void> {
    await this.balances.stop()
    for (const part of [this.books, this.credits, this.records]) {
      await part
        .flush()
        .catch((error: unknown) => this.#deps.log.warn(`the Secrets of accounts could not be written (${messageOf(error)})`))
      part.stop()
    }
  }
}

/** Whether the status of an Account says that its balance is used up. Its keys say so then. */
export function isBalanceExhausted({ status }: Account): boolean {
  return findCondition(status?.conditions, 'BalanceExhausted') !== undefined
}

/** Kubernetes sets this label on every Namespace. */
const NAME_LABEL = 'kubernetes.io/metadata.name'

function keysOf({ matchLabels = {}, matchExpressions = [] }: LabelSelector): readonly string[] {
  return [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)]
}
