import type { Clock } from '#platform/clock.ts'
import type { Ledger, LedgerSnapshot, LimitSubject } from './ledger.ts'

export interface TimedSnapshot {
  readonly snapshot: LedgerSnapshot
  /** ms since 1970. */
  readonly atMs: number
}

interface Entry {
  /** The subject with its limits; a changed record is another subject. */
  readonly subject: LimitSubject
  /** Monotonic ms. */
  readonly askedAt: number
  readonly snapshot: Promise<TimedSnapshot>
}

/** Life of a snapshot: a client that asks in a loop gets a new one once a second. */
const FRESH_MS = 1_000
const MOST_ENTRIES = 10_000

/** Snapshots of subjects. Reads the ledger at most once a second for each subject. */
export class SnapshotCache {
  readonly #ledger: Pick<Ledger, 'snapshot'>
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>
  readonly #entries = new Map<string, Entry>()

  constructor(ledger: Pick<Ledger, 'snapshot'>, clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#ledger = ledger
    this.#clock = clock
  }

  /** @throws Error if the store does not answer; the next request asks again */
  async of(subject: LimitSubject): Promise<TimedSnapshot> {
    const askedAt = this.#clock.monotonic()
    const found = this.#entries.get(subject.uid)
    if (found?.subject === subject && askedAt - found.askedAt < FRESH_MS) return await found.snapshot
    if (this.#entries.size >= MOST_ENTRIES) this.#entries.clear()
    const entry = { subject, askedAt, snapshot: this.#read(subject) }
    this.#entries.set(subject.uid, entry)
    try {
      return await entry.snapshot
    } catch (error) {
      if (this.#entries.get(subject.uid) === entry) this.#entries.delete(subject.uid)
      throw error
    }
  }

  async #read(subject: LimitSubject): Promise<TimedSnapshot> {
    const snapshot = await this.#ledger.snapshot(subject)
    return { snapshot, atMs: this.#clock.now() }
  }
}
