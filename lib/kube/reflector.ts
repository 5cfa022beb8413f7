import type { Log } from '#platform/log.ts'
import type { OutageLog } from '#platform/outage-log.ts'
import { sleep, type Clock } from '#platform/clock.ts'
import type { ObjectCache } from './object-cache.ts'
import { isKubeError, retryAfterMs, type KubeError, type KubeObject, type Resource } from './port.ts'
import type { RawClient, Selection } from './raw-client.ts'
import { BackOff } from '#platform/back-off.ts'
import { cacheable, resourceName } from './resources.ts'
import { StatusError } from './status-error.ts'
import type { WatchEvent } from './watch-events.ts'

/** Where a reflector reads. */
export type ListWatchSource = Pick<RawClient, 'listAt' | 'watch'>

/** Why the reflector listed all objects again. */
export type RelistReason = 'Start' | 'Expired' | 'VersionTooLarge'

export interface ReflectorMetrics {
  relisted(resource: string, reason: RelistReason): void
  /** Called once for each reflector. Each scrape reads the probe. */
  watching(resource: string, probe: ReflectorProbe): void
}

/** The state of one reflector, as the metrics read it. */
export interface ReflectorProbe {
  /** Since the last event, bookmark or list. */
  readonly lastEventSeconds: () => number
  readonly synced: () => boolean
}

/** What a reflector watches. */
export interface ReflectorScope extends Selection {
  /** Whether a start does not wait for these objects while the API server refuses to list them. */
  readonly mayBeRefused?: boolean
}

export interface ReflectorDeps {
  readonly source: ListWatchSource
  readonly clock: Clock
  readonly logger: Log
  /** [0, 1) */
  readonly random: () => number
  readonly metrics?: ReflectorMetrics
  /** Logs an unreachable API server once for all reflectors, which lose it at the same time. Without `outage` each reflector logs it. */
  readonly outage?: Pick<OutageLog, 'failed' | 'works'>
}

/** Bookmarks come about once a minute: after this long without one the connection is dead, even if TCP reports no error. */
export const SILENCE_MS = 150_000
/** If the loop takes no step for this long, it has stopped, and only a restart helps. */
const DEAD_AFTER_MS = 3 * SILENCE_MS
/** A watch that ends earlier without an event counts as a failure: otherwise a server that ends each watch at once causes a tight loop. */
const SHORT_WATCH_MS = 1_000
/** Half of each delay is random, because all watches fail at once and must not reconnect at once. */
const RESTART = { firstMs: 800, maxMs: 30_000, below: 0.5, resetAfterMs: 120_000 }

/**
 * Keeps a cache equal to one selection of objects: LIST, then WATCH from there, for ever. It never gives up: a missing CRD, missing rights and
 * a dead API server are logged with the remedy and tried again.
 */
export class Reflector<T extends KubeObject> {
  readonly #firstList = Promise.withResolvers<void>()
  /** Resolves when the first list is in, or was refused and may be refused. */
  readonly synced = this.#firstList.promise
  readonly #resource: Resource<T>
  readonly #scope: ReflectorScope
  readonly #deps: ReflectorDeps
  readonly #name: string
  readonly #cache: Pick<ObjectCache<T>, 'replace' | 'put' | 'remove'>
  readonly #stopped = new AbortController()
  readonly #backOff: BackOff
  /** Fields of every log entry. */
  readonly #where: Readonly<Record<string, string>>
  #started = false
  #synced = false
  #version = '' // version of the last event, from which the next watch begins
  #relist: { version: string; reason: RelistReason } | undefined = { version: '', reason: 'Start' }
  #expirations = 0 // consecutive ones, without an event between them
  #failing = false
  #cutOff = false
  #lastEventAtMs: number
  #lastStepAtMs: number

