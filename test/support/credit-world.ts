/**
 * Prepaid accounts from the payment to the settlement: API objects, operators with their real books and keeper, a store that can be emptied and
 * taken back, and gateways. It counts by itself what was paid and spent, and says what the failures so far excuse.
 */
import assert from 'node:assert/strict'
import { accounts, credits } from '#api/resources.ts'
import { formatSignedAmount, type SignedMicros } from '#contract/values/signed-micros.ts'
import { isKubeError, uidOf } from '#kube/port.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import { REOPEN_ANNOTATION } from '../../operator/accounts/claim.ts'
import type { LiveProcess } from '../../operator/projection/store.ts'
import { type AccountBook, bookCodec, readBook } from '../../operator/shards/account-book.ts'
import { creditCodec, type CreditEntry, readCredit } from '../../operator/shards/credit-entry.ts'
import type { ShardCodec } from '../../operator/shards/shard-codec.ts'
import { CreditGateway, type CreditHold } from './credit-gateway.ts'
import { CreditOperator, entryIn, NAMESPACE } from './credit-operator.ts'
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
/** Time between two changes of period, and a little, ms. */
const HOURS_MS = 7_201_000

/** What gateways know of an account. */
export interface PublishedAccount {
  readonly uid: string
  readonly name: string
  readonly ledger: string
  readonly credits: bigint
  readonly state: 'Active' | 'Deleted'
}

interface SetCodec<Entry> {
  readonly shards?: number
  readonly codec?: () => ShardCodec<Entry>
}

/** What the failures of a schedule excuse. */
export interface Excuses {
  /** More than the credits may be held. */
  overspend: boolean
  /** Any spend may be lost. */
  spend: boolean
  /** A Credit may be gone if its object is. */
  credits: boolean
}

export class CreditWorld {
  readonly clock = new ManualClock()
  readonly kube = new FakeKubePort()
  readonly store = new CreditStore()
  /** Records by uid of the account. */
  readonly records = new Map<string, PublishedAccount>()
  readonly gateways: [CreditGateway, CreditGateway]
  /** The newest leader first. The one before may not know yet that it is deposed. */
  operators: readonly CreditOperator[] = []
  readonly excuses: Excuses = { overspend: false, spend: false, credits: false }
  /** Every manifest of a Credit that was ever created. */
  readonly manifests: CreditEntry[] = []
  /** Credits whose status said Booked. */
  readonly shown = new Map<string, CreditEntry>()
  /** uids of all Accounts that a name has had. */
  readonly uids = new Map<string, string[]>()
  /** Empty: those of production. */
  readonly codecs: { readonly books: SetCodec<AccountBook>; readonly credits: SetCodec<CreditEntry> }
  readonly #work: PendingWork | undefined
  readonly #settled = new Map<string, number>()
  readonly #lost = new Map<string, number>()
  /** Credits in the published sum, by name of the account. */
  readonly #published = new Map<string, ReadonlySet<string>>()
  readonly #dead: CreditGateway[] = []
  #failure: Error | undefined
  #fence = 0
  #started = 0
  #processes = 0
  #steps = 0

  /** @param options.isPacked uses the codecs of production, in worker threads */
  constructor({ isPacked = false } = {}) {
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

  /** The newest leader. */
  get leader(): CreditOperator {
    const [leader] = this.operators
    if (leader === undefined) throw new Error('no operator was started')
    return leader
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
      await this.clock.advance(Math.min(left, STEP_MS))
      if (this.#work === undefined) continue
      await this.#work.drained()
      await this.clock.advance(0)
    }
  }

  /** Hours pass, and the keeper changes the period of all accounts. A process that is silent for so long counts as dead. */
  async hours(): Promise<void> {
    if (this.gateways.some(({ canReport, holds }) => !canReport && holds.length > 0)) this.excuses.overspend = true
    for (const gateway of this.gateways) gateway.report()
    this.clock.skip(HOURS_MS)
    await this.pass(6 * STEP_MS)
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
  }

  /** What dead and silent processes have spent may not be durable yet, and what silent ones hold is not known. */
  excuseLoss(): void {
    const silent = this.gateways.filter(({ canReport }) => !canReport)
    const lost = [...this.#dead.splice(0), ...silent].flatMap((gateway) => [...gateway.spend()])
    for (const { ledger, all } of lost) this.mayLose(ledger, all)
    if (silent.some(({ holds }) => holds.length > 0)) this.excuses.overspend = true
  }

  holdsOf(ledger: string): number {
    return this.gateways.reduce((sum, gateway) => sum + gateway.heldOf(ledger), 0)
  }

  openHolds(): ReadonlyArray<{ readonly gateway: CreditGateway; readonly hold: CreditHold }> {
    return this.gateways.flatMap((gateway) => gateway.holds.map((hold) => ({ gateway, hold })))
  }

  // What operators and gateways report

  /** @param ids Credits in the sum */
  publish(operator: CreditOperator, record: PublishedAccount, ids: readonly string[]): void {
    if (!this.#mayWrite(operator)) return
    const former = this.#published.get(record.name) ?? new Set()
    const missing = [...former].filter((id) => !ids.includes(id))
    if (!this.excuses.credits) assert.deepEqual(missing, [], 'the published set of Credits never shrinks')
    this.#published.set(record.name, new Set(ids))
    this.records.set(record.uid, record)
  }

  withdraw(operator: CreditOperator, uid: string): void {
    const record = this.records.get(uid)
    if (record?.state === 'Active' && this.#mayWrite(operator)) this.records.set(uid, { ...record, state: 'Deleted' })
  }

  /** The record of the present Account of a name. */
  recordOf(name: string): PublishedAccount | undefined {
    const uid = this.uids.get(name)?.at(-1)
    return uid === undefined ? undefined : this.records.get(uid)
  }

  isPublished(name: string, sum: bigint): boolean {
    const record = this.recordOf(name)
    return record === undefined || record.credits === sum
  }

  booked(entry: CreditEntry): void {
    this.shown.set(entry.id, entry)
  }

  /** Checks that the credits, as the granting process knows them, pay for all that is spent and held. */
  granted({ ledger, credits: sum }: PublishedAccount): void {
    if (this.excuses.overspend) return
    const { least } = this.spentOf(ledger)
    assert.ok(sum >= BigInt(least + this.holdsOf(ledger)), `${least} are spent and ${this.holdsOf(ledger)} held of ${sum}`)
  }

  settled(ledger: string, cost: number): void {
    this.#settled.set(ledger, (this.#settled.get(ledger) ?? 0) + cost)
  }

  /** Spend that no process can report any more. */
  mayLose(ledger: string, amount: number): void {
    this.#lost.set(ledger, (this.#lost.get(ledger) ?? 0) + amount)
  }

  /** What was really spent of an account, without and with the part that may be lost. */
  spentOf(ledger: string): { readonly least: number; readonly most: number } {
    const most = this.#settled.get(ledger) ?? 0
    return { least: this.excuses.spend ? 0 : Math.max(0, most - (this.#lost.get(ledger) ?? 0)), most }
  }

  #mayWrite(operator: CreditOperator): boolean {
    if (operator.fence >= this.#fence) this.#fence = operator.fence
    else operator.end()
    return operator.fence >= this.#fence
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
