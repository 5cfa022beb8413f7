import { randomBytes } from 'node:crypto'
import type { Log } from '#platform/log.ts'
import { sleep, type Clock } from '#platform/clock.ts'
import { EventSeries, type EventIdentity } from './event-series.ts'
import { isKubeError, type KubeObject, type KubePort } from './port.ts'
import { events, type KubeEvent, microTime } from './resources.ts'

/** One Event for the owner of an object. Never holds a Credential or a hash. */
export interface EventText {
  readonly type: 'Normal' | 'Warning'
  /** Cause of the change, CamelCase, at most 128 characters. */
  readonly reason: string
  /** What the operator did or tried, CamelCase, at most 128 characters. */
  readonly action: string
  /** A sentence for users, cut at 1 KiB. */
  readonly note: string
}

/** Records changes of state for users. `record` never throws and never waits: no decision depends on an Event. */
export interface EventRecorder {
  record(object: KubeObject, text: EventText): void
}

export interface EventRecorderDeps {
  readonly kube: KubePort
  readonly clock: Clock
  readonly logger: Log
  /** Pod name. */
  readonly instance: string
  /** Whether a namespace is being deleted: no object can be created there. */
  readonly isTerminating?: (namespace: string) => boolean
  /** Called when an Event was dropped because too many wait. */
  readonly onDropped?: () => void
}

const REPORTER = 'headgate.dev/operator'
const MAX_NOTE_BYTES = 1024
/** Maximum number of Events that are written at once and that wait, so that Events do not delay other calls. */
const MAX_WRITES = 4
const MAX_WAITING = 1_000
/** `flush` waits this long at most: an API server that does not answer must not delay the hand-over of the Lease. */
const FLUSH_MS = 5_000
/** The name of an Event has at most 253 characters, of which the dot and the suffix take 17. */
const MAX_OBJECT_NAME = 236

/** Writes Events of events.k8s.io/v1. An event that occurs again within 6 minutes becomes a count (`EventSeries`). */
export class KubeEventRecorder implements EventRecorder {
  readonly #deps: EventRecorderDeps
  readonly #series = new EventSeries()
  readonly #writes = new BoundedWrites()

  constructor(deps: EventRecorderDeps) {
    this.#deps = deps
  }

  record(object: KubeObject, text: EventText): void {
    if (this.#deps.isTerminating?.(namespaceOf(object))) return
    const identity = { uid: object.metadata.uid ?? '', action: text.action, reason: text.reason, type: text.type }
    const next = this.#series.next(identity, this.#deps.clock.monotonic())
    if (next.step === 'create') this.#background(object, text, identity, () => this.#create(object, text, identity))
    if (next.step === 'refresh') this.#background(object, text, identity, () => this.#refresh(object, next.name, next.count))
    if (next.step === 'dropped') this.#deps.logger.debug({ object: nameOf(object), reason: text.reason }, 'too many Events for this object')
  }

  /** Resolves when every recorded Event is written or has failed, after 5 s at the latest. Call it before the process exits. */
  async flush(): Promise<void> {
    const written = new AbortController()
    const idle = this.#writes.idle().then(() => written.abort())
    await Promise.race([idle, sleep(this.#deps.clock, FLUSH_MS, written.signal)])
  }

  #background(object: KubeObject, text: EventText, identity: EventIdentity, write: () => Promise<void>): void {
    const failed = (error: unknown): void => {
      this.#series.failed(identity)
      if (isKubeError(error, 'NamespaceTerminating')) return // no user can read the Event any more, so this is not an error
      const why = error instanceof Error ? error.message : 'unknown failure'
      this.#deps.logger.warn({ object: nameOf(object), reason: text.reason }, `Event not written: ${why}`)
    }
    const dropped = (): void => {
      this.#series.failed(identity)
      this.#deps.onDropped?.()
    }
    this.#writes.add({ run: () => write().catch(failed), dropped })
  }

  async #create(object: KubeObject, text: EventText, identity: EventIdentity): Promise<void> {
    const { metadata } = object
    const namespace = namespaceOf(object)
    const event: KubeEvent = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: {
        name: `${metadata.name.slice(0, MAX_OBJECT_NAME).replace(/[^a-z0-9]+$/, '')}.${randomBytes(8).toString('hex')}`,
        namespace,
      },
      eventTime: microTime(this.#deps.clock.now()),
      reportingController: REPORTER,
      reportingInstance: this.#deps.instance.slice(0, 128),
      action: text.action,
      reason: text.reason,
      type: text.type,
      note: cut(text.note),
      regarding: {
        apiVersion: object.apiVersion,
        kind: object.kind,
        namespace: metadata.namespace ?? '',
        name: metadata.name,
        uid: identity.uid,
      },
    }
    await this.#deps.kube.create(events, event)
    this.#series.created(identity, event.metadata.name)
  }

  async #refresh(object: KubeObject, name: string, count: number): Promise<void> {
    const value = { count, lastObservedTime: microTime(this.#deps.clock.now()) }
    await this.#deps.kube.patch(events, { namespace: namespaceOf(object), name }, [{ op: 'add', path: '/series', value }])
  }
}

/** A write for which no caller waits. */
interface BackgroundWrite {
  /** Must not reject. */
  readonly run: () => Promise<void>
  /** Called instead of `run` when too many writes wait. */
  readonly dropped: () => void
}

/** Runs writes in the background: a few at once and the others in order. When too many wait, the oldest is dropped. */
class BoundedWrites {
  readonly #waiting: BackgroundWrite[] = []
  readonly #idleWaiters: Array<() => void> = []
  #running = 0

  add(write: BackgroundWrite): void {
    this.#waiting.push(write)
    if (this.#running === MAX_WRITES && this.#waiting.length > MAX_WAITING) this.#waiting.shift()?.dropped()
    this.#next()
  }

  /** Resolves when no write runs or waits. */
  idle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idleWaiters.push(resolve))
  }

  #next(): void {
    while (this.#running < MAX_WRITES) {
      const write = this.#waiting.shift()
      if (!write) break
      this.#running += 1
      void write.run().finally(() => {
        this.#running -= 1
        this.#next()
      })
    }
    if (this.#running === 0) for (const wake of this.#idleWaiters.splice(0)) wake()
  }
}

/** An Event is in the namespace of its object; for a cluster-scoped object in `default`, where kubectl reads it. */
function namespaceOf(object: KubeObject): string {
  return object.metadata.namespace || 'default'
}

function nameOf(object: KubeObject): string {
  return `${object.kind} ${object.metadata.namespace ?? ''}/${object.metadata.name}`
}

/** Cuts a note to 1 KiB of UTF-8. A character that does not fit as a whole is dropped. */
function cut(note: string): string {
  const bytes = Buffer.from(note)
  return bytes.length <= MAX_NOTE_BYTES
    ? note
    : bytes
        .subarray(0, MAX_NOTE_BYTES)
        .toString('utf8')
        .replace(/\uFFFD+$/, '')
}
