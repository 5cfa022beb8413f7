/**
 * The directory of accounts: what an ApiKey, an Account or a Plan must know of the others. Reads memory only. The kinds Account and Plan write
 * the records; the kind ApiKey reads what its account says.
 */
import type { Account } from '#api/account.ts'
import type { ApiKey } from '#api/apikey.ts'
import { type LabelSelector, selects } from '#api/label-selector.ts'
import type { Plan } from '#api/plan.ts'
import { accounts, apiKeys, plans } from '#api/resources.ts'
import type { AccountRecord } from '#contract/records/account-record.ts'
import type { PlanRecord } from '#contract/records/plan-record.ts'
import { createdMs, type Informer, namespaceOf, type ObjectRef, refOf, uidOf } from '#kube/port.ts'
import type { Namespace } from '#kube/resources.ts'
import { mayHaveBudgets } from '#contract/records/limits-record.ts'
import { inTurns } from '../loop/in-parallel.ts'
import { accountTenant, type Item } from '../loop/item.ts'
import type { Level } from '../loop/level.ts'
import type { ProjectionChange } from '../projection/store.ts'
import type { OperatorDeps } from '../operator-deps.ts'
import { shardsDeps } from '../shards/secret-shards.ts'
import { AccountBooks } from './account-books.ts'
import { AccountRecords } from './account-records.ts'
import { type Claim, claimOf } from './claim.ts'

/** ApiKeys by the name of their account. */
export const ACCOUNT_INDEX = 'account'
/** Accounts by the name of their plan. */
export const PLAN_INDEX = 'plan'

/** A second call of `addIndex` must pass the same function, hence the names. */
const accountNames = ({ spec }: ApiKey): readonly string[] => (spec.accountRef === undefined ? [] : [spec.accountRef.name])
const planNames = ({ spec }: Account): readonly string[] => [spec.planRef.name]

/** What the account of an ApiKey says about the key. */
export interface KeyAccount {
  readonly name: string
  /** undefined for an account that was never accepted: the key keeps the uid that it has. */
  readonly uid: string | undefined
  readonly claim: Claim
  /** Whether the operator is opening its books. */
  readonly isOpening: boolean
  /** When the Account was created, ms since 1970. */
  readonly createdMs: number
  readonly state: Account['spec']['state']
  /** Whether the account admits the namespace of the key. */
  readonly admitsNamespace: boolean
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
  /** Number of the keys of an account that are neither revoked nor expired; expired ones are left out only if there are `most` or more. */
  activeOf(uid: string, most: number): number
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
}

/** Most keys per turn of the event loop. */
const TURN = 500

export class Accounts {
  readonly books: AccountBooks
  readonly records: AccountRecords
  readonly informer: Informer<Account>
  readonly plans: Informer<Plan>
  readonly apiKeys: Informer<ApiKey>
  readonly #deps: OperatorDeps
  readonly #namespaces: Informer<Namespace> | undefined
  readonly #context: AccountsContext
  #keys: AccountKeys = { activeOf: () => 0, countOf: () => 0, hasKeys: () => false, nameOf: () => undefined }

  constructor(deps: OperatorDeps, context: AccountsContext) {
    const { informers, leader, settings } = deps
    this.#deps = deps
    this.#context = context
    this.informer = informers.of(accounts)
    this.plans = informers.of(plans)
    this.apiKeys = informers.of(apiKeys)
    this.#namespaces = informers.namespaces
    this.books = new AccountBooks({ ...shardsDeps(deps), leader, installation: context.installation })
    this.records = new AccountRecords({ ...shardsDeps(deps), shards: settings.mountedShards })
    this.apiKeys.addIndex(ACCOUNT_INDEX, accountNames)
    this.informer.addIndex(PLAN_INDEX, planNames)
  }

  get installation(): string {
    return this.#context.installation()
  }

