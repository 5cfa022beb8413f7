/** Drops orphaned keys of the ledger: all keys of deleted ApiKeys, and keys that no Headgate program writes. */
import type { LedgerMetrics } from '../operator-deps.ts'
import type { LedgerKey, OperatorLedgerStore } from './ledger-store.ts'
import type { Subjects } from './subject-ledger.ts'

/** Time after which a deleted subject is dropped again, ms, until nothing was left: running requests may still settle. */
const AGAIN_MS = 90_000
/** Time from the start to the first walk over all keys, and between two walks, ms. */
const FIRST_WALK_MS = 60_000
const WALK_EVERY_MS = 3_600_000
/** Most subjects dropped per turn. */
const PER_TURN = 200

export interface SweepDeps {
  readonly store: Pick<OperatorLedgerStore, 'remove' | 'walk' | 'unlink'>
  readonly subjects: Pick<Subjects, 'mayExist'>
  readonly assertLeading: () => void
  readonly metrics?: Pick<LedgerMetrics, 'swept'> | undefined
}

/** The sweep of an operator. Times are monotonic ms. */
export class LedgerSweep {
  readonly #deps: SweepDeps
  /** Time at which a deleted subject is dropped, and whether that is the first time. */
  readonly #deleted = new Map<string, { readonly dueMs: number; readonly isFirst: boolean }>()
  #walkAtMs: number | undefined
  #isWalking = false

  constructor(deps: SweepDeps) {
    this.#deps = deps
  }

  deleted(uid: string, nowMs: number): void {
    this.#deleted.set(uid, { dueMs: nowMs, isFirst: true })
  }

  /** Drops due subjects. @throws errors of the store; the next turn tries again */
  async turn(nowMs: number): Promise<void> {
    const due = [...this.#deleted].filter(([, { dueMs }]) => dueMs <= nowMs).slice(0, PER_TURN)
    if (due.length === 0) return
    const removed = await this.#deps.store.remove(due.map(([uid]) => uid))
    for (const [at, [uid, { isFirst }]] of due.entries()) {
      if (isFirst || removed[at] !== 0) this.#deleted.set(uid, { dueMs: nowMs + AGAIN_MS, isFirst: false })
      else this.#deleted.delete(uid)
    }
  }

  /** Walks over all keys if a walk is due, and resolves at its end. @throws errors of the store; the next walk starts an hour later */
  async walk(nowMs: number): Promise<void> {
    this.#walkAtMs ??= nowMs + FIRST_WALK_MS
    if (this.#isWalking || nowMs < this.#walkAtMs) return
    this.#walkAtMs = nowMs + WALK_EVERY_MS
    this.#isWalking = true
    try {
      for await (const keys of this.#deps.store.walk()) await this.#sweep(keys)
    } finally {
      this.#isWalking = false
    }
  }

  async #sweep(keys: readonly LedgerKey[]): Promise<void> {
    const { store, subjects, metrics, assertLeading } = this.#deps
    const names = keys
      .filter(({ subject, isDamaged }) => isDamaged || (subject !== undefined && !subjects.mayExist(subject)))
      .map(({ name }) => name)
    if (names.length === 0) return
    assertLeading()
    await store.unlink(names)
    metrics?.swept(names.length)
  }
}
