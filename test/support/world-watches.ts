/** The events that the informers of a world get from its object store: a little late, and twice or not at all if a test says so. */
import type { Clock } from '#platform/clock.ts'
import { ObjectCache } from '#kube/object-cache.ts'
import { type Informer, type KubeObject, namespaceOf, type Resource } from '#kube/port.ts'
import type { ObjectStore } from '../../standalone/object-store.ts'

/** An event takes this long to arrive, ms. */
const DELIVERY_MS = 1

export interface WatchScope {
  readonly includes: (namespace: string) => boolean
  /** Whether the first list of a namespace never arrives, because a Role is missing. */
  readonly isRefused: (namespace: string) => boolean
  readonly isAlive: () => boolean
}

interface Feed {
  readonly cache: ObjectCache<KubeObject>
  readonly scope: WatchScope
  isFrozen: boolean
  /** Number of the newest change in its last list: as with a real watch, only later changes are delivered. */
  listedAt: number
}

interface Table {
  readonly resource: Resource
  readonly feeds: Set<Feed>
  /** Number of changes so far. */
  changes: number
  /** Objects that a newly started process sees; undefined: the present objects. */
  frozen: readonly KubeObject[] | undefined
}

/** The processes whose watches are frozen: standbys, which start to lead later, or running processes as well. */
export type Frozen = 'Standbys' | 'Everyone'

export class WorldWatches {
  /** Every change reaches listeners twice. */
  isDoubled = false
  readonly #objects: ObjectStore
  readonly #clock: Clock
  readonly #tables = new Map<string, Table>()

  constructor(objects: ObjectStore, clock: Clock) {
    this.#objects = objects
    this.#clock = clock
  }

  /** Whether a process may not know the present objects. */
  get isFrozen(): boolean {
    return [...this.#tables.values()].some(({ frozen }) => frozen !== undefined)
  }

  /** Nothing is delivered any more; a process that starts gets what the watches had shown until now. @param plural of one kind; default all */
  freeze(whose: Frozen, plural?: string): void {
    for (const table of this.#tables.values()) {
      if (plural !== undefined && table.resource.plural !== plural) continue
      table.frozen = this.#present(table)
      for (const feed of table.feeds) feed.isFrozen ||= whose === 'Everyone'
    }
  }

  /** The watches begin again, each with a list. */
  thaw(): void {
    for (const table of this.#tables.values()) {
      table.frozen = undefined
      for (const feed of table.feeds) {
        if (feed.isFrozen && feed.scope.isAlive()) {
          feed.cache.replace(visible(this.#present(table), feed))
          feed.listedAt = table.changes
        }
        feed.isFrozen = false
      }
    }
  }

  /** The running processes get a list without an object that exists. */
  miss(resource: Resource, object: KubeObject): void {
    for (const feed of this.#table(resource).feeds) feed.cache.remove(object)
  }

  /** @returns the informer of one process; its first list is in already */
  informer<T extends KubeObject>(resource: Resource<T>, scope: WatchScope): Informer<T> {
    const table = this.#table(resource)
    const cache = new ObjectCache<KubeObject>((error) => {
      throw error
    })
    const feed: Feed = { cache, scope, isFrozen: table.frozen !== undefined, listedAt: table.changes }
    table.feeds.add(feed)
    cache.replace(visible(table.frozen ?? this.#present(table), feed))
    const informer: Informer = {
      synced: Promise.resolve(),
      isSynced: (namespace) => (namespace === '' || scope.includes(namespace)) && !scope.isRefused(namespace),
      get: (ref) => cache.get(ref),
      list: () => cache.list(),
      subscribe: (listener) => {
        cache.subscribe((before, after) => {
          if (this.isDoubled) listener(before, after)
          listener(before, after)
        })
      },
      addIndex: (name, valuesOf) => cache.addIndex(name, valuesOf),
      byIndex: (name, value) => cache.byIndex(name, value),
      drop: (ref) => cache.forget(ref),
    }
    return informer as unknown as Informer<T> // the table of a resource holds nothing but T
  }

  #present({ resource }: Table): readonly KubeObject[] {
    return [...this.#objects.informer(resource).list()]
  }

  #table(resource: Resource): Table {
    const known = this.#tables.get(resource.plural)
    if (known) return known
    const table: Table = { resource, feeds: new Set(), changes: 0, frozen: undefined }
    this.#tables.set(resource.plural, table)
    this.#objects.informer(resource).subscribe((before, after) => {
      const number = (table.changes += 1)
      this.#clock.after(DELIVERY_MS, () => this.#deliver(table, number, before, after))
    })
    return table
  }

  #deliver({ feeds }: Table, number: number, before: KubeObject | undefined, after: KubeObject | undefined): void {
    for (const feed of feeds) {
      if (!feed.scope.isAlive()) feeds.delete(feed)
      else if (feed.isFrozen || number <= feed.listedAt)
        continue // the list after the thaw, or the list before, has this change
      else if (after === undefined) feed.cache.remove(present(before))
      else if (isVisible(after, feed)) feed.cache.put(after)
    }
  }
}

function isVisible(object: KubeObject, { scope }: Feed): boolean {
  const namespace = namespaceOf(object)
  return (namespace === '' || scope.includes(namespace)) && !scope.isRefused(namespace)
}

function visible(objects: readonly KubeObject[], feed: Feed): readonly KubeObject[] {
  return objects.filter((object) => isVisible(object, feed))
}

function present(before: KubeObject | undefined): KubeObject {
  if (!before) throw new TypeError('nothing became nothing')
  return before
}