  /** Reads books and records, before any kind starts. @throws KubeError */
  async load(): Promise<void> {
    if (!this.#deps.settings.hasAccounts) return
    await Promise.all([this.#namespaces?.synced, this.books.load(), this.records.load()])
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
    const { books, installation } = this
    const book = books.newest(name)
    return claimOf(account, { installation, book, isUnreadable: books.isUnreadable(name), isDamaged: books.isDamaged(name) })
  }

  /** The account of an ApiKey; undefined if there is no Account of that name. */
  ofKey(apiKey: ApiKey): KeyAccount | undefined {
    const name = apiKey.spec.accountRef?.name
    const account = name === undefined ? undefined : this.informer.get({ namespace: '', name })
    if (account === undefined) return undefined
    const record = this.#acceptedRecord(account)
    const claim = this.claimOf(account)
    return {
      name: account.metadata.name,
      uid: record?.uid,
      claim,
      isOpening: record === undefined && (claim === 'Open' || claim === 'Inherit' || claim === 'Owned'),
      createdMs: createdMs(account),
      state: account.spec.state,
      admitsNamespace: this.admits(account, namespaceOf(apiKey)),
      isPending: account.spec.owner?.emailVerification === 'Pending',
      planName: account.spec.planRef.name,
      planSpec: this.plans.get({ namespace: '', name: account.spec.planRef.name })?.spec,
      plan: this.planOf(record),
    }
  }

  /** The plan in effect for the keys of an account. */
  planOf(record: Pick<AccountRecord, 'plan'> | undefined): PlanRecord | undefined {
    return record === undefined || record.plan === null ? undefined : this.records.get('plan', record.plan)
  }

  /** The plan in effect for a key that names the account by uid. @param uid undefined: a key without an account */
  planOfAccount(uid: string | undefined): PlanRecord | undefined {
    return uid === undefined ? undefined : this.planOf(this.records.get('account', uid))
  }

  /** Whether an account admits keys of a namespace. Without the right to read labels a selector may use the name of the namespace alone. */
  admits({ spec: { namespaces: selector } }: Account, namespace: string): boolean {
    if (selector === undefined) return false
    if (this.#namespaces === undefined)
      return keysOf(selector).every((key) => key === NAME_LABEL) && selects(selector, { [NAME_LABEL]: namespace })
    const object = this.#namespaces.get({ namespace: '', name: namespace })
    return object !== undefined && selects(selector, { ...object.metadata.labels, [NAME_LABEL]: namespace })
  }

  /** Whose turn an item takes: a key with an account that of the account, any other that of its namespace. */
  tenantOf({ kind, ref }: Item): string {
    const name = kind === apiKeys.kind ? this.apiKeys.get(ref)?.spec.accountRef?.name : undefined
    const account = name === undefined ? undefined : this.informer.get({ namespace: '', name })
    return account === undefined ? ref.namespace : accountTenant(uidOf(account))
  }

  /** The subject whose budgets must have begun before a record reaches the gateways; undefined for a record without one. */
  subjectIn({ kind, id, text }: ProjectionChange): string | undefined {
    if (text === undefined || kind === 'model' || kind === 'plan') return undefined
    if (kind === 'key') return mayHaveBudgets(text) ? id : undefined
    return this.records.get('account', id)?.ledger
  }

  /** Enqueues all ApiKeys of an account, some per turn of the event loop. */
  enqueueKeys(name: string, level: Level): void {
    void inTurns([...this.apiKeys.byIndex(ACCOUNT_INDEX, name)], TURN, (apiKey) => this.#context.enqueueKey(refOf(apiKey), level))
  }

  #acceptedRecord(account: Account): AccountRecord | undefined {
    const record = this.records.get('account', uidOf(account))
    return record?.state === 'Deleted' ? undefined : record
  }

  check(): void {
    this.books.check()
    this.records.check()
  }

  /** Writes what is not durable, before a clean end. Never rejects. */
  async stop(): Promise<void> {
    for (const part of [this.books, this.records]) {
      await part.flush().catch((error: Error) => this.#deps.log.warn(`the Secrets of accounts could not be written (${error.message})`))
      part.stop()
    }
  }
}

/** Kubernetes sets this label on every Namespace. */
const NAME_LABEL = 'kubernetes.io/metadata.name'

function keysOf({ matchLabels = {}, matchExpressions = [] }: LabelSelector): readonly string[] {
  return [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)]
}