  /** @param cache changed by no one else in this scope */
  constructor(
    resource: Resource<T>,
    scope: ReflectorScope,
    cache: Pick<ObjectCache<T>, 'replace' | 'put' | 'remove'>,
    deps: ReflectorDeps,
  ) {
    this.#resource = resource
    this.#scope = scope
    this.#deps = deps
    this.#name = resourceName(resource)
    this.#where = { resource: this.#name, ...(scope.namespace === '' ? {} : { namespace: scope.namespace }) }
    this.#cache = cache
    this.#backOff = new BackOff({ ...RESTART, random: deps.random })
    this.#lastEventAtMs = this.#lastStepAtMs = deps.clock.monotonic()
    deps.metrics?.watching(this.#name, {
      lastEventSeconds: () => (deps.clock.monotonic() - this.#lastEventAtMs) / 1000,
      synced: () => this.#synced,
    })
  }

  /** Whether the first list is in. */
  get isSynced(): boolean {
    return this.#synced
  }

  /** Begins to list and watch; further calls do nothing. A listener that subscribed before receives every object. */
  start(): void {
    if (this.#started) return
    this.#started = true
    void this.#run()
  }

  /** Ends for good. After this call no result reaches the cache or a listener. */
  stop(): void {
    this.#stopped.abort()
  }

  /**
   * Whether the loop has taken no step for 450 s: neither an event nor a try. While the API server is down the loop still tries, so the
   * reflector is not dead: a restart would not help.
   */
  get dead(): boolean {
    return this.#started && !this.#stopped.signal.aborted && this.#deps.clock.monotonic() - this.#lastStepAtMs > DEAD_AFTER_MS
  }

  async #run(): Promise<void> {
    const signal = this.#stopped.signal
    while (!signal.aborted) {
      this.#lastStepAtMs = this.#deps.clock.monotonic()
      try {
        if (this.#relist) await this.#list(this.#relist)
        if (!this.#relist && !signal.aborted) await this.#watch(signal)
      } catch (error) {
        if (!signal.aborted) await this.#recover(error, signal)
      }
    }
  }

  async #list(relist: { version: string; reason: RelistReason }): Promise<void> {
    let result
    try {
      result = await this.#deps.source.listAt(this.#resource, this.#scope, relist.version)
    } catch (error) {
      const reason = staleVersion(error)
      if (!reason || relist.version === '') throw error
      this.#relist = { version: '', reason } // ask for the newest state, even if its version is lower
      return
    }
    if (this.#stopped.signal.aborted) return
    const objects = result.items.map((item) => cacheable(this.#resource, item))
    this.#cache.replace(objects, this.#scope.namespace)
    this.#version = result.resourceVersion
    this.#relist = undefined
    this.#lastEventAtMs = this.#deps.clock.monotonic()
    this.#deps.metrics?.relisted(this.#name, relist.reason)
    if (!this.#synced) this.#deps.logger.info({ ...this.#where, objects: objects.length }, 'watching')
    this.#synced = true
    this.#firstList.resolve()
    this.#recovered()
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { clock, random, source } = this.#deps
    const silence = new AbortController()
    let cancel = (): void => undefined
    const heard = (): void => {
      cancel()
      cancel = clock.after(SILENCE_MS, () => silence.abort())
    }
    const startedAtMs = clock.monotonic()
    let events = 0
    heard()
    try {
      const at = { resourceVersion: this.#version, timeoutSeconds: Math.round(300 + random() * 300) } // random, so that watches do not all end together
      for await (const event of source.watch(this.#resource, this.#scope, at, AbortSignal.any([signal, silence.signal]))) {
        if (signal.aborted) return
        heard()
        events += 1
        this.#apply(event)
      }
    } catch (error) {
      if (!silence.signal.aborted) throw error
      this.#deps.logger.warn(this.#where, 'the watch fell silent; watching again from the last version')
      return
    } finally {
      cancel()
    }
    if (events === 0 && clock.monotonic() - startedAtMs < SHORT_WATCH_MS) throw new Error('the watch ended at once')
  }

  #apply(event: WatchEvent): void {
    if (event.type === 'ERROR') throw this.#streamError(event.object)
    // the API server has validated the object; cacheable() reads its metadata only
    const object = cacheable(this.#resource, event.object as T)
    this.#version = object.metadata.resourceVersion ?? this.#version
    this.#lastEventAtMs = this.#lastStepAtMs = this.#deps.clock.monotonic()
    this.#expirations = 0
    this.#recovered()
    if (event.type === 'BOOKMARK') return
    if (event.type === 'DELETED') this.#cache.remove(object)
    else this.#cache.put(object)
  }

  #recovered(): void {
    if (this.#cutOff) this.#deps.outage?.works()
    if (this.#failing) this.#deps.logger.info(this.#where, 'the watch works again')
    this.#failing = this.#cutOff = false
  }

  #streamError(status: unknown): KubeError {
    const code = typeof status === 'object' && status !== null && 'code' in status ? Number(status.code) : Number.NaN
    const asked = { verb: 'watch', resource: this.#name, object: this.#scope.namespace }
    return new StatusError(asked, { status: Number.isInteger(code) ? code : 500, text: JSON.stringify(status) })
  }

  async #recover(error: unknown, signal: AbortSignal): Promise<void> {
    const reason = staleVersion(error)
    if (reason) {
      this.#expirations += 1
      this.#relist = { version: this.#expirations > 1 ? '' : this.#version, reason }
      if (this.#expirations === 1) return // without a wait, since the cache is certainly out of date
    }
    const retryInMs = this.#backOff.next({ nowMs: this.#deps.clock.monotonic(), atLeastMs: retryAfterMs(error) })
    const message = watchFailureRemedy(error, this.#name, this.#scope.namespace)
    if (this.#scope.mayBeRefused && isKubeError(error, 'Forbidden')) this.#firstList.resolve()
    if (this.#deps.outage !== undefined && isKubeError(error, 'Unreachable')) {
      this.#cutOff = true // until the watch works: a server that starts may refuse first
      this.#deps.outage.failed(message)
    } else {
      this.#failing = true
      this.#deps.logger.warn({ ...this.#where, retryInMs }, message)
    }
    await sleep(this.#deps.clock, retryInMs, signal)
  }
}

/** @returns why the version can no longer be used; undefined for any other failure */
function staleVersion(error: unknown): RelistReason | undefined {
  if (isKubeError(error, 'Expired')) return 'Expired'
  return error instanceof StatusError && error.versionTooLarge ? 'VersionTooLarge' : undefined
}

/**
 * One sentence for a watch that cannot start, with the error and the remedy.
 * @param resource plural and group
 * @param namespace '' = all
 */
export function watchFailureRemedy(error: unknown, resource: string, namespace: string): string {
  if (error instanceof StatusError && !error.served) {
    return `the API server does not serve ${resource}: install the CustomResourceDefinitions (the Helm chart does with crds.enabled=true)`
  }
  if (isKubeError(error, 'Forbidden')) {
    const where = namespace === '' ? 'in all namespaces' : `in namespace ${namespace}`
    return `no right to list and watch ${resource} ${where}: grant get, list and watch to the operator's ServiceAccount (the Helm chart does) – ${error.message}`
  }
  if (isKubeError(error, 'Unauthorized')) {
    return `the API server does not accept the operator's credentials: check the kubeconfig or the ServiceAccount token – ${error.message}`
  }
  if (isKubeError(error, 'Unreachable'))
    return `${silence(error)}; check that it runs and that KUBECONFIG or the pod's ServiceAccount leads to it`
  return error instanceof Error ? error.message : 'unknown failure'
}

/** The message names no resource: all watches fail together, and one log entry is enough for all of them. */
function silence({ status, cause }: KubeError): string {
  if (status >= 500) return `the API server answers ${status}`
  return `the API server does not answer (${cause instanceof Error ? cause.message || cause.name : 'no reason given'})`
}
