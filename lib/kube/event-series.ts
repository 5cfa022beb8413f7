/** Events with the same object, action, reason and type belong to one series. The reporter is always this process. */
export interface EventIdentity {
  readonly uid: string
  readonly action: string
  readonly reason: string
  readonly type: string
}

/** What to do after an occurrence of an event. */
export type SeriesStep =
  /** Write a new Event, then call `created` or `failed`. */
  | { readonly step: 'create' }
  /** Write the count to the first Event of the series. */
  | { readonly step: 'refresh'; readonly name: string; readonly count: number }
  /** The occurrence is counted; there is nothing to write yet. */
  | { readonly step: 'counted' }
  /** The object has had its maximum number of Events for now: write nothing. */
  | { readonly step: 'dropped' }

interface Series {
  name: string | undefined // undefined while the first Event is being written
  count: number
  lastMs: number
  writtenMs: number
  writtenCount: number
}

interface Bucket {
  tokens: number
  filledMs: number
}

/** The same event within this time after the last occurrence continues its series. */
const SERIES_GAP_MS = 6 * 60_000
const REFRESH_MS = 30 * 60_000
const BURST = 25
const REFILL_MS = 300_000
/** Maximum number of objects and of series in memory. Above it the oldest is forgotten, which costs at most one more Event. */
const MAX_REMEMBERED = 4096

/**
 * Prevents repeated Events from filling etcd. An event that occurs again within 6 minutes becomes a count on the first Event, written at the
 * second occurrence and then every 30 minutes. An object gets at most 25 Events at once, then one per 300 s. This class only decides; the
 * recorder writes. Times are in ms of one clock.
 */
export class EventSeries {
  readonly #series = new Map<string, Series>()
  readonly #buckets = new Map<string, Bucket>()

  /** Counts one occurrence. @returns what to write */
  next(identity: EventIdentity, nowMs: number): SeriesStep {
    const key = keyOf(identity)
    const known = this.#series.get(key)
    if (known && nowMs - known.lastMs < SERIES_GAP_MS) return this.#repeat(known, nowMs)
    if (!this.#takeToken(identity.uid, nowMs)) return { step: 'dropped' }
    remember(this.#series, key, { name: undefined, count: 1, lastMs: nowMs, writtenMs: nowMs, writtenCount: 1 })
    return { step: 'create' }
  }

  /** Call this when the first Event of the series exists under this name. */
  created(identity: EventIdentity, name: string): void {
    const series = this.#series.get(keyOf(identity))
    if (series) series.name = name
  }

  /** Call this when the Event could not be written, or was deleted: the next occurrence makes a new Event. */
  failed(identity: EventIdentity): void {
    this.#series.delete(keyOf(identity))
  }

  #repeat(series: Series, nowMs: number): SeriesStep {
    series.count += 1
    series.lastMs = nowMs
    const due = series.writtenCount === 1 || nowMs - series.writtenMs >= REFRESH_MS
    if (!due || series.name === undefined) return { step: 'counted' }
    series.writtenMs = nowMs
    series.writtenCount = series.count
    return { step: 'refresh', name: series.name, count: series.count }
  }

  #takeToken(uid: string, nowMs: number): boolean {
    const bucket = this.#buckets.get(uid) ?? { tokens: BURST, filledMs: nowMs }
    const refilled = Math.floor((nowMs - bucket.filledMs) / REFILL_MS)
    const tokens = Math.min(BURST, bucket.tokens + refilled)
    const filledMs = tokens === BURST ? nowMs : bucket.filledMs + refilled * REFILL_MS
    remember(this.#buckets, uid, { tokens: Math.max(0, tokens - 1), filledMs })
    return tokens > 0
  }
}

function keyOf(identity: EventIdentity): string {
  return [identity.uid, identity.action, identity.reason, identity.type].join('\n')
}

/** Sets the entry as the newest one, and forgets the oldest one above the maximum. */
function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key)
  map.set(key, value)
  const oldest = map.size > MAX_REMEMBERED ? map.keys().next() : undefined
  if (oldest && !oldest.done) map.delete(oldest.value)
}
