/**
 * Prepaid accounts from the payment to the settlement: API objects, operators with their real books and keeper, a store that can be emptied and
 * taken back, and gateways. It counts by itself what was paid and spent, and says what the failures so far excuse.
 */
import { accounts, credits } from '#api/resources.ts'
import { formatSignedAmount, type SignedMicros } from '#contract/values/signed-micros.ts'
import { isKubeError, uidOf } from '#kube/port.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import { REOPEN_ANNOTATION } from '../../operator/accounts/claim.ts'
import type { LiveProcess } from '../../operator/projection/store.ts'
import { type AccountBook, bookCodec, readBook } from '../../operator/shards/account-book.ts'
import { creditCodec, type CreditEntry, readCredit } from '../../operator/shards/credit-entry.ts'
import { CreditGateway } from './credit-gateway.ts'
import { CreditCounts, type SetCodec } from './credit-counts.ts'
import type { OpenHold, RestedWorld } from './credit-rest.ts'
import type { BalanceRead } from '../../operator/books/balance-store.ts'
import { CreditOperator, entryIn, NAMESPACE, type OperatedWorld } from './credit-operator.ts'
import { CreditStore } from './credit-store.ts'
import { FakeKubePort } from './fake-kube-port.ts'
import { ManualClock, settle } from './manual-clock.ts'
import { account, credit } from './objects.ts'
import { PendingWork } from './pending-work.ts'
import { uncompressed } from './uncompressed-codec.ts'

/** Longest step of time, ms: a turn of the keeper. */
const STEP_MS = 1_000
/** A process that holds something reports at least this often, in steps. */
const REPORT_STEPS = 3
/** Silence after which a process with a serving pod counts as dead, and the same for an operator that has never seen it alive, ms. */
const DEAD_MS = 3_600_000
const DEAD_UNSEEN_MS = 120_000
/** Time between two changes of period, and a little, ms. */
const HOURS_MS = 7_201_000

export class CreditWorld extends CreditCounts implements RestedWorld {
  readonly namespace = NAMESPACE
  readonly clock = new ManualClock()
  readonly kube = new FakeKubePort()
  readonly store = new CreditStore()
  readonly gateways: [CreditGateway, CreditGateway]
  /** Empty: those of production. */
  readonly codecs: { readonly books: SetCodec<AccountBook>; readonly credits: SetCodec<CreditEntry> }
  /** Names in the ledger of accounts of which the store had, after it went back, a period open that is closed. */
  readonly reopened = new Set<string>()
  readonly #work: PendingWork | undefined
  readonly #dead: CreditGateway[] = []
  #failure: Error | undefined
  #started = 0
  #processes = 0
  #steps = 0

