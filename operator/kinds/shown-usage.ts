/**
 * Selects the readings of the ledger that statuses show. Otherwise statuses about use would be most writes of the operator. So one key waits
 * a minute between two such statuses, and a change must have a minimum size. Ten keys per second take their turn, the largest change first;
 * half of the turn belongs to keys that have waited long, so that a small change waits at most two hours. A key whose budget is used up does
 * not wait.
 */
import type { Cancel, Clock } from '#platform/clock.ts'
import type { SubjectUsage } from '../books/subject-ledger.ts'
import type { Weight } from './usage-status.ts'
import { type WaitingReading, WaitingReadings } from './waiting-readings.ts'

/** Time between two statuses of one key, ms. */
const KEY_EVERY_MS = 60_000
/** Time between two turns, ms, and maximum number of keys per turn. */
const TURN_MS = 1_000
const PER_TURN = 10
/** While more keys wait than ten per second serve in an hour, a turn has this part of them. */
const TURNS_FOR_ALL = 3_600
/** A wait of this length is long, ms. */
const LONG_MS = 60_000

export interface ShownUsageDeps<Usage = SubjectUsage> {
  readonly clock: Clock
  /** The weight of a new status of the key; undefined if there is no such key. */
  readonly weigh: (uid: string, usage: Usage) => Weight | undefined
  readonly enqueue: (uid: string) => void
}

export class ShownUsage<Usage = SubjectUsage> {
  readonly #deps: ShownUsageDeps<Usage>
  readonly #shown = new Map<string, Usage>()
  /** Times of the statuses of the last minute, oldest first. */
  readonly #recent = new Map<string, number>()
  /** Readings of keys whose last status is not a minute old. */
  readonly #resting = new Map<string, WaitingReading<Usage>>()
  readonly #waiting = new WaitingReadings<Usage>()
  #cancel: Cancel | undefined

  constructor(deps: ShownUsageDeps<Usage>) {
    this.#deps = deps
  }

  /** The reading for the status; undefined keeps the use that the status shows. */
  shown(uid: string): Usage | undefined {
    return this.#shown.get(uid)
  }

  read(uid: string, usage: Usage): void {
    const weight = this.#deps.weigh(uid, usage)
    if (weight === undefined || weight.kind === 'None') return this.#drop(uid)
    if (weight.kind === 'Exhausted') return this.#show(uid, usage)
    const nowMs = this.#deps.clock.monotonic()
    const reading = { usage, size: weight.size }
    if (isRecent(this.#recent.get(uid), nowMs)) this.#resting.set(uid, reading)
    else this.#waiting.set(uid, reading, nowMs)
    this.#cancel ??= this.#deps.clock.after(TURN_MS, () => this.#turn())
  }

  forget(uid: string): void {
    this.#shown.delete(uid)
    this.#recent.delete(uid)
    this.#drop(uid)
  }

  stop(): void {
    this.#cancel?.()
    this.#resting.clear()
    this.#waiting.clear()
  }

  #turn(): void {
    const nowMs = this.#deps.clock.monotonic()
    this.#endRests(nowMs)
    const most = Math.max(PER_TURN, Math.ceil(this.#waiting.size / TURNS_FOR_ALL))
    const longest = this.#waiting.longest(most / 2, nowMs - LONG_MS)
    for (const uid of longest) this.#showWaiting(uid)
    for (const uid of this.#waiting.largest(most - longest.length)) this.#showWaiting(uid)
    this.#cancel = this.#waiting.size + this.#resting.size === 0 ? undefined : this.#deps.clock.after(TURN_MS, () => this.#turn())
  }

  #endRests(nowMs: number): void {
    for (const [uid, atMs] of this.#recent) {
      if (isRecent(atMs, nowMs)) return
      this.#recent.delete(uid)
      const reading = this.#resting.get(uid)
      this.#resting.delete(uid)
      if (reading) this.#waiting.set(uid, reading, nowMs)
    }
  }

  #showWaiting(uid: string): void {
    const usage = this.#waiting.get(uid)
    if (usage !== undefined) this.#show(uid, usage)
  }

  #show(uid: string, usage: Usage): void {
    this.#drop(uid)
    this.#shown.set(uid, usage)
    this.#recent.delete(uid)
    this.#recent.set(uid, this.#deps.clock.monotonic())
    this.#deps.enqueue(uid)
  }

  #drop(uid: string): void {
    this.#resting.delete(uid)
    this.#waiting.delete(uid)
  }
}

function isRecent(atMs: number | undefined, nowMs: number): boolean {
  return atMs !== undefined && nowMs < atMs + KEY_EVERY_MS
}
