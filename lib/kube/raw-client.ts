import { text } from 'node:stream/consumers'
import { sleep, type Clock } from '#platform/clock.ts'
import {
  type CreateOptions,
  type KubeObject,
  type KubePort,
  type ObjectRef,
  type PatchOperation,
  type Preconditions,
  type Resource,
  apiVersionOf,
  identityOf,
  isKubeError,
  refKey,
  refOf,
  retryAfterMs,
} from './port.ts'
import { normalized, resourceName, resourcePath, type Target } from './resources.ts'
import { StatusError, unreachable, type Asked } from './status-error.ts'
import type { KubeCall, Transport } from './transport.ts'
import { watchEvents, type WatchEvent } from './watch-events.ts'

/** Field manager of all writes. */
const FIELD_MANAGER = 'headgate-operator'

/** Asks for the metadata of the written object alone. Every supported version of the API server can answer with it. */
const METADATA_ONLY = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'

/** Delay before a call is sent a second time: random up to this. */
const RETRY_WITHIN_MS = 400
/** If the server asks for a longer wait, the caller gets the error. */
const LONGEST_RETRY_AFTER_MS = 1_000

/** Maximum number of objects in a page; the server itself sets no maximum. */
const PAGE = 500

export interface RawClientOptions {
  readonly transport: Pick<Transport, 'call' | 'open'>
  readonly clock: Clock
  /** [0, 1); default Math.random */
  readonly random?: () => number
  /** All calls use separate connections: for the LeaderLease. */
  readonly isDedicated?: boolean
}

/** Which objects to list or watch. */
export interface Selection {
  /** '' = all */
  readonly namespace: string
  /** `key=value`; absent = all */
  readonly labelSelector?: string
}

/** A list and its resourceVersion. */
export interface ListResult<T> {
  readonly items: readonly T[]
  readonly resourceVersion: string
}

interface RawList<T> {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string }
  readonly items?: readonly T[] | null
}

/**
 * The Kubernetes API in plain JSON. get, list, applyStatus and remove of a known uid are sent a second time after 429, 5xx or a broken connection;
 * create, update and patch are not: after a lost answer only the caller knows whether a second try is right.
 */
export class RawClient implements KubePort {
  readonly #options: RawClientOptions

  constructor(options: RawClientOptions) {
    this.#options = options
  }

  async get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Promise<T | undefined> {
    const call: KubeCall = { method: 'GET', path: resourcePath(resource, ref) }
    try {
      return await this.#twice(() => this.#object(resource, ask('get', resource, ref), call))
    } catch (error) {
      return absentOrThrow(error)
    }
  }

