/**
 * Prepaid accounts on a real API server and a real Redis: operators with their real books and keeper, and gateways with the real ledger. Their
 * clock stands still until a test moves it.
 */
import type { Account } from '#api/account.ts'
import type { Credit } from '#api/credit.ts'
import { accounts, credits } from '#api/resources.ts'
import type { LedgerCall, LedgerReply } from '#contract/ledger/ledger-call.ts'
import { ledgerKeys } from '#contract/redis/redis-keys.ts'
import { formatSignedAmount, type SignedMicros } from '#contract/values/signed-micros.ts'
import { isKubeError, type KubeObject, type KubePort, type Resource, uidOf } from '#kube/port.ts'
import { namespaces } from '#kube/resources.ts'
import { RedisLedgerStore } from '../../gateway/limits/redis-ledger.ts'
import { REOPEN_ANNOTATION } from '../../operator/accounts/claim.ts'
import type { BalanceRead, BalanceStore } from '../../operator/books/balance-store.ts'
import type { LiveProcess } from '../../operator/projection/store.ts'
import { bookCodec } from '../../operator/shards/account-book.ts'
import { creditCodec } from '../../operator/shards/credit-entry.ts'
import type { ShardCodec } from '../../operator/shards/shard-codec.ts'
import { CreditCounts } from './credit-counts.ts'
import { CreditOperator, entryIn, type OperatedWorld } from './credit-operator.ts'
import type { OpenHold, RestedWorld } from './credit-rest.ts'
import { PortAround } from './fake-kube-port.ts'
import type { LedgerRedis } from './ledger-redis.ts'
import { ManualClock, settle } from './manual-clock.ts'
import { account, credit } from './objects.ts'
import { RealGateway } from './real-gateway.ts'

/** A turn of the keeper, ms. */
const TURN_MS = 1_000
/** Time between two changes of period, and a little, ms. */
const HOURS_MS = 7_201_000

