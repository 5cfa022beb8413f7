/** Drops what nobody owns in the ledger: everything of deleted ApiKeys, and keys that no program of ours makes. */
import type { OperatorLedgerStore } from './ledger-store.ts'

/** A subject that was deleted is dropped again after this, ms: requests that were running have settled by then. */
const AGAIN_MS = 90_000
/** A walk over all keys: the first soon after a start, then this often, ms. */
const FIRST_WALK_MS = 60_000
const WALK_EVERY_MS = 3_600_000
/** Subjects dropped per turn. */
const PER_TURN = 200

/** What a sweep needs. */
export interface SweepDeps {
  readonly store: Pick<OperatorLedgerStore, 'remove' | 'walk' | 'unlink'>
  /** Whether there is an ApiKey of this uid, or may be. */
  readonly isKnown: (uid: string) => boolean
  /** Throws when this process no longer leads. */
  readonly assertLeading: () => void
  readonly onSwept: (keys: number) => void
}

/** One per operator; times are monotonic ms unless they say otherwise. */
export class LedgerSweep {
  readonly #deps: SweepDeps
  /** When a deleted subject is dropped, and whether once more after that. */
  readonly #deleted = new Map<string, { readonly dueMs: number; readonly isLast: boolean }>()
  #walkAtMs: number | undefined
  #isWalking = false

  constructor(deps: SweepDeps) {
    this.#deps = deps
  }

  deleted(uid: string, nowMs: number): void {
    this.#deleted.set(uid, { dueMs: nowMs, isLast: false })
  }

  /** Drops what is due. @param wallMs ms since 1970 @throws what the store throws: tried again in the next turn */
  async turn(nowMs: number, wallMs: number): Promise<void> {
    const due = [...this.#deleted].filter(([, { dueMs }]) => dueMs <= nowMs).slice(0, PER_TURN)
    if (due.length === 0) return
    await this.#deps.store.remove(
      due.map(([uid]) => uid),
      wallMs,
    )
    for (const [uid, { isLast }] of due) {
      if (isLast) this.#deleted.delete(uid)
      else this.#deleted.set(uid, { dueMs: nowMs + AGAIN_MS, isLast: true })
    }
  }

  /** Walks over all keys if that is due; returns when it has. @throws what the store throws: begun anew an hour later */
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

  async #sweep(keys: ReadonlyArray<{ readonly name: string; readonly subject: string | undefined; readonly isDamaged: boolean }>) {
    const { store, isKnown, onSwept, assertLeading } = this.#deps
    const names = keys.filter(({ subject, isDamaged }) => isDamaged || (subject !== undefined && !isKnown(subject))).map(({ name }) => name)
    if (names.length === 0) return
    assertLeading()
    await store.unlink(names)
    onSwept(names.length)
  }
}