  /** @param options.isPacked uses the codecs of production, in worker threads */
  constructor({ isPacked = false } = {}) {
    super()
    this.codecs = isPacked
      ? { books: {}, credits: {} }
      : {
          books: { shards: 1, codec: () => uncompressed(bookCodec(), readBook) },
          credits: { shards: 2, codec: () => uncompressed(creditCodec, readCredit) },
        }
    this.#work = isPacked ? new PendingWork() : undefined
    this.gateways = [this.#newGateway(), this.#newGateway()]
  }

  stop(): void {
    for (const operator of this.operators) operator.end()
    this.#work?.end()
  }

  /** Starts an operator with a higher fencing token, beside the present one, which does not know. */
  async lead(prepare: (operator: CreditOperator) => void = () => undefined): Promise<CreditOperator> {
    this.#started += 1
    const operator = new CreditOperator(this, this.#started)
    prepare(operator)
    for (const old of this.operators.slice(1)) old.end()
    this.operators = [operator, ...this.operators.slice(0, 1)]
    await operator.start()
    return operator
  }

  /** The leader does all that is to be done now. */
  async catchUp(): Promise<void> {
    if (this.leader.isOver) await this.lead()
    this.leader.release()
    for (let pass = 0; pass < 4; pass += 1) {
      this.leader.see()
      await this.work(this.leader)
      await this.pass(STEP_MS)
    }
    for (const gateway of this.gateways) gateway.sync()
  }

  /** One pass of an operator, which ends later if a write of it is under way. */
  async work(operator: CreditOperator): Promise<void> {
    operator.work().catch((error: unknown) => (this.#failure ??= error instanceof Error ? error : new Error(String(error))))
    await settle()
    if (this.#failure) throw this.#failure
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= STEP_MS) {
      this.#steps += 1
      if (this.#steps % REPORT_STEPS === 0) for (const gateway of this.gateways) gateway.report()
      for (const gateway of this.gateways) this.#watch(gateway)
      await this.clock.advance(Math.min(left, STEP_MS))
      if (this.#work === undefined) continue
      await this.#work.drained()
      await this.clock.advance(0)
    }
  }

  /** Hours pass, and the keeper changes the period of all accounts. A process that is silent for so long counts as dead. */
  async hours(): Promise<void> {
    for (const gateway of this.gateways) gateway.report()
    this.clock.skip(HOURS_MS)
    await this.pass(6 * STEP_MS)
  }

  objects(): ReturnType<OperatedWorld['objects']> {
    const { store } = this.kube
    return { accounts: [...store.informer(accounts).list()], credits: [...store.informer(credits).list()] }
  }

  balanceIn(ledger: string): Promise<BalanceRead> {
    return Promise.resolve(this.store.peek(ledger))
  }

  admitsOne(uid: string): Promise<boolean> {
    return Promise.resolve(this.gateways[0].admit(uid, 1))
  }

  /** The first period of an account that no operator has closed. @param ledger its name in the ledger */
  openFrom(ledger: string): number {
    const books = this.operators.map((operator) => operator.books.newest(operator.books.nameIn(ledger) ?? ''))
    return Math.max(0, ...books.map((book) => book?.openFrom ?? 0))
  }

  /** The spend of one process in one period that an operator has made durable. @param part name of `spentField` */
  durableSpend(ledger: string, part: string): number {
    const books = this.operators.map((operator) => operator.books.durable(operator.books.nameIn(ledger) ?? ''))
    return Math.max(0, ...books.map((book) => book?.spent.get(part) ?? 0))
  }

  /** Processes with a heartbeat. */
  live(): readonly LiveProcess[] {
    const living = this.gateways.filter(({ canReport }) => canReport)
    return living.map(({ name }) => ({ process: `${podOf(name)}/${name}`, pod: podOf(name), acknowledgement: undefined }))
  }

  /** Pods that clients can reach. */
  serving(): ReadonlySet<string> {
    return new Set(this.gateways.map(({ name }) => podOf(name)))
  }

  // API objects

  async createAccount(name: string, annotations: Readonly<Record<string, string>> = {}): Promise<void> {
    const created = await this.#created(() => this.kube.store.create(accounts, account(name, {}, { annotations })))
    if (created) this.uids.set(name, [...(this.uids.get(name) ?? []), uidOf(created)])
  }

  async deleteAccount(name: string): Promise<void> {
    await this.kube.store.remove(accounts, { namespace: '', name })
  }

  /** @returns a function that creates the Account again as it is now, with another uid, as a restore from a backup does */
  async backedUp(name: string): Promise<() => Promise<void>> {
    const present = await this.kube.store.get(accounts, { namespace: '', name })
    return () => this.createAccount(name, present?.metadata.annotations)
  }

  /** An administrator lets the Account go on with the books of its name. */
  async reopen(name: string): Promise<void> {
    const ref = { namespace: '', name }
    const present = await this.kube.store.get(accounts, ref)
    const owner = this.leader.books.newest(name)?.owner
    if (present === undefined || owner === undefined || owner === uidOf(present)) return
    const value = { ...present.metadata.annotations, [REOPEN_ANNOTATION]: owner }
    await this.kube.store.patch(accounts, ref, [{ op: 'add', path: '/metadata/annotations', value }])
  }

  /** @param micros not 0 */
  async pay(id: string, name: string, micros: number): Promise<void> {
    const amount = formatSignedAmount(micros as SignedMicros)
    const created = await this.#created(() => this.kube.store.create(credits, credit(id, { accountRef: { name }, amount })))
    if (created) this.manifests.push(entryIn(created))
  }

  async deleteCredit(id: string): Promise<void> {
    await this.kube.store.remove(credits, { namespace: '', name: id })
  }

  /** @returns a function that takes the Secrets of the books back to their present state */
  async savedSecrets(): Promise<() => Promise<void>> {
    const saved = await this.kube.store.list(secrets, NAMESPACE)
    return async () => {
      const present = new Map((await this.kube.store.list(secrets, NAMESPACE)).map((secret) => [secret.metadata.name, secret]))
      for (const secret of saved) await this.#restoreSecret(secret, present.get(secret.metadata.name))
      Object.assign(this.excuses, { spend: true, credits: true, overspend: true })
    }
  }

  // Processes

  admit(gateway: CreditGateway, name: string, amount: number, uid = this.uids.get(name)?.at(-1)): boolean {
    return uid !== undefined && gateway.admit(uid, amount)
  }

  /** A process ends, and another one takes its place. */
  kill(at: 0 | 1): void {
    const gateway = this.gateways[at]
    for (const { ledger, unacknowledged } of gateway.spend()) this.mayLose(ledger, unacknowledged)
    gateway.kill()
    this.#dead.push(gateway)
    this.gateways[at] = this.#newGateway()
  }

  /** Redis loses its data. */
  wipe(): void {
    this.excuseLoss()
    this.store.wipe()
  }

  rollBack(back: () => void): void {
    this.excuseLoss()
    this.excuses.overspend = true
    back()
    for (const name of this.uids.keys()) {
      const ledger = this.leader.books.ledgerName(name)
      const read = this.store.peek(ledger)
      if (typeof read === 'object' && (read.openFrom ?? Infinity) < this.openFrom(ledger)) this.reopened.add(ledger)
    }
  }

  /** What dead and silent processes have spent may not be durable yet, and what silent ones hold is not known. */
  excuseLoss(): void {
    const silent = this.gateways.filter(({ canReport }) => !canReport)
    const lost = [...this.#dead.splice(0), ...silent].flatMap((gateway) => [...gateway.spend()])
    for (const { ledger, all } of lost) this.mayLose(ledger, all)
    if (silent.some(({ holds }) => holds.length > 0)) this.excuses.overspend = true
    for (const gateway of this.gateways) gateway.storeLost()
  }

  /** Every process answers and reaches the store again. */
  heal(): void {
    for (const gateway of this.gateways) Object.assign(gateway, { isFrozen: false, isCutOff: false })
  }

  holdsOf(ledger: string): number {
    return this.gateways.reduce((sum, gateway) => sum + gateway.heldOf(ledger), 0)
  }

  override knownHoldsOf(ledger: string): number {
    return this.gateways.reduce((sum, gateway) => sum + gateway.knownHoldOf(ledger), 0)
  }

  override unknownSpendOf(ledger: string): number {
    return this.gateways.reduce((sum, gateway) => sum + gateway.unknownSpendOf(ledger), 0)
  }

  openHolds(): readonly OpenHold[] {
    return this.gateways.flatMap((gateway) =>
      gateway.holds.map((hold) => ({ amount: hold.amount, settle: (cost) => gateway.settle(hold, cost) })),
    )
  }

  #watch(gateway: CreditGateway): void {
    const nowMs = this.clock.monotonic()
    if (gateway.canReport) gateway.aliveAtMs = nowMs
    const isUnseen = this.operators.some(({ startedMs }) => startedMs >= gateway.aliveAtMs && nowMs - startedMs >= DEAD_UNSEEN_MS)
    if (isUnseen || nowMs - gateway.aliveAtMs >= DEAD_MS) gateway.presumeDead()
  }

  #newGateway(): CreditGateway {
    this.#processes += 1
    return new CreditGateway(this, `p${this.#processes}`)
  }

  async #restoreSecret({ metadata, ...content }: Secret, present: Secret | undefined): Promise<void> {
    const { resourceVersion: _old, uid: _uid, ...rest } = metadata
    const restored: Secret = { ...content, metadata: rest }
    await (present === undefined ? this.kube.store.create(secrets, restored) : this.kube.store.update(secrets, restored))
  }

  /** @returns undefined if there is an object of this name */
  async #created<T>(create: () => Promise<T>): Promise<T | undefined> {
    try {
      return await create()
    } catch (error) {
      if (isKubeError(error, 'AlreadyExists')) return undefined
      throw error
    }
  }
}

function podOf(process: string): string {
  return `pod-${process}`
}