export class RealCreditWorld extends CreditCounts implements RestedWorld {
  readonly clock = new ManualClock()
  readonly kube: KubePort
  readonly store: BalanceStore
  readonly codecs = {
    books: { codec: () => this.#tracked(bookCodec()) },
    credits: { codec: () => this.#tracked(creditCodec) },
  }
  /** Also the start of the names of its objects. */
  readonly namespace: string
  readonly gateways: [RealGateway, RealGateway]
  readonly #redis: LedgerRedis
  readonly #ledger: RedisLedgerStore
  readonly #pending = new Set<Promise<unknown>>()
  readonly #dead: RealGateway[] = []
  /** Requests that were admitted. */
  admitted = 0
  #objects: { readonly accounts: readonly Account[]; readonly credits: readonly Credit[] } = { accounts: [], credits: [] }
  #failure: Error | undefined
  #started = 0
  #processes = 0

  /** @param redis of this world alone: it is emptied first */
  static async open(namespace: string, kube: KubePort, redis: LedgerRedis): Promise<RealCreditWorld> {
    await redis.part.admin.flushall()
    await kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
    return new RealCreditWorld(namespace, kube, redis)
  }

  private constructor(namespace: string, kube: KubePort, redis: LedgerRedis) {
    super()
    this.namespace = namespace
    this.#redis = redis
    this.#ledger = new RedisLedgerStore(redis.gateway, 'hg')
    this.kube = new PortAround(kube, (_, run) => this.during(run))
    this.store = trackedStore(redis.balances, (run) => this.during(run))
    this.gateways = [this.#newGateway(), this.#newGateway()]
  }

  /** Ends everything, and deletes the objects. */
  async stop(): Promise<void> {
    for (const operator of this.operators) operator.end()
    for (const gateway of this.gateways) gateway.kill()
    await this.see()
    for (const { metadata } of this.#objects.accounts) await this.kube.remove(accounts, { namespace: '', name: metadata.name })
    for (const { metadata } of this.#objects.credits) await this.kube.remove(credits, { namespace: '', name: metadata.name })
  }

  /** Starts an operator with a higher fencing token, beside the present one, which does not know. */
  async lead(prepare: (operator: CreditOperator) => void = () => undefined): Promise<void> {
    this.#started += 1
    const operator = new CreditOperator(this, this.#started)
    prepare(operator)
    for (const old of this.operators.slice(1)) old.end()
    this.operators = [operator, ...this.operators.slice(0, 1)]
    await this.see()
    void operator.start()
    await this.pass(TURN_MS)
  }

  /** The leader does all that is to be done now. */
  async catchUp(): Promise<void> {
    if (this.leader.isOver) await this.lead()
    this.leader.release()
    for (let pass = 0; pass < 4; pass += 1) {
      await this.see()
      this.leader.see()
      await this.work(this.leader)
      await this.pass(TURN_MS)
    }
    for (const gateway of this.gateways) gateway.sync()
  }

  /** One pass of an operator, which ends later if a write of it is under way. */
  async work(operator: CreditOperator): Promise<void> {
    operator.work().catch((error: unknown) => this.failed(error))
    await this.pass(0)
  }

  /** Reads the objects of this world. */
  async see(): Promise<void> {
    const own = async <T extends KubeObject>(resource: Resource<T>): Promise<readonly T[]> =>
      (await this.kube.list(resource, '')).filter(({ metadata }) => metadata.name.startsWith(`${this.namespace}-`))
    this.#objects = { accounts: await own(accounts), credits: await own(credits) }
  }

  objects(): ReturnType<OperatedWorld['objects']> {
    return this.#objects
  }

  /** Moves time forward. Calls that have left by then are answered before the next timer runs. */
  async pass(ms: number): Promise<void> {
    const endMs = this.clock.monotonic() + ms
    await this.#quiet()
    while (this.clock.monotonic() + this.clock.nextInMs <= endMs) {
      this.clock.fireNext()
      await this.#quiet()
    }
    this.clock.skip(Math.max(0, endMs - this.clock.monotonic()))
  }

  /** Hours pass, and the keeper changes the period of all accounts. What a process cannot report meanwhile may be lost. */
  async hours(): Promise<void> {
    await this.pass(4 * TURN_MS) // a living process has reported
    const silent = this.gateways.filter(({ canReport }) => !canReport)
    if (silent.some(({ holds }) => holds.length > 0)) this.excuses.overspend = true
    for (const { ledger, uncounted } of silent.flatMap((gateway) => [...gateway.spend()])) this.mayLose(ledger, uncounted)
    this.clock.skip(HOURS_MS)
    await this.pass(8 * TURN_MS)
  }

  live(): readonly LiveProcess[] {
    return this.gateways
      .filter(({ canReport }) => canReport)
      .map(({ name }) => ({ process: `pod-${name}/${name}`, pod: `pod-${name}`, acknowledgement: undefined }))
  }

  serving(): ReadonlySet<string> {
    return new Set(this.gateways.map(({ name }) => `pod-${name}`))
  }

  // API objects

  named(name: string): string {
    return `${this.namespace}-${name}`
  }

  /** @param name here and below without the namespace */
  async createAccount(name: string, annotations: Readonly<Record<string, string>> = {}): Promise<void> {
    const full = this.named(name)
    const created = await this.#created(() => this.kube.create(accounts, account(full, {}, { annotations })))
    if (created) this.uids.set(full, [...(this.uids.get(full) ?? []), uidOf(created)])
  }

  async deleteAccount(name: string): Promise<void> {
    await this.kube.remove(accounts, { namespace: '', name: this.named(name) })
  }

  /** @returns a function that creates the Account again as it is now, with another uid, as a restore from a backup does */
  async backedUp(name: string): Promise<() => Promise<void>> {
    const present = await this.kube.get(accounts, { namespace: '', name: this.named(name) })
    return () => this.createAccount(name, present?.metadata.annotations)
  }

  /** An administrator lets the Account go on with the books of its name. */
  async reopen(name: string): Promise<void> {
    const ref = { namespace: '', name: this.named(name) }
    const present = await this.kube.get(accounts, ref)
    const owner = this.leader.books.newest(ref.name)?.owner
    if (present === undefined || owner === undefined || owner === uidOf(present)) return
    const value = { ...present.metadata.annotations, [REOPEN_ANNOTATION]: owner }
    await this.kube.patch(accounts, ref, [{ op: 'add', path: '/metadata/annotations', value }])
  }

  /** @param micros not 0 */
  async pay(id: string, name: string, micros: number): Promise<void> {
    const amount = formatSignedAmount(micros as SignedMicros)
    const object = credit(this.named(id), { accountRef: { name: this.named(name) }, amount })
    const created = await this.#created(() => this.kube.create(credits, object))
    if (created) this.manifests.push(entryIn(created))
  }

  async deleteCredit(id: string): Promise<void> {
    await this.kube.remove(credits, { namespace: '', name: this.named(id) })
  }

  // Processes and Redis

  async admit(at: 0 | 1, name: string, amount: number, pick: number): Promise<void> {
    const uids = this.uids.get(this.named(name)) ?? []
    const uid = pick === 0 ? uids[0] : uids.at(-1) // most keys are of the present Account of a name, some of an earlier one
    if (uid !== undefined) await this.gateways[at].admit(uid, amount)
  }

  /** A process ends, and another one takes its place. */
  kill(at: 0 | 1): void {
    const gateway = this.gateways[at]
    for (const { ledger, uncounted } of gateway.spend()) this.mayLose(ledger, uncounted)
    gateway.kill()
    this.#dead.push(gateway)
    this.gateways[at] = this.#newGateway()
  }

  /** Redis loses its data. */
  async wipe(): Promise<void> {
    await this.#flush()
    for (const gateway of this.gateways) gateway.reconnect()
  }

  /** @returns a function that takes Redis back to its present state */
  async saved(): Promise<() => Promise<void>> {
    const { admin } = this.#redis.part
    const keys = await admin.keys('*')
    const dumps = await Promise.all(
      keys.map(async (key) => ({ key, ttl: Math.max(0, await admin.pttl(key)), dump: await admin.dumpBuffer(key) })),
    )
    return async () => {
      await this.#flush()
      this.excuses.overspend = true
      for (const { key, ttl, dump } of dumps) if (dump) await admin.restore(key, ttl, dump)
      for (const gateway of this.gateways) gateway.reconnect()
    }
  }

  /** What dead and silent processes have spent may not be durable yet, and what silent ones hold is not known. */
  excuseLoss(): void {
    const silent = this.gateways.filter(({ canReport }) => !canReport)
    for (const { ledger, all } of this.#dead.splice(0).flatMap((gateway) => [...gateway.spend()])) this.mayLose(ledger, all)
    if (silent.some(({ holds }) => holds.length > 0)) this.excuses.overspend = true
  }

  /** A foreign client lowers what an account has spent. Until that is found, which takes some seconds, Redis grants too much. */
  async forgeTooLow(name: string): Promise<void> {
    this.excuseLoss()
    this.excuses.overspend = true
    const { admin } = this.#redis.part
    const { balance } = ledgerKeys('hg', this.leader.books.ledgerName(this.named(name)))
    for (const field of await admin.hkeys(balance)) if (field === 's' || field.startsWith('c:')) await admin.hset(balance, field, '0')
  }

  heal(): void {
    for (const gateway of this.gateways.filter(({ isCutOff }) => isCutOff)) {
      gateway.isCutOff = false
      gateway.reconnect()
    }
  }

  holdsOf(ledger: string): number {
    return this.gateways.reduce((sum, gateway) => sum + gateway.heldOf(ledger), 0)
  }

  openHolds(): readonly OpenHold[] {
    return this.gateways.flatMap((gateway) =>
      gateway.holds.map((hold) => ({ amount: hold.amount, settle: (cost) => gateway.settle(hold, cost) })),
    )
  }

  async balanceIn(ledger: string): Promise<BalanceRead> {
    return (await this.store.readBalances([ledger]))[0] ?? 'absent'
  }

  admitsOne(uid: string): Promise<boolean> {
    return this.gateways[0].admit(uid, 1)
  }

  async ledgerCall(call: LedgerCall): Promise<LedgerReply> {
    await this.#redis.setClock(this.clock.now())
    return await this.#ledger.call(call)
  }

  during<T>(run: () => Promise<T>): Promise<T> {
    const work = run()
    this.#pending.add(work)
    void work.catch(() => undefined).then(() => this.#pending.delete(work))
    return work
  }

  failed(error: unknown): void {
    this.#failure ??= error instanceof Error ? error : new Error(String(error))
  }

  async #flush(): Promise<void> {
    await this.#quiet() // no call is between its clock and its function
    this.excuseLoss()
    await this.#redis.part.admin.flushall()
  }

  async #quiet(): Promise<void> {
    await settle()
    while (this.#pending.size > 0) {
      await Promise.allSettled(this.#pending)
      await settle()
    }
    if (this.#failure) throw this.#failure
  }

  #newGateway(): RealGateway {
    this.#processes += 1
    return new RealGateway(this, `p${this.#processes}`)
  }

  #tracked<Entry>(codec: ShardCodec<Entry>): ShardCodec<Entry> {
    const { pack } = codec
    return {
      ...codec,
      encode: (header, entries) => this.during(() => codec.encode(header, entries)),
      decode: (data) => this.during(() => codec.decode(data)),
      ...(pack && { pack: (entries) => this.during(() => pack(entries)) }),
    }
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

function trackedStore(store: BalanceStore, during: <T>(run: () => Promise<T>) => Promise<T>): BalanceStore {
  return {
    readBalances: (names) => during(() => store.readBalances(names)),
    mergeBalances: (rows) => during(() => store.mergeBalances(rows)),
    raisePeriods: (rows) => during(() => store.raisePeriods(rows)),
    freeHolds: (rows) => during(() => store.freeHolds(rows)),
    dropBalances: (names) => during(() => store.dropBalances(names)),
  }
}
