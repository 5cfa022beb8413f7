/** One operator process of an OperatorWorld: the real composition, with hooks around each of its calls. */
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { MemoryLedgerStore } from '../../gateway/limits/memory-ledger.ts'
import { Operator } from '../../operator/app.ts'
import type { KindRow } from '../../operator/kinds/kind.ts'
import type { KubeObject, KubePort, Resource } from '#kube/port.ts'
import { endpointSlices, namespaces, services } from '#kube/resources.ts'
import type { OperatorDeps, OperatorInformers, OperatorSettings } from '../../operator/operator-deps.ts'
import type { ProjectionStore } from '../../operator/projection/store.ts'
import type { BalanceStore } from '../../operator/books/balance-store.ts'
import type { OperatorUsageStore } from '../../operator/usage/usage-store.ts'
import { type PortCall, PortAround } from './fake-kube-port.ts'
import type { OperatorWorld } from './operator-world.ts'
import type { WatchScope } from './world-watches.ts'

/**
 * When to kill: at the n-th write (counted from 0), before it is applied or after it but before its answer. `late`: the call is under way
 * when the process dies, and arrives at some time afterwards (`landLate`).
 */
export interface KillAt {
  readonly write: number
  readonly when: 'before' | 'after' | 'late'
}

export type WorldCall = PortCall | StoreCall

export interface StoreCall {
  readonly verb: Exclude<keyof ProjectionStore, 'close'>
  readonly plural: 'store'
  readonly namespace: ''
  readonly name: ''
}

const READS: ReadonlySet<string> = new Set(['get', 'list', 'prepare', 'meta', 'ids', 'records', 'liveProcesses'])
/** The periodic calls of every process, also of an idle one. */
const POLLS: ReadonlySet<string> = new Set(['prepare', 'meta', 'liveProcesses'])
/** A rebuild is many calls, and a process that was killed makes no further ones. */
const NEVER_LATE: ReadonlySet<string> = new Set(['rebuild'])

export interface ProcessOptions {
  readonly settings: OperatorSettings
  readonly rows: readonly KindRow[]
  readonly fence: number
  readonly kill: KillAt | undefined
}

/** A killed process never gets an answer again, and its timers never run. */
export class OperatorProcess {
  readonly operator: Operator
  readonly started: Promise<void>
  readonly #world: OperatorWorld
  readonly #options: ProcessOptions
  #fence: number
  #written = 0
  #isDead = false
  readonly #death = Promise.withResolvers<void>()

