/** What makes two events the same: object, action, reason, type. The reporter is always this process. */
export interface EventIdentity {
  readonly uid: string
  readonly action: string
  readonly reason: string
  readonly type: string
}

/** What to do with one more occurrence. */
export type SeriesStep =
  /** Write a new Event under this key; `name` it with the token. */
  | { readonly step: 'create' }
  /** Write the count to the Event made earlier. */
  | { readonly step: 'refresh'; readonly name: string; readonly count: number }
  /** Counted, nothing to write yet. */
  | { readonly step: 'counted' }
  /** The object has used up its share of Events. */
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

/** The same event within this time continues the series of the first. */
const SERIES_GAP_MS = 6 * 60_000
const REFRESH_MS = 30 * 60_000
const BURST = 25
const REFILL_MS = 300_000
/** Objects and series remembered; beyond it the oldest are forgotten, which costs at most an Event more. */
const MAX_REMEMBERED = 4096

/**
 * Keeps repeated Events from filling etcd: the same one within 6 minutes becomes a count on the first, written at its second occurrence and
 * then every 30 minutes; an object gets at most 25 at once and then one per 300 s. Decides only; times in ms of one clock.
 */
export class EventSeries {
  readonly #series = new Map<string, Series>()
  readonly #buckets = new Map<string, Bucket>()

  /** Counts one occurrence. After 'create', call `created` or `failed`. */
  next(identity: EventIdentity, nowMs: number): SeriesStep {
    const key = keyOf(identity)
    const known = this.#series.get(key)
    if (known && nowMs - known.lastMs < SERIES_GAP_MS) return this.#repeat(known, nowMs)
    if (!this.#takeToken(identity.uid, nowMs)) return { step: 'dropped' }
    remember(this.#series, key, { name: undefined, count: 1, lastMs: nowMs, writtenMs: nowMs, writtenCount: 1 })
    return { step: 'create' }
  }

  /** The first Event of the series exists under this name. */
  created(identity: EventIdentity, name: string): void {
    const series = this.#series.get(keyOf(identity))
    if (series) series.name = name
  }

  /** The Event could not be written, or was deleted: the next occurrence makes a new one. */
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

/** Sets the entry as the newest and forgets the oldest beyond the bound. */
function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key)
  map.set(key, value)
  const oldest = map.size > MAX_REMEMBERED ? map.keys().next() : undefined
  if (oldest && !oldest.done) map.delete(oldest.value)
}
