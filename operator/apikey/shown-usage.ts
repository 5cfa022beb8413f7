/**
 * Which reading of the ledger the status of a key shows. Statuses about use alone would be most of what the operator writes: so one key waits a
 * minute between two of them, and a change must be worth it; ten keys a second have their turn, the largest change first. A key that is used up
 * waits for nothing.
 */
import type { Cancel, Clock } from '../../gateway/process/clock.ts'
import type { KeyUsage, Weight } from './usage.ts'

/** Between two statuses of one key, ms. */
const KEY_EVERY_MS = 60_000
/** One turn, ms, and the keys that it takes. */
const TURN_MS = 1_000
const PER_TURN = 10

/** What the choice needs. */
export interface ShownUsageDeps {
  readonly clock: Clock
  /** How much the status of a key would say that it does not say now; undefined: there is no such key. */
  readonly weigh: (uid: string, usage: KeyUsage) => Weight | undefined
  /** The status of a key shall be written. */
  readonly enqueue: (uid: string) => void
}

interface Waiting {
  readonly usage: KeyUsage
  readonly size: number
}

/** By uid of the ApiKey. */
export class ShownUsage {
  readonly #deps: ShownUsageDeps
  readonly #shown = new Map<string, { readonly usage: KeyUsage; readonly atMs: number }>()
  readonly #waiting = new Map<string, Waiting>()
  #cancel: Cancel | undefined
  #fullSinceMs: number | undefined

  constructor(deps: ShownUsageDeps) {
    this.#deps = deps
  }

  /** What the status shows; undefined: what stands there. */
  shown(uid: string): KeyUsage | undefined {
    return this.#shown.get(uid)?.usage
  }

  /** ms since when every turn has been full; 0 where the last one was not. */
  get fullForMs(): number {
    return this.#fullSinceMs === undefined ? 0 : this.#deps.clock.monotonic() - this.#fullSinceMs
  }

  /** The ledger says something about a key. */
  read(uid: string, usage: KeyUsage): void {
    const weight = this.#deps.weigh(uid, usage)
    if (weight === undefined || weight.kind === 'None') return void this.#waiting.delete(uid)
    if (weight.kind === 'Exhausted') return this.#show(uid, usage)
    this.#waiting.set(uid, { usage, size: weight.size })
    this.#cancel ??= this.#deps.clock.after(TURN_MS, () => this.#turn())
  }

  forget(uid: string): void {
    this.#shown.delete(uid)
    this.#waiting.delete(uid)
  }

  stop(): void {
    this.#cancel?.()
    this.#waiting.clear()
  }

  #turn(): void {
    const nowMs = this.#deps.clock.monotonic()
    const due = [...this.#waiting].filter(([uid]) => (this.#shown.get(uid)?.atMs ?? -Infinity) + KEY_EVERY_MS <= nowMs)
    for (const [uid, { usage }] of due.toSorted(([, a], [, b]) => b.size - a.size).slice(0, PER_TURN)) this.#show(uid, usage)
    this.#fullSinceMs = due.length < PER_TURN ? undefined : (this.#fullSinceMs ?? nowMs)
    this.#cancel = this.#waiting.size === 0 ? undefined : this.#deps.clock.after(TURN_MS, () => this.#turn())
  }

  #show(uid: string, usage: KeyUsage): void {
    this.#waiting.delete(uid)
    this.#shown.set(uid, { usage, atMs: this.#deps.clock.monotonic() })
    this.#deps.enqueue(uid)
  }
}
