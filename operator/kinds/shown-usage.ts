/**
 * Selects the readings of the ledger that statuses show. Otherwise statuses about use would be most writes of the operator. So one key waits
 * a minute between two such statuses, and a change must have a minimum size. Ten keys per second take their turn, the largest change first. A
 * key whose budget is used up does not wait.
 */
import type { Cancel, Clock } from '#platform/clock.ts'
import type { SubjectUsage } from '../books/subject-ledger.ts'
import type { Weight } from './usage-status.ts'

/** Time between two statuses of one key, ms. */
const KEY_EVERY_MS = 60_000
/** Time between two turns, ms, and most keys per turn. */
const TURN_MS = 1_000
const PER_TURN = 10

export interface ShownUsageDeps<Usage = SubjectUsage> {
  readonly clock: Clock
  /** The weight of a new status of the key; undefined if there is no such key. */
  readonly weigh: (uid: string, usage: Usage) => Weight | undefined
  readonly enqueue: (uid: string) => void
}

export class ShownUsage<Usage = SubjectUsage> {
  readonly #deps: ShownUsageDeps<Usage>
  readonly #shown = new Map<string, { readonly usage: Usage; readonly atMs: number }>()
  readonly #waiting = new Map<string, { readonly usage: Usage; readonly size: number }>()
  #cancel: Cancel | undefined

  constructor(deps: ShownUsageDeps<Usage>) {
    this.#deps = deps
  }

  /** The reading for the status; undefined keeps the use that the status shows. */
  shown(uid: string): Usage | undefined {
    return this.#shown.get(uid)?.usage
  }

  read(uid: string, usage: Usage): void {
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
    this.#cancel = this.#waiting.size === 0 ? undefined : this.#deps.clock.after(TURN_MS, () => this.#turn())
  }

  #show(uid: string, usage: Usage): void {
    this.#waiting.delete(uid)
    this.#shown.set(uid, { usage, atMs: this.#deps.clock.monotonic() })
    this.#deps.enqueue(uid)
  }
}
