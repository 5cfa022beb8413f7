/** Schedules the reads of subjects. Pure except for its memory. Times are monotonic ms. */

/** Time between two reads of a spending subject, ms. */
const SPENDING_EVERY_MS = 3_000
/** Time between two reads of a subject that no gateway has named, ms. Such a read finds writes of other clients. */
const IDLE_EVERY_MS = 5_000
/** Most named subjects and most other subjects of one turn. */
const NAMED_PER_TURN = 10_000
const OTHERS_PER_TURN = 2_000

/** All subjects with budgets, in the order of their last reads. */
export class SubjectSchedule {
  readonly #readAt = new Map<string, number>()
  /** Named subjects, and the time before which each is not read. */
  readonly #named = new Map<string, number>()

  has(uid: string): boolean {
    return this.#readAt.has(uid)
  }

  uids(): Iterable<string> {
    return this.#readAt.keys()
  }

  add(uid: string, nowMs: number): void {
    if (this.has(uid)) return
    this.#readAt.set(uid, Number.NEGATIVE_INFINITY)
    this.name(uid, nowMs)
  }

  delete(uid: string): void {
    this.#readAt.delete(uid)
    this.#named.delete(uid)
  }

  /** Schedules a read of a subject with a change. Unknown names are ignored. @param waitMs shortest wait before the read */
  name(uid: string, nowMs: number, waitMs = 0): void {
    const readAt = this.#readAt.get(uid)
    if (readAt === undefined) return
    const notBeforeMs = waitMs > 0 ? nowMs + waitMs : Math.max(nowMs, readAt + SPENDING_EVERY_MS)
    this.#named.set(uid, Math.min(this.#named.get(uid) ?? Infinity, notBeforeMs))
  }

  /** Subjects to read now, named ones first. They stay due until `wasRead`. */
  due(nowMs: number): readonly string[] {
    const named: string[] = []
    for (const [uid, notBeforeMs] of this.#named) {
      if (named.length >= NAMED_PER_TURN) break
      if (notBeforeMs <= nowMs) named.push(uid)
    }
    const due = new Set(named)
    for (const [uid, readAt] of this.#readAt) {
      if (due.size >= named.length + OTHERS_PER_TURN || readAt > nowMs - IDLE_EVERY_MS) break
      due.add(uid)
    }
    return [...due]
  }

  wasRead(uids: readonly string[], nowMs: number): void {
    for (const uid of uids) {
      this.#named.delete(uid)
      if (this.#readAt.delete(uid)) this.#readAt.set(uid, nowMs)
    }
  }
}
