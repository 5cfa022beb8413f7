import { itemKey, type Item } from './item.ts'
import { isLower, LEVELS, type Level } from './level.ts'

/** Consumed entries kept before the array is cut; a Map would be scanned from its start instead. */
const CUT_AFTER = 1_024

/** An item in the queue, and since when (monotonic ms). */
export interface Waiting {
  readonly item: Item
  readonly level: Level
  readonly sinceMs: number
  /** Whose turn it is. */
  readonly tenant: string
}

/** The keys of one level: tenants in the order of their turns, and the keys of each. Keys that left stay until their turn comes. */
interface Turns {
  readonly tenants: Fifo<string>
  readonly keys: Map<string, Fifo<string>>
}

/**
 * Items in order of level. Within a level the tenants take turns, and within a tenant the oldest item comes first: a tenant with
 * 2,000 changes delays only its own. An item waits at most once, at the highest level that was asked for.
 */
export class PriorityQueue {
  readonly #tenantOf: (item: Item) => string
  readonly #waiting = new Map<string, Waiting>()
  readonly #turns: Record<Level, Turns> = { urgent: noTurns(), change: noTurns(), create: noTurns(), background: noTurns() }
  readonly #depth: Record<Level, number> = { urgent: 0, change: 0, create: 0, background: 0 }
  /** Items of one tenant that wait at any level but background. */
  readonly #backlogs = new Map<string, number>()

  /** @param tenantOf default: the namespace of the item */
  constructor(tenantOf: (item: Item) => string = ({ ref }) => ref.namespace) {
    this.#tenantOf = tenantOf
  }

  depth(level: Level): number {
    return this.#depth[level]
  }

  /** Items of one tenant that wait for anything but background work. */
  backlogOf(tenant: string): number {
    return this.#backlogs.get(tenant) ?? 0
  }

  /** Items of one tenant that wait at a level, and at most as many that have left it. */
  waitingOf(tenant: string, level: Level): number {
    return this.#turns[level].keys.get(tenant)?.size ?? 0
  }

  /** Adds an item, or moves it up. @returns whether the item did not wait before */
  add(item: Item, level: Level, sinceMs: number): boolean {
    const key = itemKey(item)
    const present = this.#waiting.get(key)
    if (present && !isLower(present.level, level)) return false
    this.delete(item)
    const waiting = { item, level, sinceMs: present?.sinceMs ?? sinceMs, tenant: this.#tenantOf(item) }
    this.#waiting.set(key, waiting)
    this.#count(waiting, 1)
    this.#enqueue(waiting.tenant, key, this.#turns[level])
    return present === undefined
  }

  /** @param isFull whether a tenant gets no turn now */
  shift(levels: readonly Level[] = LEVELS, isFull: (tenant: string, level: Level) => boolean = () => false): Waiting | undefined {
    for (const level of levels) {
      const next = this.#depth[level] > 0 ? this.#shiftAt(level, isFull) : undefined
      if (next) return next
    }
    return undefined
  }

  #shiftAt(level: Level, isFull: (tenant: string, level: Level) => boolean): Waiting | undefined {
    const { tenants, keys } = this.#turns[level]
    for (let left = tenants.size; left > 0; left -= 1) {
      const tenant = tenants.shift() ?? ''
      const queue = keys.get(tenant) ?? new Fifo<string>()
      const next = isFull(tenant, level) ? undefined : this.#nextOf(queue, level)
      if (queue.size > 0) tenants.push(tenant)
      else keys.delete(tenant)
      if (next) return next
    }
    return undefined
  }

  delete(item: Item): void {
    const present = this.#waiting.get(itemKey(item))
    if (!present) return
    this.#waiting.delete(itemKey(item))
    this.#count(present, -1)
  }

  #count({ level, tenant }: Waiting, change: 1 | -1): void {
    this.#depth[level] += change
    if (level === 'background') return
    const backlog = this.backlogOf(tenant) + change
    if (backlog === 0) this.#backlogs.delete(tenant)
    else this.#backlogs.set(tenant, backlog)
  }

  #enqueue(tenant: string, key: string, { tenants, keys }: Turns): void {
    const queue = keys.get(tenant)
    if (queue) return queue.push(key)
    const first = new Fifo<string>()
    first.push(key)
    keys.set(tenant, first)
    tenants.push(tenant)
  }

  /** @returns undefined when every key left in the meantime */
  #nextOf(queue: Fifo<string>, level: Level): Waiting | undefined {
    for (let key = queue.shift(); key !== undefined; key = queue.shift()) {
      const waiting = this.#waiting.get(key)
      if (waiting?.level !== level) continue
      this.delete(waiting.item)
      return waiting
    }
    return undefined
  }
}

function noTurns(): Turns {
  return { tenants: new Fifo(), keys: new Map() }
}

/** First in, first out, in constant time on average. */
class Fifo<T> {
  #entries: T[] = []
  #head = 0

  get size(): number {
    return this.#entries.length - this.#head
  }

  push(entry: T): void {
    this.#entries.push(entry)
  }

  shift(): T | undefined {
    const entry = this.#entries[this.#head]
    if (this.size === 0) return undefined
    this.#head += 1
    if (this.#head > CUT_AFTER && this.#head * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head)
      this.#head = 0
    }
    return entry
  }
}