  constructor(world: OperatorWorld, options: ProcessOptions) {
    this.#world = world
    this.#options = options
    this.#fence = options.fence
    this.operator = new Operator(this.#deps(), options.rows)
    this.started = this.operator.start()
  }

  get isDead(): boolean {
    return this.#isDead
  }

  /** Kills the process, as kill -9 does. */
  kill(): void {
    this.#isDead = true
    this.#death.resolve()
  }

  /** Stops the process, unless a pending kill comes first. */
  async stop(): Promise<void> {
    if (!this.#isDead) await this.#world.during(Promise.race([this.operator.stop(), this.#death.promise]))
    this.kill()
  }

  #deps(): OperatorDeps {
    const world = this.#world
    return {
      kube: this.#kube(),
      informers: this.#informers(),
      store: this.#store(),
      leader: {
        fence: () => this.#fence,
        raiseFence: (stored) => {
          this.#fence = world.nextFence(stored)
          return Promise.resolve()
        },
        assertLeading: () => undefined,
        onFenced: () => this.kill(),
      },
      events: {
        record: ({ metadata }, { reason, note }) => {
          if (!this.#isDead) world.events.push({ name: metadata.name, reason, note })
        },
      },
      clock: this.#clock(),
      random: () => 0.5,
      log: this.#log(),
      settings: this.#options.settings,
      ...(world.ledger && { ledger: world.ledger }),
      balanceStore: this.#balanceStore(),
      usageStore: this.#usageStore(),
      usage: (_, listener) => world.onUsage((uid, usage) => this.#isDead || listener(uid, usage)),
    }
  }

  #usageStore(): OperatorUsageStore {
    const { usage } = this.#world
    return { used: (limit) => this.#askStore(() => usage.used(limit)), take: (asked) => this.#askStore(() => usage.take(asked)) }
  }

  #balanceStore(): BalanceStore {
    const memory = (): MemoryLedgerStore => this.#world.balances
    return {
      readBalances: (names) => this.#askStore(() => memory().readBalances(names)),
      mergeBalances: (rows) => this.#askStore(() => memory().mergeBalances(rows)),
      raisePeriods: (rows) => this.#askStore(() => memory().raisePeriods(rows)),
      freeHolds: (rows) => this.#askStore(() => memory().freeHolds(rows)),
      dropBalances: (names) => this.#askStore(() => memory().dropBalances(names)),
    }
  }

  /** A periodic call: it does not count as work. */
  async #askStore<T>(call: () => T | Promise<T>): Promise<T> {
    if (this.#isDead) return new Promise<T>(() => undefined) // a killed process gets no answer
    if (this.#world.storeDown) throw new Error('Redis does not answer')
    return await call()
  }

  #clock(): Clock {
    const { clock } = this.#world
    return {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      after: (delayMs, callback) =>
        clock.after(delayMs, () => {
          if (!this.#isDead) callback()
        }),
    }
  }

  #informers(): OperatorInformers {
    const world = this.#world
    const { watchNamespaces, namespace: own } = this.#options.settings
    const isWatched = (namespace: string): boolean => watchNamespaces.length === 0 || watchNamespaces.includes(namespace)
    const scope = (includes: (namespace: string) => boolean): WatchScope => ({
      includes,
      isRefused: (namespace) => world.refusedNamespaces.has(namespace),
      isAlive: () => !this.#isDead,
    })
    const made = new Map<string, unknown>()
    return {
      of: <T extends KubeObject>(resource: Resource<T>) => {
        const informer = made.get(resource.plural) ?? world.watches.informer(resource, scope(isWatched))
        made.set(resource.plural, informer)
        return informer as ReturnType<typeof world.watches.informer<T>>
      },
      services: world.watches.informer(services, scope(isWatched)),
      endpointSlices: world.watches.informer(
        endpointSlices,
        scope((namespace) => namespace === own || isWatched(namespace)),
      ),
      namespaces: world.mayReadNamespaces
        ? world.watches.informer(namespaces, { ...scope(isWatched), isRefused: () => world.refusesLabels })
        : undefined,
    }
  }

  #kube(): KubePort {
    return new PortAround(this.#world.objects, (call, run) => this.#guard(call, run))
  }

  #store(): ProjectionStore {
    const world = this.#world
    const at = <R>(verb: StoreCall['verb'], run: () => Promise<R>): Promise<R> => {
      const ask = (): Promise<R> => (world.storeDown ? Promise.reject(new Error('the store is down')) : run())
      return this.#guard({ verb, plural: 'store', namespace: '', name: '' }, ask)
    }
    return {
      prepare: () => at('prepare', () => world.memory.prepare()),
      meta: () => at('meta', () => world.memory.meta()),
      write: (...args) => at('write', () => world.memory.write(...args)),
      rebuild: (...args) => at('rebuild', () => world.memory.rebuild(...args)),
      ids: (...args) => at('ids', () => world.memory.ids(...args)),
      records: (...args) => at('records', () => world.memory.records(...args)),
      liveProcesses: () => at('liveProcesses', () => world.liveProcesses()),
      close: () => Promise.resolve(),
    }
  }

  async #guard<R>(call: WorldCall, run: () => Promise<R>): Promise<R> {
    const world = this.#world
    await this.#unlessDead()
    if (!POLLS.has(call.verb)) world.noteCall()
    if (isRead(call)) return await this.#answered(call, run)
    const hit = this.#nextKill()
    if (hit === 'late' && !NEVER_LATE.has(call.verb)) world.late.push(run)
    if (hit === 'before' || hit === 'late') this.kill()
    await this.#unlessDead()
    if (call.plural !== 'store') world.writes.push(textOf(call))
    return await this.#answered(call, run, hit === 'after')
  }

  /** @returns the effect of the kill on the present write */
  #nextKill(): KillAt['when'] | undefined {
    const { kill } = this.#options
    const write = this.#written
    this.#written += 1
    return kill?.write === write ? kill.when : undefined
  }

  async #answered<R>(call: WorldCall, run: () => Promise<R>, kills = false): Promise<R> {
    await this.#world.beforeCall(call)
    await this.#unlessDead()
    try {
      return await run()
    } finally {
      if (kills) this.kill()
      await this.#unlessDead()
      await this.#world.afterCall(call)
    }
  }

  /** A killed process waits for ever. */
  #unlessDead(): Promise<void> {
    return this.#isDead ? new Promise(() => undefined) : Promise.resolve()
  }

  #log(): Log {
    const write = (...parts: unknown[]): void => {
      if (!this.#isDead) this.#world.logs.push(parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' '))
    }
    return { debug: write, info: write, warn: write, error: write }
  }
}

function isRead(call: WorldCall): boolean {
  return READS.has(call.verb) || ('isDryRun' in call && call.isDryRun)
}

function textOf({ verb, plural, name }: WorldCall): string {
  return `${verb === 'applyStatus' ? 'status' : verb} ${plural} ${name}`
}