  /**
   * While a single object of the kind cannot be decoded, anywhere in the cluster, the API server has no cache of the kind and refuses
   * lists with a selector (429). Lists without one are then read from the namespace alone, past the cache.
   */
  async list<T extends KubeObject>(resource: Resource<T>, namespace: string, labelSelector?: string): Promise<readonly T[]> {
    try {
      return (await this.#twice(() => this.listAt(resource, { namespace, ...(labelSelector && { labelSelector }) }, ''))).items
    } catch (error) {
      if (labelSelector === undefined || !isKubeError(error, 'TooManyRequests')) throw error
      return (await this.list(resource, namespace)).filter((object) => hasLabel(object, labelSelector))
    }
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T, options: CreateOptions = {}): Promise<T> {
    const query = { fieldManager: FIELD_MANAGER, dryRun: options.dryRun ? 'All' : undefined }
    const path = resourcePath(resource, { namespace: object.metadata.namespace ?? '' }, query)
    return this.#object(resource, ask('create', resource, refOf(object)), { method: 'POST', path, body: JSON.stringify(object) })
  }

  async update<T extends KubeObject>(resource: Resource<T>, object: T): Promise<Pick<KubeObject, 'metadata'>> {
    return this.#object(resource, ask('update', resource, refOf(object)), {
      method: 'PUT',
      path: resourcePath(resource, refOf(object), { fieldManager: FIELD_MANAGER }),
      accept: METADATA_ONLY,
      body: JSON.stringify(object),
    })
  }

  async patch<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, operations: readonly PatchOperation[]): Promise<T> {
    return this.#object(resource, ask('patch', resource, ref), {
      method: 'PATCH',
      path: resourcePath(resource, ref, { fieldManager: FIELD_MANAGER }),
      contentType: 'application/json-patch+json',
      body: JSON.stringify(operations),
    })
  }

  async applyStatus<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const target: Target = { ...refOf(object), subresource: 'status' }
    const call: KubeCall = {
      method: 'PATCH',
      path: resourcePath(resource, target, { fieldManager: FIELD_MANAGER, force: 'true' }),
      contentType: 'application/apply-patch+yaml',
      body: JSON.stringify(statusOnly(resource, object)),
    }
    return this.#twice(() => this.#object(resource, ask('apply status of', resource, refOf(object)), call))
  }

  async remove<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, preconditions?: Preconditions): Promise<'deleted' | 'absent'> {
    const options = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: 'Background',
      ...(preconditions ? { preconditions } : {}),
    }
    const call: KubeCall = { method: 'DELETE', path: resourcePath(resource, ref), body: JSON.stringify(options) }
    const send = (): Promise<unknown> => this.#json(ask('delete', resource, ref), call)
    try {
      // without a uid a second try could hit a successor of the same name
      await (preconditions?.uid === undefined ? send() : this.#twice(send))
      return 'deleted'
    } catch (error) {
      absentOrThrow(error)
      return 'absent'
    }
  }

  /**
   * All selected objects, as of one moment, in pages: one answer with 100,000 objects would exceed memory and deadline. Each call is sent once:
   * the reflector has a back-off of its own and must log every failure.
   * @param resourceVersion '' = the newest; else at least as new as that
   * @throws KubeError Expired when the pages took longer than the server keeps that state
   */
  async listAt<T extends KubeObject>(resource: Resource<T>, selection: Selection, resourceVersion: string): Promise<ListResult<T>> {
    const asked = ask('list', resource, { namespace: selection.namespace, name: '' })
    const items: T[] = []
    let next = listQuery(selection, resourceVersion)
    for (;;) {
      const page = await this.#json<RawList<T>>(asked, { method: 'GET', path: resourcePath(resource, selection, next) })
      for (const item of page.items ?? []) items.push(normalized(resource, item))
      if (!page.metadata?.continue) return { items, resourceVersion: page.metadata?.resourceVersion ?? '' }
      next = { ...listQuery(selection, ''), continue: page.metadata.continue } // the token holds the version; both together are refused
    }
  }

  /**
   * Changes after `resourceVersion`, with bookmarks, until the server ends the watch.
   * @param timeoutSeconds after which the server ends the watch
   * @throws KubeError when the server refuses the watch, or the connection breaks or is ended by `signal`
   */
  async *watch(
    resource: Resource,
    selection: Selection,
    at: { resourceVersion: string; timeoutSeconds: number },
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent> {
    const asked = ask('watch', resource, { namespace: selection.namespace, name: '' })
    const query = {
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: at.resourceVersion,
      timeoutSeconds: String(at.timeoutSeconds),
    }
    try {
      const stream = await this.#options.transport.open(resourcePath(resource, selection, query), signal)
      if (stream.status !== 200) throw new StatusError(asked, { ...stream, text: await text(stream.body) })
      yield* watchEvents(stream.body)
    } catch (error) {
      throw error instanceof StatusError ? error : unreachable(asked, error)
    }
  }

  async #object<T extends KubeObject>(resource: Resource<T>, asked: Asked, call: KubeCall): Promise<T> {
    return normalized(resource, await this.#json<T>(asked, call))
  }

  /**
   * Sends a call that may safely be sent twice, and repeats it once after 429, 5xx or a broken connection. A worker must not wait here for
   * longer: its queue has a back-off. The delay is random over its whole range, so that many callers do not come back together, and never
   * shorter than Retry-After.
   * @throws the last KubeError
   */
  async #twice<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      if (!isTransient(error)) throw error
      const { clock, random = Math.random } = this.#options
      await sleep(clock, (retryAfterMs(error) ?? 0) + random() * RETRY_WITHIN_MS)
      return call()
    }
  }

  /** The caller gives the type, since the API server has validated its objects. */
  async #json<T>(asked: Asked, call: KubeCall): Promise<T> {
    const { transport, isDedicated = false } = this.#options
    let answer
    try {
      answer = await transport.call({ ...call, isDedicated })
    } catch (error) {
      throw unreachable(asked, error)
    }
    if (answer.status < 200 || answer.status > 299) throw new StatusError(asked, answer)
    try {
      return JSON.parse(answer.text)
    } catch {
      throw unreachable(asked, new Error('the answer is not JSON')) // the parser's own message would quote the body
    }
  }
}

function isTransient(error: unknown): boolean {
  if (!isKubeError(error, 'TooManyRequests', 'Unreachable')) return false
  if (error instanceof StatusError && error.versionTooLarge) return false // the caller must ask for a lower version; the same call would fail again
  return (retryAfterMs(error) ?? 0) <= LONGEST_RETRY_AFTER_MS
}

/** @param selector `key=value` */
function hasLabel({ metadata }: KubeObject, selector: string): boolean {
  const at = selector.indexOf('=')
  return metadata.labels?.[selector.slice(0, at)] === selector.slice(at + 1)
}

function ask(verb: string, resource: Resource, ref: ObjectRef): Asked {
  return {
    verb,
    resource: resourceName(resource),
    ...(ref.namespace === '' ? {} : { namespace: ref.namespace }),
    object: ref.namespace !== '' && ref.name !== '' ? refKey(ref) : ref.namespace || ref.name,
  }
}

/**
 * Returns undefined if the server says that this object does not exist. A 404 for the whole path (the CRD was deleted) is an error: an
 * orphan check that read such a 404 as "object deleted" would revoke every key.
 */
function absentOrThrow(error: unknown): undefined {
  if (error instanceof StatusError && error.code === 'NotFound' && error.served) return undefined
  throw error
}

/** With a limit, a resourceVersion without resourceVersionMatch would mean exactly that version. */
function listQuery({ labelSelector }: Selection, resourceVersion: string): Record<string, string | undefined> {
  const query = { limit: String(PAGE), labelSelector }
  return resourceVersion === '' ? query : { ...query, resourceVersion, resourceVersionMatch: 'NotOlderThan' }
}

function statusOnly(resource: Resource, object: KubeObject): unknown {
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: identityOf(object), // a recreated object must not inherit the status of its predecessor
    status: 'status' in object ? object.status : undefined,
  }
}
