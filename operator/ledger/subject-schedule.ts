/** Which subjects are read next. Pure but for its memory; times are monotonic ms. */

/** Between two reads of a subject that spends, ms. */
const SPENDING_EVERY_MS = 3_000
/** Between two reads of a subject that nobody has named, ms: what somebody wrote past the gateways is found by then. */
const IDLE_EVERY_MS = 5_000
/** Most subjects of one turn: those that were named, and others. */
const NAMED_PER_TURN = 10_000
const OTHERS_PER_TURN = 2_000

interface Named {
  readonly sinceMs: number
  readonly notBeforeMs: number
}

/** One subject that is due. */
export interface DueSubject {
  readonly uid: string
  /** When it became known that there is something to read. */
  readonly sinceMs: number
}

/** Every budgeted subject, in the order of its last read. */
export class SubjectSchedule {
  readonly #readAt = new Map<string, number>()
  readonly #named = new Map<string, Named>()

  get size(): number {
    return this.#readAt.size
  }

  has(uid: string): boolean {
    return this.#readAt.has(uid)
  }

  uids(): Iterable<string> {
    return this.#readAt.keys()
  }

  /** A new one is read at once. */
  add(uid: string, nowMs: number): void {
    if (this.has(uid)) return
    this.#readAt.set(uid, Number.NEGATIVE_INFINITY)
    this.name(uid, nowMs)
  }

  delete(uid: string): void {
    this.#readAt.delete(uid)
    this.#named.delete(uid)
  }

  /** There is something new about a subject. Unknown names are ignored. @param waitMs not before this has passed */
  name(uid: string, nowMs: number, waitMs = 0): void {
    const readAt = this.#readAt.get(uid)
    if (readAt === undefined) return
    const former = this.#named.get(uid)
    const notBeforeMs = waitMs > 0 ? nowMs + waitMs : Math.max(nowMs, readAt + SPENDING_EVERY_MS)
    this.#named.set(uid, { sinceMs: former?.sinceMs ?? nowMs, notBeforeMs: Math.min(former?.notBeforeMs ?? Infinity, notBeforeMs) })
  }

  /** Takes those that are due; they count as read. */
  take(nowMs: number): readonly DueSubject[] {
    const due: DueSubject[] = []
    for (const [uid, { sinceMs, notBeforeMs }] of this.#named) {
      if (due.length >= NAMED_PER_TURN) break
      if (notBeforeMs <= nowMs) due.push({ uid, sinceMs })
    }
    for (const { uid } of due) this.#read(uid, nowMs)
    return [...due, ...this.#takeIdle(nowMs)]
  }

  /** A read has failed: they are due again. */
  giveBack(due: readonly DueSubject[], nowMs: number): void {
    for (const { uid, sinceMs } of due) if (this.has(uid)) this.#named.set(uid, { sinceMs, notBeforeMs: nowMs })
  }

  #takeIdle(nowMs: number): readonly DueSubject[] {
    const due: DueSubject[] = []
    for (const [uid, readAt] of this.#readAt) {
      if (due.length >= OTHERS_PER_TURN || readAt > nowMs - IDLE_EVERY_MS) break
      due.push({ uid, sinceMs: nowMs })
    }
    for (const { uid } of due) this.#read(uid, nowMs)
    return due
  }

  /** Behind all others. */
  #read(uid: string, nowMs: number): void {
    this.#named.delete(uid)
    this.#readAt.delete(uid)
    this.#readAt.set(uid, nowMs)
  }
}
