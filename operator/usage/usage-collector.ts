/**
 * Takes the counts of gateways out of the store and makes them durable, every four seconds. What was taken stays in the store until its number
 * is in the Secret, so a crash at any point counts nothing twice and loses nothing. Loss of Redis data loses what was not taken yet, and the
 * day is marked as incomplete.
 */
import { breathe, type Cancel, type Clock } from '#platform/clock.ts'
import { messageOf } from '#platform/message-of.ts'
import type { OutageLog } from '#platform/outage-log.ts'
import { SecretShards, type SecretShardsDeps } from '../shards/secret-shards.ts'
import { HISTORY_SET, USAGE_SET } from '../shards/sets.ts'
import { ShardFull } from '../shards/shard-writer.ts'
import { historyEntry, type HistoryEntry, type OpenUsage, readClosedUsage } from '../shards/usage-entry.ts'
import { isMissingFunction } from '../redis-library.ts'
import { closableDays, dayOf, noClosedUsage, noOpenUsage, sumsOnly, withClosed, withoutClosed, withTaken } from './usage-book.ts'
import type { OperatorUsageStore } from './usage-store.ts'

export interface UsageCollectorDeps extends SecretShardsDeps {
  readonly store: OperatorUsageStore
  /** Names of accounts by their names in the ledger. */
  readonly accounts: { nameIn(ledger: string): string | undefined; ledgerNames(): Iterable<string> }
  /** `namespace/name` of a key; undefined if the key is unknown. */
  readonly keyName: (uid: string) => string | undefined
  /** Called with the name of each account that was used since the last turn. */
  readonly onUsed?: (name: string) => void
  readonly clock: Clock
  readonly outage: Pick<OutageLog, 'failed' | 'works'>
}

/** Time between two turns, ms. Counts are durable within this time, or later in a large shard; those that are not may be lost with Redis. */
const TURN_MS = 4_000
/** Maximum number of named accounts per turn. */
const NAMED_AT_ONCE = 10_000
/** Every account is asked at the start and once in this time, ms: a name in the set may be lost. */
const ALL_EVERY_MS = 600_000

export class UsageCollector {
  readonly #deps: UsageCollectorDeps
  readonly #open: SecretShards<OpenUsage>
  readonly #history: SecretShards<HistoryEntry>
  /** Accounts whose history found no room with all of its rows. */
  readonly #summed = new Set<string>()
  #cancel: Cancel = () => undefined
  #turn: Promise<void> = Promise.resolve()
  #askAllMs = Number.NEGATIVE_INFINITY
  #isRunning = false
  #isStopped = false

  constructor(deps: UsageCollectorDeps) {
    this.#deps = deps
    this.#open = new SecretShards({ ...USAGE_SET, ...deps })
    this.#history = new SecretShards({ ...HISTORY_SET, ...deps })
    this.#history.onSettled((name, error) => this.#closed(name, error))
  }

  /** @throws KubeError if the Secrets cannot be read */
  async load(): Promise<void> {
    await Promise.all([this.#open.load(), this.#history.load()])
  }

  start(): void {
    if (this.#isStopped) return
    this.#isRunning = true
    this.#cancel = this.#deps.clock.after(TURN_MS, () => {
      this.#turn = this.#runTurn().then(() => this.start())
    })
  }

  check(): void {
    this.#open.check()
    this.#history.check()
  }

  /** Takes once more, and writes what is not durable. Never rejects. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancel()
    await this.#turn
    if (this.#isRunning) await this.#runTurn() // gateways that end with this process have reported
    for (const set of [this.#open, this.#history]) {
      await set.flush().catch((error: unknown) => this.#deps.warn(`the Secrets of usage could not be written (${messageOf(error)})`))
      set.stop()
    }
  }

  /** The usage of one account that is durable or about to be; undefined if it was never used. */
  get(name: string): { readonly open: OpenUsage | undefined; readonly history: HistoryEntry | undefined } {
    return { open: this.#open.get(name), history: this.#history.get(name) }
  }

  async #runTurn(): Promise<void> {
    const { outage, assertLeading } = this.#deps
    try {
      assertLeading()
      await this.#take(await this.#due())
      outage.works()
    } catch (error) {
      if (isMissingFunction(error)) return // a new Redis: the ledger of limits loads its functions
      outage.failed(`usage of accounts cannot be read: ${messageOf(error)}`)
    }
  }

  /** Names in the ledger of the accounts to ask, without those whose last take is not durable yet. */
  async #due(): Promise<readonly string[]> {
    const { store, accounts, clock } = this.#deps
    const named = new Set(await store.used(NAMED_AT_ONCE))
    for (const ledger of named) this.#used(ledger)
    if (clock.monotonic() >= this.#askAllMs) {
      this.#askAllMs = clock.monotonic() + ALL_EVERY_MS
      for (const ledger of accounts.ledgerNames()) named.add(ledger)
    }
    for (const ledger of this.#unfinished) named.add(ledger)
    this.#unfinished.clear()
    return [...named]
  }

  #used(ledger: string): void {
    const name = this.#deps.accounts.nameIn(ledger)
    if (name !== undefined) this.#deps.onUsed?.(name)
  }

  /** Names in the ledger of accounts whose take must be acknowledged, or come again. */
  readonly #unfinished = new Set<string>()

  async #take(ledgers: readonly string[]): Promise<void> {
    const { store, accounts } = this.#deps
    const due = ledgers.flatMap((ledger) => {
      const name = accounts.nameIn(ledger)
      return name === undefined || this.#open.isUnreadable(name) ? [] : [{ ledger, name }]
    })
    const isPending = ({ name }: { name: string }): boolean => this.#open.state(name) === 'Pending'
    for (const { ledger } of due.filter(isPending)) this.#unfinished.add(ledger)
    const ready = due.filter((one) => !isPending(one))
    const found = await store.take(ready.map(({ ledger, name }) => ({ account: ledger, known: this.#open.get(name)?.takes ?? 0 })))
    for (const [at, { ledger, name }] of ready.entries()) {
      const taken = found[at]
      if (taken === undefined || taken.nowMs === 0) continue
      const open = this.#open.get(name) ?? noOpenUsage(name)
      if (taken.state !== 'none') {
        this.#open.commit(withTaken(open, taken, this.#history.get(name)?.through ?? -1, this.#deps.keyName), 'background')
        this.#unfinished.add(ledger)
      } else this.#close(open, dayOf(taken.nowMs))
      await breathe() // a history of a large account takes milliseconds to read and to write
    }
  }

  /** Moves closed days into the history; `#closed` drops them from the open days when they are durable there. */
  #close(open: OpenUsage, today: number): void {
    const closing = closableDays(open, today)
    if (closing.length === 0 || this.#history.isUnreadable(open.name) || this.#history.state(open.name) === 'Pending') return
    const entry = this.#history.get(open.name)
    const history = withClosed(entry ? readClosedUsage(entry) : noClosedUsage(open.name), open, closing, today)
    this.#history.commit(historyEntry(this.#summed.has(open.name) ? sumsOnly(history) : history), 'background')
  }

  #closed(name: string, error: Error | undefined): void {
    const open = this.#open.newest(name)
    if (error instanceof ShardFull) {
      this.#summed.add(name) // sums by day are always kept
      this.#deps.warn(`the usage of account ${name} is kept as sums by day: ${error.message}`)
    } else if (error === undefined && open) {
      this.#open.commit(withoutClosed(open, this.#history.get(name)?.through ?? -1), 'background')
    }
  }
}
